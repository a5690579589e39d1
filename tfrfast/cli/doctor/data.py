"""The facts that decide how tfrfast reads the shards of some paths."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tfrfast import _native
from tfrfast.errors import RecordError
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths, expand_paths
from tfrfast.storage.remote.urls import locate
from tfrfast.storage.schemes import is_url

__all__ = ["DataFacts", "Filesystem", "Mounts", "ShardGroup", "look_at_data"]

_REQUESTS = 4  # the first one may have to connect


class ShardGroup(NamedTuple):
    """The shards on one filesystem, in one bucket, or on one server."""

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


class DataFacts(NamedTuple):
    places: list[ShardGroup]
    shards: int
    bytes: int
    records: int | None
    """None unless all shards have an index."""
    compression: list[str]
    """The names of the compressions of the indexed shards, "none" for plain shards."""
    indexes: dict[str, int]
    """The number of indexed shards, by the folder of their index."""
    no_index: str | None
    """The reason if some shards have no usable index."""


def look_at_data(paths: Paths) -> DataFacts:
    """Opens only the necessary files, and builds nothing."""
    shards = expand_paths(paths)
    places = [
        *_look_at_files([shard for shard in shards if not is_url(shard)]),
        *_look_at_buckets([shard for shard in shards if is_url(shard)]),
    ]
    records, no_index = None, None
    compression: set[str] = set()
    indexes: dict[str, int] = {}
    try:
        with Reader(shards, index="require", on_corruption="skip") as reader:
            records = len(reader)
            compression = {each.compression or "none" for each in reader.shards}
            indexes = Counter(os.path.dirname(each.index or "") for each in reader.shards)
    except RecordError as error:
        no_index = str(error).partition(" (looked at ")[0]
    size = sum(each.bytes for each in places)
    return DataFacts(places, len(shards), size, records, sorted(compression), indexes, no_index)


def _look_at_files(shards: list[str]) -> Iterator[ShardGroup]:
    mounts = Mounts()
    sizes = {shard: _size(shard) for shard in shards}
    groups: dict[Filesystem, list[str]] = {}
    for shard in shards:
        groups.setdefault(mounts.of(shard), []).append(shard)
    for (kind, mounted_at), some in groups.items():
        example = os.fsencode(max(some, key=sizes.__getitem__))  # empty files are not mapped
        yield ShardGroup(
            kind,
            mounted_at,
            len(some),
            sum(sizes[shard] for shard in some),
            is_mapped=_native.is_mapped(example),
            identity_lasts=_native.identity_lasts(example),
        )


def _size(shard: str) -> int:
    try:
        return os.path.getsize(shard)
    except OSError:
        _native.is_mapped(os.fsencode(shard))  # raises an error with the name
        raise


class Filesystem(NamedTuple):
    kind: str
    mounted_at: str


class Mounts:
    """The mounts of this process, as Linux lists them. On other systems every kind is unknown."""

    def __init__(self, listing: str | None = None) -> None:
        if listing is None:
            try:
                with open(
                    "/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape"
                ) as file:
                    listing = file.read()
            except OSError:
                listing = ""
        # A later mount at the same place hides the earlier mount.
        self._kinds: dict[str, str] = {}
        for line in listing.splitlines():
            before, _, after = line.partition(" - ")
            fields = before.split(" ")
            if len(fields) > 4 and after:
                self._kinds[_unescape(fields[4])] = after.split(" ")[0]

    def of(self, path: str) -> Filesystem:
        folder = os.path.realpath(path)
        while folder not in self._kinds:
            parent = os.path.dirname(folder)
            if parent == folder:
                return Filesystem("unknown", folder)
            folder = parent
        return Filesystem(self._kinds[folder], folder)


def _unescape(field: str) -> str:
    """Linux lists blanks and other special characters as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def _look_at_buckets(urls: list[str]) -> Iterator[ShardGroup]:
    """Raises OSError if a URL cannot be reached."""
    if not urls:
        return
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
