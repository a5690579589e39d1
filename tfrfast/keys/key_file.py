"""Key files: their names, and their bytes, which docs/keys.md specifies."""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
from collections.abc import Iterable
from typing import Any, BinaryIO, NamedTuple, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from tfrfast._native import KeyBytes, KeyTable, Reader, crc32c
from tfrfast.base.arguments import Int64Array
from tfrfast.base.sizes import said_of_append
from tfrfast.errors import CorruptRecordError, RecordError, StaleIndexError
from tfrfast.storage.schemes import is_url

__all__ = [
    "MAX_RECORDS",
    "KeyFile",
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


class KeyFile:
    """The sorted hashes of keys, each with a record number, as they were when the file was opened.

    Raises FileNotFoundError, StaleIndexError if the file is not to be believed about the reader's
    data, and CorruptRecordError.
    """

    def __init__(self, path: str, core: Reader) -> None:
        self._path = path
        # No more is read than an intact file has: any large file may have the name.
        file = KeyBytes(os.fsencode(path), core)
        size = len(file)
        if size < _HEADER_BYTES:
            self._refuse("it is shorter than its header")
        head = file.read(_HEADER_BYTES).data
        magic, version, kind, *counts, width, name_bytes, hashes_crc, numbers_crc, _ = (
            _HEADER.unpack_from(head)
        )
        hashes_at = _HEADER_BYTES + (name_bytes + 7) // 8 * 8
        if magic != _MAGIC:
            self._refuse("it does not begin like a key file")
        if version != _VERSION:
            self._refuse(f"it has version {version}, and this tfrfast reads {_VERSION}")
        if hashes_at > size:
            self._refuse("it is shorter than the name of its feature")
        head = file.read(hashes_at).data
        name = head[_HEADER_BYTES:]
        (header_crc,) = _CRC.unpack_from(head, _HEADER.size)
        if crc32c(name, crc32c(head[: _HEADER.size])) != header_crc:
            self._refuse("the checksum of its header does not match")
        self.num_records: int
        self.num_entries: int
        self.num_distinct: int
        self.num_records, self.num_entries, self.num_distinct, self.fingerprint, self.stamp = counts
        if (
            kind not in _KINDS.values()
            or not 1 <= width <= 4
            or not self.num_distinct <= self.num_entries <= self.num_records <= MAX_RECORDS
        ):
            self._refuse("its header makes no sense")
        numbers_at = hashes_at + self.num_entries * 8
        end = numbers_at + self.num_entries * width
        if size != end:
            self._refuse(f"it has {size} bytes instead of {end}")
        content = file.read(end).data
        crcs = crc32c(content[hashes_at:numbers_at]), crc32c(content[numbers_at:])
        if crcs != (hashes_crc, numbers_crc):
            self._refuse("its checksums do not match")
        try:
            self.feature = str(name[:name_bytes], "utf-8")
        except UnicodeDecodeError:
            self._refuse("its header makes no sense")
        self.has_ints = kind == _KINDS["int64"]
        #: Ascending.
        self.hashes: npt.NDArray[np.uint64] = np.ndarray(
            self.num_entries, "<u8", content, hashes_at
        )
        # Each value holds four bytes of the file, the last of which are the number.
        self._numbers = np.ndarray(
            self.num_entries, "<u4", content, numbers_at + width - 4, (width,)
        )
        self._shift = np.uint32(32 - 8 * width)
        if self.num_entries and self._numbers.max() >> self._shift >= self.num_records:
            self._refuse("it has the number of a record that does not exist")
        numbers = np.ndarray((self.num_entries, width), np.uint8, content, numbers_at)
        table = KeyTable(self.feature, self.hashes, numbers)
        #: Returns the first record that has a key, or None.
        self.item = table.item
        #: Returns for each hash the number of the first record with that hash, or -1.
        self.find = table.find
        #: Returns the numbers of all records whose key has a hash, ascending.
        self.numbers = table.numbers

    def numbers_of(self, entries: npt.NDArray[np.int64] | slice) -> Int64Array:
        """Returns the numbers of the entries' records."""
        numbers: Int64Array = (self._numbers[entries] >> self._shift).astype(np.int64)
        return numbers

    def _refuse(self, why: str) -> NoReturn:
        raise CorruptRecordError(
            f"{self._path!r} is not an intact key file: {why}. Run tfr.build_keys again.",
            path=self._path,
        )


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
        file = KeyFile(path, core)
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
            old = KeyFile(f"{start}{names.hexdigest()[:16]}.keys", core)
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
