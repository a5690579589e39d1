"""The features of records, as columns and as text."""

from __future__ import annotations

import itertools
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrfast._native import RecordBatch, printable, record_kind
from tfrfast.base.contents import contents_of
from tfrfast.columns import Bytes, Ragged
from tfrfast.errors import FeatureError
from tfrfast.example.parsing import infer_features, parse_example
from tfrfast.features import VarLen

_EXAMPLE = record_kind(b"")


class ShownBatch(NamedTuple):
    """Some records and their features. A record has a feature if it has values for the feature.

    `found` names all features of the records, and `columns` holds the shown features. `kind` says
    what a single record holds that is no Example.
    """

    batch: RecordBatch
    found: set[str]
    columns: dict[str, Ragged]
    kind: str | None = None

    def numbers(self) -> list[int]:
        numbers: list[int] = np.asarray(self.batch.indices).tolist()
        return numbers


def shown_batches(
    batches: Iterable[RecordBatch], fields: Sequence[str] | None
) -> Iterator[ShownBatch]:
    """Yields the records with all their features, or with the features in `fields`.

    A batch whose records do not agree on the type of a feature, or are not all Examples, becomes
    pieces of one record.
    """
    for batch in batches:
        try:
            yield _piece(batch, fields)
            continue
        except FeatureError:
            pass
        for row in range(len(batch)):
            alone = batch[row : row + 1]
            try:
                yield _piece(alone, fields)
            except FeatureError:
                kind = record_kind(alone[0])
                yield ShownBatch(alone, set(), {}, None if kind == _EXAMPLE else kind)


def _piece(batch: RecordBatch, fields: Sequence[str] | None) -> ShownBatch:
    found = infer_features(batch, len(batch))
    names = sorted(found) if fields is None else [name for name in fields if name in found]
    if not names:
        return ShownBatch(batch, set(found), {})
    lists = {dtype: VarLen(dtype) for dtype in {found[name].dtype for name in names}}
    parsed = parse_example(batch, {name: lists[found[name].dtype] for name in names})
    return ShownBatch(batch, set(found), {name: parsed[name] for name in names})


def rows_of(values: Sequence[Any], column: Ragged, limit: int | None) -> Iterator[Sequence[Any]]:
    """Yields the rows of `values`, the column's values. A row has at most `limit` values."""
    splits = np.asarray(column.row_splits)
    begins, ends = splits[:-1], splits[1:]
    if limit is not None:
        ends = np.minimum(ends, begins + limit)
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        yield values[begin:end]


def listed(column: Ragged) -> list[Any]:
    """Returns all values of the column, from the first row to the last."""
    values = column.values
    flat: list[Any] = values.tolist() if isinstance(values, Bytes) else np.asarray(values).tolist()
    return flat


def text_of(piece: ShownBatch, max_values: int, max_bytes: int) -> Iterator[str]:
    """Yields a few lines about each record."""
    rows = [list(rows_of(listed(column), column, None)) for column in piece.columns.values()]
    for row, number in enumerate(piece.numbers()):
        record = piece.batch[row]
        head = f"record {number}: {len(record):,} bytes"
        if piece.kind is not None and piece.kind.startswith("a "):
            head += f", {piece.kind}"
        features = [
            f"  {printable(name)}: {shortened(values[row], max_values, max_bytes)}"
            for name, values in zip(piece.columns, rows, strict=True)
            if values[row]
        ]
        yield "\n".join([head, *features] if features else [f"{head}  {quoted(record, max_bytes)}"])


def shortened(values: Sequence[Any], max_values: int, max_bytes: int) -> str:
    """Returns the first values as text."""

    def text(value: Any) -> str:
        if isinstance(value, list):
            return f"[{shortened(value, max_values, max_bytes)}]"
        if isinstance(value, bytes):
            return quoted(value, max_bytes)
        return f"{value:g}" if isinstance(value, float) else str(value)

    shown = [text(value) for value in itertools.islice(values, max_values)]
    more = len(values) - len(shown)
    return ", ".join(shown) + (f", ... {more} more" if more else "")


def beginning(text: bytes, limit: int) -> str:
    """Returns the first bytes of a text, without a character that the limit divides."""
    decoder = getincrementaldecoder("utf-8")("backslashreplace")
    return decoder.decode(text[:limit], final=len(text) <= limit)


def quoted(value: bytes, max_bytes: int) -> str:
    """Returns a byte string as text: what it holds, or its first bytes."""
    if described := contents_of(value).described(len(value)):
        return described
    shown = repr(value[:max_bytes])
    return shown if len(value) <= max_bytes else f"{shown}... {len(value)} bytes"
