"""Records as JSON, one object a line, a few microseconds each."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrfast.cli.examples import Piece, listed, rows_of
from tfrfast.columns import Bytes, Ragged

# Between these bounds, the power of ten that moves all digits before the point is exact.
_SMALL, _LARGE = 1e-12, 1e15
_FLOAT32_DIGITS = (9, 8, 7, 6)
_POWERS_OF_TEN = np.array([float(f"1e{power}") for power in range(23)])


class JsonLines:
    """Writes `{"record": 5, "bytes": 99, "features": {"label": [1]}}` for each record.

    A number that is not finite is null. The first records settle the form of a feature's byte
    strings: strings if all are UTF-8, otherwise `{"hex": "ff00"}`. A later byte that is not UTF-8
    is written `\\xff`. A record that is not an Example has "kind" and "hex", not "features".

    At most `limit` values of a feature and bytes of a string are shown. "truncated" then names the
    features that were cut.
    """

    def __init__(self, limit: int | None, features_only: bool) -> None:
        self._limit = limit
        self._features_only = features_only
        self._is_text: dict[str, bool] = {}
        self._truncated: dict[int, list[str]] = defaultdict(list)

    def lines(self, piece: Piece) -> list[str]:
        numbers = piece.numbers()
        sizes = np.diff(np.asarray(piece.batch.offsets)).tolist()
        self._truncated.clear()
        cells = {name: self._cells(name, column) for name, column in piece.columns.items()}
        if cells and all(all(each) for each in cells.values()):
            names = [json.dumps(name).replace("%", "%%") for name in cells]
            form = '{"record": %d, "bytes": %d, "features": {'
            form += ", ".join(f"{name}: [%s]" for name in names) + "}}"
            lines = [form % row for row in zip(numbers, sizes, *cells.values(), strict=True)]
        else:
            lines = [
                f'{{"record": {number}, "bytes": {size}, {self._content(piece, row, cells)}}}'
                for row, (number, size) in enumerate(zip(numbers, sizes, strict=True))
            ]
        for row, cut in self._truncated.items():
            lines[row] = f'{lines[row][:-1]}, "truncated": {json.dumps(cut)}}}'
        return lines

    def _content(self, piece: Piece, row: int, cells: dict[str, list[str]]) -> str:
        some = ", ".join(
            f"{json.dumps(name)}: [{rows[row]}]" for name, rows in cells.items() if rows[row]
        )
        if some or (self._features_only and piece.kind is None):
            return f'"features": {{{some}}}'
        record = piece.batch[row]
        if self._limit is not None and len(record) > self._limit:
            self._truncated[row].append("hex")
        kind = "" if piece.kind is None else f'"kind": "{piece.kind.removeprefix("a ")}", '
        return f'{kind}"hex": "{record[: self._limit].hex()}"'

    def _cells(self, name: str, column: Ragged) -> list[str]:
        """Returns the text between the brackets, row by row. Empty for a row without values."""
        if self._limit is not None:
            for row in np.flatnonzero(np.diff(column.row_splits) > self._limit).tolist():
                self._truncated[row].append(name)
        if not isinstance(column.values, Bytes):
            return _numbers(np.asarray(column.values), column, self._limit)
        strings = [*map(self._encoder(name, listed(column)), self._cut(name, column))]
        return [", ".join(row) for row in rows_of(strings, column, self._limit)]

    def _cut(self, name: str, column: Ragged) -> list[bytes]:
        values: list[bytes] = listed(column)
        limit = self._limit
        if limit is None:
            return values
        for row, strings in enumerate(rows_of(values, column, limit)):
            if name not in self._truncated.get(row, ()) and any(len(s) > limit for s in strings):
                self._truncated[row].append(name)
        return [value[:limit] for value in values]

    def _encoder(self, name: str, values: Sequence[bytes]) -> Any:
        if name not in self._is_text:
            self._is_text[name] = all(map(_is_utf8, values))
        if not self._is_text[name]:
            return lambda value: f'{{"hex": "{value.hex()}"}}'
        if self._limit is None:
            return lambda value: encode_basestring_ascii(value.decode("utf-8", "backslashreplace"))
        limit = self._limit
        return lambda value: encode_basestring_ascii(_decode_cut(value, limit))


def _numbers(values: npt.NDArray[Any], column: Ragged, limit: int | None) -> list[str]:
    plain: Any = values
    if values.dtype == np.float32:
        plain = _shortest(values)
        finite = np.isfinite(plain)
        if not finite.all():
            plain = np.where(finite, plain.astype(object), None)
    counts = np.diff(column.row_splits)
    if limit is None and counts.size and counts[0] > 0 and (counts == counts[0]).all():
        rows = plain.reshape(len(counts), -1).tolist()
    else:
        rows = list(rows_of(plain.tolist(), column, limit))
    # One call for the whole column: "[[1, 2], [], [3]]", of numbers, brackets, commas and null.
    return json.dumps(rows)[2:-2].split("], [")


def _shortest(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Returns numbers with the fewest digits that tell them from their neighbours in float32: 0.1,
    not 0.10000000149011612.
    """
    exact = values.astype(np.float64)
    size = np.abs(exact)
    usual = (size > _SMALL) & (size < _LARGE)
    some = exact[usual]
    leading = np.floor(np.log10(size[usual])).astype(np.int64)
    best = some.copy()
    for digits in _FLOAT32_DIGITS:
        places = digits - 1 - leading
        up = _POWERS_OF_TEN[np.maximum(places, 0)]
        down = _POWERS_OF_TEN[np.maximum(-places, 0)]
        rounded = np.rint(some * up / down) / up * down
        best = np.where(rounded.astype(np.float32) == some, rounded, best)
    exact[usual] = best
    rare = np.isfinite(exact) & ~usual & (exact != 0)
    exact[rare] = [float(str(value)) for value in values[rare]]
    return exact


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _decode_cut(value: bytes, limit: int) -> str:
    """Decodes the text, without a last character that the limit has cut."""
    if len(value) == limit:
        for lost in range(min(4, limit)):
            whole = value[: limit - lost]
            if _is_utf8(whole):
                return whole.decode()
    return value.decode("utf-8", "backslashreplace")
