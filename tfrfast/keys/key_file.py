"""Key files: their names and bytes, which docs/keys.md specifies."""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
from collections.abc import Iterable
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tfrfast._native import KeyFile, Reader, crc32c
from tfrfast.base.sizes import said_of_append
from tfrfast.errors import RecordError, StaleIndexError
from tfrfast.storage.schemes import is_url

__all__ = [
    "MAX_RECORDS",
    "KeyHeader",
    "KeyedData",
    "is_of",
    "key_path",
    "open_key_file",
    "stamp_of",
    "write_keys",
]

MAX_RECORDS = 1 << 32
_MAGIC = b"tfr.keys"
_VERSION = 1
_KINDS = {"bytes": 1, "int64": 2}
# magic, version, kind, records, entries, distinct, fingerprint, stamp, bytes of a number and of the
# name, checksums of the hashes and of the numbers; and after the name, a checksum of all this and
# the name
_HEADER = struct.Struct("<8sIIQQQQQIIIII")
_CRC = struct.Struct("<I")
_HEADER_BYTES = _HEADER.size + _CRC.size


class KeyedData(Protocol):
    """A Reader's facts about its data."""

    @property
    def shards(self) -> Any: ...
    @property
    def _fingerprint(self) -> int: ...
    def __len__(self) -> int: ...


class KeyHeader(NamedTuple):
    feature: str
    #: "bytes" or "int64"
    kind: str
    records: int
    #: Records that have a key, and the number of distinct keys.
    entries: int
    distinct: int
    fingerprint: int
    stamp: int


def key_path(data: KeyedData, feature: str, folder: str) -> str:
    """Returns the path of these shards' keys in that folder."""
    paths = [shard.path for shard in data.shards]
    names = "\0".join([feature, *(os.path.basename(path) for path in paths)])
    which = hashlib.sha256(names.encode(errors="surrogateescape")).hexdigest()[:16]
    readable = "".join(each if each.isascii() and each.isalnum() else "-" for each in feature)
    return os.path.join(folder, f"{readable[:40]}-{which}.keys")


def stamp_of(shards: Iterable[Any]) -> int:
    """Returns a hash of the shards' sizes, times of modification where known, and ETags."""
    facts = hashlib.sha256()
    for shard in shards:
        modified_ns, *tag = shard._version  # of the open file, which may have been replaced since
        facts.update(struct.pack("<Qq", shard.num_bytes, modified_ns))
        if is_url(shard.path):
            facts.update(struct.pack("<3Q", *tag))
    return int.from_bytes(facts.digest()[:8], "little")


def open_key_file(path: str, data: KeyedData, core: Reader, feature: str) -> KeyFile:
    """Opens the key file. Raises if it belongs to other data."""
    try:
        file = KeyFile(os.fsencode(path), core)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"There is no key file {path!r}. {_said_of_old_keys(path, data, core, feature)}"
            f"tfr.build_keys(reader, {feature!r}) makes it."
        ) from None
    if file.feature != feature or not is_of(data, file):
        raise StaleIndexError(
            f"The key file {path!r} belongs to other data: since it was made, shards were "
            "changed, added or removed. Run tfr.build_keys again.",
            path=path,
        )
    return file


def is_of(data: KeyedData, file: KeyFile) -> bool:
    """True if the key file was made of this data."""
    facts = file.num_records, file.fingerprint, file.stamp
    return facts == (len(data), data._fingerprint, stamp_of(data.shards))


def _said_of_old_keys(path: str, data: KeyedData, core: Reader, feature: str) -> str:
    """Returns a sentence if there is a key file of the first shards."""
    paths = [shard.path for shard in data.shards]
    names, start = (
        hashlib.sha256(feature.encode(errors="surrogateescape")),
        path[: -len("0" * 16 + ".keys")],
    )
    said = ""
    for number, shard in enumerate(paths[:-1]):
        names.update(os.fsencode("\0" + os.path.basename(shard)))
        with contextlib.suppress(OSError, RecordError):
            old = KeyFile(os.fsencode(f"{start}{names.hexdigest()[:16]}.keys"), core)
            said = said_of_append(old.num_records, len(data), paths[number + 1]) + " "
    return said


def write_keys(
    file: BinaryIO,
    header: KeyHeader,
    parts: Iterable[npt.NDArray[Any]],
) -> None:
    """Writes sorted entries. The header holds their total."""
    width = max(1, ((header.records - 1).bit_length() + 7) // 8)
    name = header.feature.encode()
    padded = name + bytes(-len(name) % 8)
    hash_place = _HEADER_BYTES + len(padded)
    number_place = hash_place + header.entries * 8
    hash_crc = number_crc = 0
    for part in parts:
        narrow = part["number"].astype("<u4").view(np.uint8).reshape(-1, 4)[:, :width].tobytes()
        wide = part["hash"].astype("<u8").tobytes()
        file.seek(hash_place)
        file.write(wide)
        file.seek(number_place)
        file.write(narrow)
        hash_place += len(wide)
        number_place += len(narrow)
        hash_crc, number_crc = crc32c(wide, hash_crc), crc32c(narrow, number_crc)
    counts = (header.records, header.entries, header.distinct, header.fingerprint, header.stamp)
    sizes = (width, len(name), hash_crc, number_crc, 0)
    packed = _HEADER.pack(_MAGIC, _VERSION, _KINDS[header.kind], *counts, *sizes)
    file.seek(0)
    file.write(packed + _CRC.pack(crc32c(packed + padded)) + padded)
