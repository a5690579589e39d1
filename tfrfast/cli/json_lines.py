"""Records as JSON, one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfrfast.cli.shown_batches import ShownBatch, beginning, listed, rows_of
from tfrfast.columns import Bytes, Ragged


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

    def lines(self, piece: ShownBatch) -> Iterator[str]:
        columns = {name: self._rows(name, column) for name, column in piece.columns.items()}
        for row, number in enumerate(piece.numbers()):
            record = piece.batch[row]
            line: dict[str, Any] = {"record": number, "bytes": len(record)}
            features = {name: rows[row] for name, rows in columns.items() if rows[row]}
            if features or (self._features_only and piece.kind is None):
                line["features"] = features
                cut = [name for name in features if self._is_cut(piece.columns[name][row])]
            else:
                if piece.kind is not None:
                    line["kind"] = piece.kind.removeprefix("a ")
                line["hex"] = record[: self._limit].hex()
                cut = ["hex"] if self._is_cut([record]) else []
            if cut:
                line["truncated"] = cut
            yield json.dumps(line)

    def _rows(self, name: str, column: Ragged) -> list[Sequence[Any]]:
        if isinstance(column.values, Bytes):
            strings = listed(column)
            is_text = self._is_text.setdefault(name, all(map(_is_utf8, strings)))
            values = [self._text(each) if is_text else self._hex(each) for each in strings]
        else:
            values = _numbers(np.asarray(column.values))
        return list(rows_of(values, column, self._limit))

    def _is_cut(self, values: Any) -> bool:
        limit = self._limit
        return limit is not None and (
            len(values) > limit
            or any(isinstance(each, bytes) and len(each) > limit for each in values)
        )

    def _hex(self, value: bytes) -> dict[str, str]:
        return {"hex": value[: self._limit].hex()}

    def _text(self, value: bytes) -> str:
        return beginning(value, len(value) if self._limit is None else self._limit)


def _numbers(values: np.ndarray[Any, Any]) -> list[Any]:
    if values.dtype != np.float32:
        return values.tolist()  # type: ignore[no-any-return]
    # The fewest digits that tell a number from its neighbours in float32: 0.1, not
    # 0.10000000149011612.
    return [float(each) if each[-1] not in "fn" else None for each in values.astype(str).tolist()]


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
