"""Indexes of objects, published in the bucket beside them."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from tfrfast import _native
from tfrfast._remote import uploads

_AT_ONCE = 16
_ATTEMPTS = 10


def publish_indexes(shards: Mapping[str, str], access: str) -> dict[str, str]:
    """Puts the indexes of objects into the index of their folder, `<folder>.tfrfast/index`.

    `shards` says for each URL where its index is known of: the URL itself, or a file with the same
    bytes. Sections of other objects in that folder are kept, also if somebody else publishes at the
    same time. Returns for each URL where its index is. Raises OSError.
    """
    by_place: dict[str, dict[str, str]] = defaultdict(dict)
    for url, shard in shards.items():
        by_place[place_of(url)][url] = shard
    for place, some in by_place.items():
        _publish(place, some, access)
    return {url: place_of(url) for url in shards}


def place_of(url: str) -> str:
    """The index of the folder of `url`. Raises ValueError if the folder is a whole bucket."""
    uploads.check_writable(url)
    folder = url.rpartition("/")[0]
    if "/" not in folder.partition("://")[2]:
        raise ValueError(
            f"{url!r} lies directly in a bucket, and the index of its folder would lie in another "
            "bucket. Use a folder in the bucket, or keep the index elsewhere."
        )
    return f"{folder}.tfrfast/index"


def _publish(place: str, shards: Mapping[str, str], access: str) -> None:
    with tempfile.TemporaryDirectory(prefix="tfrfast-") as folder:

        def keep(url: str) -> None:
            _native.index_object(url, access, os.fsencode(shards[url]), os.fsencode(folder), False)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(keep, shards))
        loose = {name: _read(os.path.join(folder, name)) for name in _names(folder)}
        for _ in range(_ATTEMPTS):
            known, version = uploads.read_whole(place, access)
            for name, data in loose.items():
                _write(os.path.join(folder, name), data)
            path = _native.folder_index_path(os.fsencode(folder))
            if known:
                _write(path, known)
            elif os.path.exists(path):
                os.unlink(path)
            _native.merge_indexes(os.fsencode(folder))
            if uploads.replace_bytes(place, access, _read(path), version):
                return
    raise OSError(
        f"{place!r} could not be written: others replaced it {_ATTEMPTS} times in between. Try "
        "again."
    )


def _names(folder: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".index")]


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
