"""Indexes of objects, published in the bucket beside them."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Mapping

from tfrfast import _native
from tfrfast.base.job_threads import JobThreads
from tfrfast.storage.remote import objects

_AT_ONCE = 16
_ATTEMPTS = 10


def publish_indexes(shards: Mapping[str, str], access: str) -> dict[str, str]:
    """Adds the indexes of objects to the index of their folder, `<folder>.tfrfast/index`.

    `shards` maps each URL to the source of its index: the URL itself, or a file with the same
    bytes. Sections of other objects in that folder are kept, even if another process publishes at
    the same time. Returns the place of each URL's index. Raises OSError.
    """
    by_place: dict[str, dict[str, str]] = defaultdict(dict)
    for url, shard in shards.items():
        by_place[place_of(url)][url] = shard
    for place, some in by_place.items():
        _publish(place, some, access)
    return {url: place_of(url) for url in shards}


def place_of(url: str) -> str:
    """Returns the index of the folder of `url`. Raises ValueError for a whole bucket."""
    objects.check_writable(url)
    return f"{_native.sibling_index_folder(os.fsencode(url))}/index"


def _publish(place: str, shards: Mapping[str, str], access: str) -> None:
    with tempfile.TemporaryDirectory(prefix="tfrfast-") as folder:
        mine = os.path.join(folder, "mine")
        os.mkdir(mine)

        def keep(url: str) -> None:
            _native.index_object(url, access, os.fsencode(shards[url]), os.fsencode(mine), False)

        with JobThreads(_AT_ONCE) as pool:
            list(pool.map(keep, shards))
        path = os.path.join(folder, "index")
        for _ in range(_ATTEMPTS):
            version = objects.download(place, access, path)
            _native.join_index(os.fsencode(folder), _native.index_path_in(os.fsencode(mine)))
            if objects.replace_by_file(place, access, path, version):
                return
            os.unlink(path)
    raise OSError(
        f"{place!r} could not be written: others replaced it {_ATTEMPTS} times in between. Try "
        "again."
    )
