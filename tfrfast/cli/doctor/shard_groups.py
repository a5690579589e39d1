"""Shards on one filesystem or in one bucket, and the time of a bucket's request."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from tfrfast import _native
from tfrfast.storage.remote.options import Storage
from tfrfast.storage.remote.urls import is_object, locate

__all__ = ["ShardGroup", "look_at_buckets"]

_REQUESTS = 4  # the first one may have to connect


class ShardGroup(NamedTuple):
    """The shards on one filesystem, in one bucket, on one server, or in one storage of the core."""

    filesystem: str
    """The kind of the filesystem, or the scheme of the bucket's URL."""
    mounted_at: str
    """The mount point, or the bucket's URL."""
    shards: int
    bytes: int
    is_mapped: bool
    """If False, shards are read with pread, as on network filesystems."""
    identity_lasts: bool
    """True if a change is noticed even if the file's size and time stay the same."""
    request_ms: float | None = None
    """The time of a bucket's fastest request for one byte. None without bytes or requests."""


def look_at_buckets(urls: list[str]) -> Iterator[ShardGroup]:
    """Raises OSError if a URL cannot be reached."""
    objects = [url for url in urls if is_object(url)]
    if objects:
        yield from _look_at_objects(objects)
    yield from _look_at_others([url for url in urls if not is_object(url)])


def _look_at_others(urls: list[str]) -> Iterator[ShardGroup]:
    options = Storage(None).core
    for scheme in dict.fromkeys(url.partition(":")[0] for url in urls):
        names = [os.fsencode(url) for url in urls if url.partition(":")[0] == scheme]
        size = sum(_native.file_facts(name, options)[0] for name in names)
        lasts = all(map(_native.identity_lasts, names))
        yield ShardGroup(scheme, f"{scheme}://", len(names), size, False, lasts)


def _look_at_objects(urls: list[str]) -> Iterator[ShardGroup]:
    from tfrfast.storage.remote.listing import look_at_objects

    facts = look_at_objects(urls, "")
    groups: dict[tuple[str, str], list[str]] = {}
    for url in facts:
        name = locate(url)
        groups.setdefault((name.scheme, name.root), []).append(url)
    for (scheme, root), some in groups.items():
        yield ShardGroup(
            scheme,
            root,
            len(some),
            sum(facts[url].size for url in some),
            is_mapped=False,
            identity_lasts=all(facts[url].etag for url in some),
            request_ms=_request_ms({url: facts[url].encode() for url in some if facts[url].size}),
        )


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
