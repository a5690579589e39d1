"""Records by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast.base.arguments import Int64Array
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.columns.strings import Bytes
from tfrfast.features import FixedLen
from tfrfast.features.compiling import compile_features
from tfrfast.keys.entries import hashes_of
from tfrfast.keys.key_file import KeyFile

__all__ = ["Keyed"]

Key = bytes | str | int
Default = TypeVar("Default")


class Keyed:
    """The records of a Reader by key: the value of one feature. `Reader.by_key` returns it.

        records = reader.by_key("image/id")
        records[b"cat_17"], records[[b"cat_17", b"dog_3"]]  # bytes, and a RecordBatch

    If several records share a key, the key stands for the first record. String keys are bytes, or
    text as UTF-8. Every read checks that the record has the key. Raises KeyError for a key without
    a record. Many threads may use one Keyed.
    """

    def __init__(self, core: _native.Reader, path: str, file: KeyFile, piece_size: int) -> None:
        self._core = core
        self._piece_size = piece_size  # the number of records that `join` holds at a time
        self._path = path
        self._file = file
        self._is_int = file.has_ints

    @property
    def path(self) -> str:
        """The key file."""
        return self._path

    @property
    def feature(self) -> str:
        """The name of the key's feature."""
        return self._file.feature

    @property
    def duplicates(self) -> int:
        """The number of records whose key an earlier record has, too."""
        return self._file.num_entries - self._file.num_distinct

    def _parse(self, text: str) -> Key:
        """Returns a key that was typed: the text itself, or the integer that it stands for."""
        if not self._is_int:
            return text
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"Keys of {self.feature!r} are integers, not {text!r}.") from None

    def __len__(self) -> int:
        """The number of keys."""
        return self._file.num_distinct

    @overload
    def __getitem__(self, key: Key) -> bytes: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, key: Sequence[Key] | npt.NDArray[Any] | Bytes) -> _native.RecordBatch: ...
    def __getitem__(self, key: Any) -> Any:
        """Returns the record with this key, or the records with several keys, in that order."""
        if isinstance(key, (np.ndarray, Bytes)) and key.ndim == 0:
            key = key[()]
        if type(key) is bytes and not self._is_int:
            record = self._file.item(self._core, key)
        elif isinstance(key, (bytes, str, int, np.integer)):
            record = self._item(key)
        else:
            return self._records(key)
        if record is None:
            raise KeyError(key)
        return record

    @explains_arguments
    def get(self, key: Key, default: Default | None = None) -> bytes | Default | None:
        """Returns the record with this key, or `default`."""
        record = self._item(key)
        return default if record is None else record

    def __contains__(self, key: Key) -> bool:
        return self._item(key) is not None

    @explains_arguments
    def all(self, key: Key) -> _native.RecordBatch:
        """Returns all records with this key, in record order; no records for an unknown key."""
        column, fits = self._column([key])
        hash = int(hashes_of(column)[0])
        numbers = self._file.numbers(hash) if fits[0] else np.empty(0, np.int64)
        records = self._core.read(numbers)
        return records[self._have(records, column[np.zeros(len(records), np.int64)])]

    @explains_arguments
    def find(self, keys: Sequence[Key] | npt.NDArray[Any] | Bytes) -> Int64Array:
        """Returns the number of the first record with each key, and -1 for keys without a record.

        Reads no records, but trusts the hashes of keys. Two keys have equal hashes once in 2^64.
        Indexing (`records[key]`) checks the keys.
        """
        return self._find(*self._column(keys))

    @explains_arguments
    def join(self, other: Keyed) -> tuple[Int64Array, Int64Array]:
        """Returns the numbers of the first records here and there with equal keys, for each shared
        key.

        Pairs come in the order of the keys' hashes. All these keys are read and compared. If
        damaged records are left out, so are pairs with a damaged record.
        """
        if self._is_int != other._is_int:
            raise TypeError("Keys that are strings never equal keys that are integers.")
        few, many = sorted((self, other), key=lambda each: each._file.num_entries)
        hashes = np.unique(few._file.hashes)
        common = hashes[many._file.find(hashes) >= 0]
        ours, theirs = self._file.find(common), other._file.find(common)
        equal = self._have_equal_keys(ours, other, theirs)
        return ours[equal], theirs[equal]

    def find_duplicates(self) -> tuple[Int64Array, Int64Array]:
        """Returns the numbers of all records whose key an earlier record has, and for each of them
        the first record with its key.

            repeated, firsts = reader.by_key("image/id").find_duplicates()

        All these keys are read and compared. Damaged records that are left out are no duplicates.
        """
        hashes = self._file.hashes
        later = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1
        repeated = self._file.numbers_of(later)
        firsts = self._file.numbers_of(hashes.searchsorted(hashes[later]))
        equal = self._have_equal_keys(firsts, self, repeated)
        if not equal.all():  # different keys with one hash, or damage
            for first in np.unique(firsts[~equal]).tolist():
                rows = np.flatnonzero(firsts == first)
                seen: dict[Any, int] = {}
                batch = self._core.read(np.append(first, repeated[rows]))
                for number, key in zip(batch.indices.tolist(), self._keys_of(batch), strict=True):
                    earliest = seen.setdefault(key, number)
                    firsts[rows[repeated[rows] == number]] = earliest
                    equal[rows[repeated[rows] == number]] = earliest < number
        order = np.argsort(repeated[equal])
        return repeated[equal][order], firsts[equal][order]

    def _have_equal_keys(
        self, ours: Int64Array, other: Keyed, theirs: Int64Array
    ) -> npt.NDArray[np.bool_]:
        """Returns for each pair of records whether both are intact and have one key."""
        equal = np.zeros(len(ours), np.bool_)
        size = min(self._piece_size, other._piece_size)
        for first in range(0, len(ours), size):
            rows = np.arange(first, min(first + size, len(ours)))
            here, there = self._core.read(ours[rows]), other._core.read(theirs[rows])
            if min(len(here), len(there)) < len(rows):  # damage was left out
                intact = np.isin(ours[rows], here.indices) & np.isin(theirs[rows], there.indices)
                rows = rows[intact]
                here, there = self._core.read(ours[rows]), other._core.read(theirs[rows])
            equal[rows] = other._have(there, self._keys_of(here))
        return equal

    def _item(self, key: Any) -> bytes | None:
        checked = self._checked(key)
        return None if checked is None else self._file.item(self._core, checked)

    def _find(self, column: Any, fits: npt.NDArray[np.bool_]) -> Int64Array:
        numbers = self._file.find(hashes_of(column))
        numbers[~fits] = -1
        return numbers

    def _records(self, keys: Any) -> _native.RecordBatch:
        column, fits = self._column(keys)
        numbers = self._find(column, fits)
        missing = np.flatnonzero(numbers < 0)
        if len(missing):
            row = int(missing[0])
            raise KeyError(column[row] if fits[row] else "an integer that int64 cannot hold")
        records = self._core.read(numbers)
        if len(records) < len(numbers):  # damage was left out, and single reads tell where
            lost = np.flatnonzero(~np.isin(numbers, records.indices))
            self._item(column[int(lost[0])])
        wrong = np.flatnonzero(~self._have(records, column)).tolist()
        for row in wrong:  # another key has the same hash
            some = self.all(column[row])
            if not len(some):
                raise KeyError(column[row])
            numbers[row] = some.indices[0]
        return self._core.read(numbers) if wrong else records

    def _checked(self, key: Any) -> bytes | int | None:
        """Returns the key for the native code; None for an integer that no record can have."""
        if self._is_int and isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            return int(key) if -(2**63) <= int(key) < 2**63 else None
        if not self._is_int and isinstance(key, (bytes, str)):
            return key.encode() if isinstance(key, str) else key
        wanted = "an integer" if self._is_int else "bytes or str"
        raise TypeError(f"A key of {self.feature!r} is {wanted}, not {type(key).__name__}.")

    def _column(self, keys: Any) -> tuple[Any, npt.NDArray[np.bool_]]:
        """Returns keys as an int64 array or Bytes, and a mask of the keys that fit. Other keys have
        arbitrary values.
        """
        # Their items would be bytes or letters.
        is_single = isinstance(keys, (bytes, bytearray, memoryview, str))
        if is_single or getattr(keys, "ndim", None) == 0:
            raise TypeError(f"This takes several keys. Put a single key into a list: [{keys!r}].")
        if isinstance(keys, Bytes) and not self._is_int:
            return keys, np.ones(len(keys), np.bool_)
        if self._is_int and isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
            flat = keys.reshape(-1)
            fits = flat <= np.iinfo(np.int64).max
            return np.ascontiguousarray(flat, np.int64), fits
        to_list = getattr(keys, "tolist", None) or getattr(keys, "to_pylist", None)
        checked: list[Any] = [self._checked(key) for key in (to_list() if to_list else keys)]
        fits = np.array([key is not None for key in checked], np.bool_)
        if self._is_int:
            return np.array([0 if key is None else key for key in checked], np.int64), fits
        offsets = np.zeros(len(checked) + 1, np.int64)
        np.cumsum([len(key) for key in checked], out=offsets[1:])
        return Bytes(np.frombuffer(b"".join(checked), np.uint8), offsets), fits

    def _have(self, records: _native.RecordBatch, column: Any) -> npt.NDArray[np.bool_]:
        """Returns a mask of the records that have their keys."""
        if self._is_int:
            return _native.check_ints(records, self.feature, column)
        return _native.check_strings(records, self.feature, column.data, column.offsets)

    def _keys_of(self, records: _native.RecordBatch) -> Any:
        compiled = compile_features(
            {self.feature: FixedLen((), "int64" if self._is_int else "bytes")}
        )
        native = compiled.parser.parse_flat(records.data, records.offsets, records.indices)
        return compiled.assemble(native)[self.feature]

    def __repr__(self) -> str:
        return f"Keyed({self.feature!r}, {len(self)} keys, {self.duplicates} duplicates)"
