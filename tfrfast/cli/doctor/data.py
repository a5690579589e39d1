"""The facts that decide how tfrfast reads the shards of some paths."""

from __future__ import annotations

import os
from typing import NamedTuple

from tfrfast import _native
from tfrfast.cli.doctor.filesystems import Filesystem, Mounts
from tfrfast.cli.doctor.shard_groups import ShardGroup, look_at_buckets
from tfrfast.errors import RecordError
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths, expand_paths
from tfrfast.storage.schemes import is_url

__all__ = ["Data", "look_at_data"]


class Data(NamedTuple):
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


def look_at_data(paths: Paths) -> Data:
    """Opens only the necessary files, and builds nothing."""
    shards = expand_paths(paths)
    mounts = Mounts()
    groups: dict[Filesystem, list[str]] = {}
    sizes = {shard: _size(shard) for shard in shards if not is_url(shard)}
    for shard in shards:
        if shard in sizes:
            groups.setdefault(mounts.of(shard), []).append(shard)
    places = []
    for (kind, mounted_at), members in groups.items():
        # Empty files are not mapped.
        example = os.fsencode(max(members, key=lambda shard: sizes[shard]))
        places.append(
            ShardGroup(
                filesystem=kind,
                mounted_at=mounted_at,
                shards=len(members),
                bytes=sum(sizes[shard] for shard in members),
                is_mapped=_native.is_mapped(example),
                identity_lasts=_native.identity_lasts(example),
            )
        )
    places += look_at_buckets([shard for shard in shards if is_url(shard)])
    records, no_index = None, None
    compression: set[str] = set()
    indexes: dict[str, int] = {}
    try:
        with Reader(shards, index="require", on_corruption="skip") as reader:
            records = len(reader)
            for each in reader.shards:
                compression.add(each.compression or "none")
                folder = os.path.dirname(each.index or "")  # works for a URL, too
                indexes[folder] = indexes.get(folder, 0) + 1
    except RecordError as error:
        no_index = str(error).partition(" (looked at ")[0]
    return Data(
        places,
        len(shards),
        sum(each.bytes for each in places),
        records,
        sorted(compression),
        indexes,
        no_index,
    )


def _size(shard: str) -> int:
    try:
        return os.path.getsize(shard)
    except OSError:
        _native.is_mapped(os.fsencode(shard))  # raises an error with the name
        raise
