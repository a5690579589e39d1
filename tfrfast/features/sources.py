"""Serialized records in the two forms that the native parsers take, and samples of records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from tfrfast import _native

__all__ = ["FlatRecords", "Look", "Sample", "Serialized", "source_of"]

Columns = TypeVar("Columns", covariant=True)


class Sample(NamedTuple):
    """Some records, and their numbers and their reader, if they have one, for error messages."""

    records: Sequence[bytes]
    numbers: Sequence[int]
    reader: _native.Reader | None = None


# Returns about the requested number of records.
Look = Callable[[int], Sample]


class Parser(Protocol[Columns]):
    """A native parser, of Examples or of SequenceExamples."""

    def parse(self, records: list[bytes], /) -> Columns: ...
    def parse_flat(
        self,
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        indices: npt.NDArray[np.int64],
        /,
    ) -> Columns: ...


@runtime_checkable
class FlatRecords(Protocol):
    """Records end to end in one array, as a RecordBatch holds them."""

    @property
    def data(self) -> npt.NDArray[np.uint8]: ...
    @property
    def offsets(self) -> npt.NDArray[np.int64]: ...


Serialized: TypeAlias = Iterable[bytes] | FlatRecords


class _EndToEnd(NamedTuple):
    """Records end to end, with their numbers and a mask of the real records."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int64]
    valid: npt.NDArray[np.bool_]
    source_starts: npt.NDArray[np.int64] | None

    def parsed_by(self, parser: Parser[Columns]) -> Columns:
        return parser.parse_flat(self.data, self.offsets, self.indices)

    def first(self, count: int) -> Sample:
        bounds = itertools.pairwise(self.offsets[: count + 1].tolist())
        records = [self.data[start:end].tobytes() for start, end in bounds]
        return Sample(records, self.indices[:count].tolist())

    def record(self, number: int) -> bytes:
        """Returns the record with the number that a parsing error names."""
        row = int(np.flatnonzero(self.indices == number)[0])
        start, end = self.offsets[row : row + 2].tolist()
        return self.data[start:end].tobytes()


class _Separate(NamedTuple):
    """Records without numbers. They are counted from 0, and all are real."""

    records: list[bytes]
    source_starts: None = None

    @property
    def indices(self) -> npt.NDArray[np.int64]:
        return np.arange(len(self.records), dtype=np.int64)

    @property
    def valid(self) -> npt.NDArray[np.bool_]:
        return np.ones(len(self.records), np.bool_)

    def parsed_by(self, parser: Parser[Columns]) -> Columns:
        return parser.parse(self.records)

    def first(self, count: int) -> Sample:
        return Sample(self.records[:count], range(min(count, len(self.records))))

    def record(self, number: int) -> bytes:
        return self.records[number]


def source_of(serialized: Serialized) -> _EndToEnd | _Separate:
    if not isinstance(serialized, FlatRecords):
        if isinstance(serialized, (bytes, str)):
            raise TypeError(
                "serialized records are a list of bytes: put a single record into a list"
            )
        return _Separate(list(serialized))
    count = len(serialized.offsets) - 1
    indices = getattr(serialized, "indices", None)
    valid = getattr(serialized, "valid", None)
    return _EndToEnd(
        serialized.data,
        serialized.offsets,
        np.arange(count, dtype=np.int64) if indices is None else indices,
        np.ones(count, np.bool_) if valid is None else valid,
        getattr(serialized, "source_starts", None),
    )
