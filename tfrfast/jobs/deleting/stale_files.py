"""Files about all records of a set, which a deletion makes stale."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from types import SimpleNamespace

from tfrfast.keys.key_file import stamp_of
from tfrfast.storage.paths import natural_key
from tfrfast.writing.publishing import numbered_set

__all__ = ["remove_stale_files"]

# The stamps in the headers of files about all records of a set.
_STAMPS = {
    ".keys": struct.Struct("<48xQ"),
    ".steps": struct.Struct("<48xQ"),
    ".lengths": struct.Struct("<32xQ"),
}


def remove_stale_files(folders: Iterable[str], data_folder: str, changing: Iterable[str]) -> None:
    """Removes the files of keys, steps and lengths that may know records of the shards `changing`.

    The files of other sets in the folder stay: their stamps are those of shards that do not change.
    """
    others: dict[str, list[str]] = {}
    names = set(os.listdir(data_folder)).difference(changing)
    grown = {numbered_set(name) for name in changing} - {None}
    for name in sorted(names, key=natural_key):
        path = os.path.join(data_folder, name)
        if os.path.isfile(path):
            others[name] = [path]
            group = numbered_set(name)
            if group is not None and group not in grown:
                others.setdefault(f"{group}", []).append(path)
    stamps = {_stamp_of_files(paths) for paths in others.values()}
    for folder in folders:
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            layout = _STAMPS.get(os.path.splitext(name)[1])
            if layout is not None:
                with open(path, "rb") as file:
                    start = file.read(layout.size)
                if len(start) < layout.size or layout.unpack(start)[0] not in stamps:
                    os.unlink(path)


def _stamp_of_files(paths: Sequence[str]) -> int:
    shards = []
    for each in paths:
        facts = os.stat(each)
        version = facts.st_mtime_ns, 0, 0, 0
        shards.append(SimpleNamespace(path=each, num_bytes=facts.st_size, _version=version))
    return stamp_of(shards)
