"""Hashes of records, each with a record number, sorted in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast.columns.strings import Bytes

__all__ = ["Entries", "entries_of", "hashes_of", "sorted_entries"]

_ENTRY = np.dtype([("hash", "<u8"), ("number", "<u4")])
_BUCKETS = 256
# Sorting takes this many times the memory of the entries themselves.
_SORTING = 4


class Entries:
    """Collects entries. If the entries exceed the allowed memory, they go to a folder, into a file
    for each first byte of the hash.
    """

    def __init__(self, max_memory: int, folder: str, dtype: np.dtype[Any] = _ENTRY) -> None:
        self.count = 0
        self._dtype = dtype
        self._space = max(1, max_memory // (dtype.itemsize * _SORTING))
        self._folder = folder
        self._is_spilled = False
        self._parts: list[npt.NDArray[Any]] = []
        self._held = 0

    def add(self, part: npt.NDArray[Any]) -> None:
        """Adds sorted entries. Entries with equal hashes keep the order of the calls."""
        self._parts.append(part)
        self.count += len(part)
        self._held += len(part)
        if self._held > self._space:
            self._spill()

    def distinct(self) -> int:
        """The number of distinct hashes."""
        count = 0
        for part in self.sorted_parts():
            hashes = part["hash"]
            count += int((hashes[1:] != hashes[:-1]).sum()) + bool(len(hashes))
        return count

    def sorted_parts(self) -> Iterator[npt.NDArray[Any]]:
        """Yields all entries in order of hash, then of addition. Equal hashes are in one part."""
        if not self._is_spilled:
            if self._parts:
                self._parts = [sorted_entries(self._parts, self._dtype)]
                yield self._parts[0]
            return
        self._spill()
        for bucket in range(_BUCKETS):
            if os.path.exists(self._bucket(bucket)):
                yield sorted_entries([np.fromfile(self._bucket(bucket), self._dtype)], self._dtype)

    def _spill(self) -> None:
        self._is_spilled = True
        if not self._parts:
            return
        every = np.concatenate(self._parts)
        self._parts, self._held = [], 0
        bucket_of = (every["hash"] >> np.uint64(56)).astype(np.int64)
        order = np.argsort(bucket_of, kind="stable")
        ends = np.cumsum(np.bincount(bucket_of, minlength=_BUCKETS))
        for bucket, rows in enumerate(np.split(order, ends[:-1])):
            if len(rows):
                with open(self._bucket(bucket), "ab") as file:
                    file.write(every[rows].tobytes())

    def _bucket(self, number: int) -> str:
        return os.path.join(self._folder, f"{number:03}")


def hashes_of(keys: Any) -> npt.NDArray[np.uint64]:
    """Returns the hash of each key, of Bytes or of an array of int64."""
    if isinstance(keys, Bytes):
        return _native.hash_strings(keys.data, keys.offsets)
    return _native.hash_ints(np.ascontiguousarray(keys))


def entries_of(hashes: npt.NDArray[np.uint64], numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Returns hashes, and the numbers of their records."""
    entries = np.empty(len(hashes), _ENTRY)
    entries["hash"] = hashes
    entries["number"] = numbers
    return entries


def sorted_entries(
    parts: Sequence[npt.NDArray[Any]], dtype: np.dtype[Any] = _ENTRY
) -> npt.NDArray[Any]:
    """Returns all entries in order of hash. Entries with equal hashes keep their order."""
    entries = np.concatenate([np.empty(0, dtype), *parts])
    # Sorted parts are only merged.
    in_order: npt.NDArray[Any] = entries[np.argsort(entries["hash"], kind="stable")]
    return in_order
