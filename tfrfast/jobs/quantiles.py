"""Exact quantiles of numbers that are kept: in memory, and beyond a limit in a temporary file."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from io import FileIO
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["KeptNumbers", "Piece", "quantiles_of"]

# Columns that are taken at a time, if they are short.
_BLOCK_BYTES = 64 << 20
# Numbers of a column's sample, and how many on each side of a rank are taken to be near.
_SAMPLED = 1 << 14
_NEAR = 400
# To sort all numbers takes no longer than so many quantiles.
_SORTING = 20


class _InFile(NamedTuple):
    """The place of an array in the file."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


#: Kept numbers: a row for each position of a feature.
Piece = NDArray[Any] | _InFile


class KeptNumbers:
    """Keeps arrays: the first `most_bytes` in memory, and the others in a file without a name."""

    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes
        self._file: FileIO | None = None

    def __enter__(self) -> KeptNumbers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def keep(self, arrays: Sequence[NDArray[Any]]) -> Sequence[Piece]:
        self._left -= sum(each.nbytes for each in arrays)
        if self._left >= 0 or not arrays:
            return arrays
        try:
            # The numbers of one position together, so that later reads are long.
            return [self._written(np.ascontiguousarray(np.concatenate(arrays, axis=1)))]
        except OSError as error:
            raise type(error)(
                error.errno,
                f"Keeping numbers in a temporary file failed: {error.strerror}. Quantiles keep all "
                "numbers beyond a gibibyte there, with 4 or 8 bytes each. Let TMPDIR name a folder "
                "on a larger disk, or ask for fewer features",
                tempfile.gettempdir(),
            ) from None

    def _written(self, array: NDArray[Any]) -> _InFile:
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        offset = self._file.tell()
        left = array.reshape(-1).view(np.uint8).data
        while len(left):
            left = left[self._file.write(left) :]
        return _InFile(offset, array.shape, array.dtype)

    def joined(self, pieces: Sequence[Piece], rows: range) -> NDArray[Any]:
        """Returns these rows of all pieces, end to end."""
        bounds = np.cumsum([0, *(piece.shape[1] for piece in pieces)]).tolist()
        joined = np.empty((len(rows), bounds[-1]), pieces[0].dtype)
        for piece, begin, end in zip(pieces, bounds, bounds[1:], strict=False):
            joined[:, begin:end] = self._rows_of(piece, rows)
        return joined

    def _rows_of(self, piece: Piece, rows: range) -> NDArray[Any]:
        if not isinstance(piece, _InFile):
            return piece[rows.start : rows.stop]
        assert self._file is not None
        read = np.empty((len(rows), piece.shape[1]), piece.dtype)
        left = read.reshape(-1).view(np.uint8).data
        self._file.seek(piece.offset + rows.start * piece.shape[1] * piece.dtype.itemsize)
        while len(left):
            left = left[self._file.readinto(left) :]
        return read


def quantiles_of(
    kept: KeptNumbers, pieces: Sequence[Piece], positions: int, quantiles: Sequence[float]
) -> NDArray[np.float64]:
    """Returns the quantiles at each position, as NumPy's `quantile` gives them without NaN."""
    result = np.full((len(quantiles), positions), math.nan)
    num_bytes = sum(piece.shape[1] * piece.dtype.itemsize for piece in pieces)
    at_once = max(1, _BLOCK_BYTES // max(1, num_bytes))
    for first in range(0, positions if num_bytes else 0, at_once):
        rows = range(first, min(first + at_once, positions))
        for position, numbers in zip(rows, kept.joined(pieces, rows), strict=True):
            if numbers.dtype.kind == "f" and (is_nan := np.isnan(numbers)).any():
                numbers = numbers[~is_nan]
            if len(numbers):
                result[:, position] = _quantiles(numbers, quantiles)
    return result


def _quantiles(numbers: NDArray[Any], quantiles: Sequence[float]) -> list[float]:
    """Returns the quantiles. Changes the order of the numbers."""
    if is_sorted := len(quantiles) > _SORTING:
        numbers.sort()
    ends = [numbers.min(), numbers.max()]
    sample = np.sort(np.append(numbers[:: 1 + len(numbers) // _SAMPLED], ends))
    found = []
    for quantile in quantiles:
        low, high = _ranks(quantile, len(numbers))
        below, near = (0, numbers) if is_sorted else _near(numbers, sample, low, high)
        share = quantile * (len(numbers) - 1) - low
        value = _between(float(near[low - below]), float(near[high - below]), share)
        found.append(value + 0.0)  # which zero a rank has depends on the order of the numbers
    return found


def _near(
    numbers: NDArray[Any], sample: NDArray[Any], low: int, high: int
) -> tuple[int, NDArray[Any]]:
    """Returns numbers that are in order at two ranks, and how many smaller numbers are left out."""
    # To partition the numbers near the sample's quantile takes a third of the time of all.
    at = low * len(sample) // len(numbers)
    first, last = sample[max(0, at - _NEAR)], sample[min(at + _NEAR, len(sample) - 1)]
    below = int(np.count_nonzero(numbers < first))
    near = numbers[(first <= numbers) & (numbers <= last)]
    if not below <= low <= high < below + len(near):
        below, near = 0, numbers
    near.partition([low - below, high - below])
    return below, near


def _ranks(quantile: float, count: int) -> tuple[int, int]:
    low = math.floor(quantile * (count - 1))
    return low, min(low + 1, count - 1)


def _between(low: float, high: float, share: float) -> float:
    if share == 0 or low == high:
        return low
    if math.isinf(low) or math.isinf(high):
        return low + high
    return high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share
