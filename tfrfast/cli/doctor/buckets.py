"""Facts about shards behind URLs, and the time of a request."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from tfrfast import _native
from tfrfast.storage.remote.options import Storage
from tfrfast.storage.remote.urls import is_object, locate

__all__ = ["Bucket", "look_at_buckets"]

_REQUESTS = 4  # the first one may have to connect


class Bucket(NamedTuple):
    """The shards in one bucket, on one server, or in one storage of the core."""

    scheme: str
    root: str
    sizes: dict[str, int]
    has_versions: bool
    """True if every change gives an object another version."""
    request_ms: float | None
    """The time of the fastest request for one byte. None without bytes or requests."""


def look_at_buckets(urls: list[str]) -> list[Bucket]:
    """Raises OSError if a URL cannot be reached."""
    objects = [url for url in urls if is_object(url)]
    others = [url for url in urls if not is_object(url)]
    return [*_look_at_objects(objects), *_look_at_others(others)]


def _look_at_others(urls: list[str]) -> list[Bucket]:
    options = Storage(None).core
    by_scheme: dict[str, dict[str, int]] = {}
    for url in urls:
        size, _, _ = _native.file_facts(os.fsencode(url), options)
        by_scheme.setdefault(url.partition(":")[0], {})[url] = size
    return [
        Bucket(
            scheme,
            f"{scheme}://",
            sizes,
            all(_native.identity_lasts(os.fsencode(url)) for url in sizes),
            request_ms=None,
        )
        for scheme, sizes in by_scheme.items()
    ]


def _look_at_objects(urls: list[str]) -> list[Bucket]:
    if not urls:
        return []
    from tfrfast.storage.remote.listing import look_at_objects

    facts = look_at_objects(urls, "")
    groups: dict[tuple[str, str], list[str]] = {}
    for url in facts:
        location = locate(url)
        groups.setdefault((location.scheme, location.root), []).append(url)
    return [
        Bucket(
            scheme,
            root,
            {url: facts[url].size for url in some},
            all(facts[url].etag for url in some),
            _request_ms({url: facts[url].encode() for url in some if facts[url].size}),
        )
        for (scheme, root), some in groups.items()
    ]


def _drop(_: int, __: object) -> None:
    pass


def _request_ms(versions: dict[str, str]) -> float | None:
    from tfrfast.storage.remote import answers
    from tfrfast.storage.remote.client import use_client

    took = []
    for url, version in list(versions.items())[:1] * _REQUESTS:
        begin = time.perf_counter()
        use_client().run(answers.read(url, "", version, 0, 1, _drop))
        took.append(time.perf_counter() - begin)
    return 1000 * min(took) if took else None
