"""Records for people and scripts to read: tf.train.Examples by feature, anything else as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrfast.columns import Bytes, Ragged
from tfrfast.errors import FeatureError
from tfrfast.example import infer_features, parse_example
from tfrfast.features import VarLen

_MAX_VALUES_SHOWN = 8
_MAX_BYTES_SHOWN = 48


def example_values(record: bytes) -> dict[str, list[Any]] | None:
    """Feature -> values, or None if the record is not an Example or has no features."""
    try:
        features = {name: VarLen(spec.dtype) for name, spec in infer_features([record]).items()}
        columns = parse_example([record], features)
    except (FeatureError, UnicodeDecodeError):
        return None
    return {name: _first_row(columns[name]) for name in sorted(columns)} or None


def jsonable(values: list[Any]) -> list[Any]:
    """Byte strings as text where they are UTF-8, otherwise as {"hex": ...}."""
    return [_text_or_hex(value) if isinstance(value, bytes) else value for value in values]


def shorten(values: list[Any]) -> str:
    shown = [
        shorten_bytes(value)
        if isinstance(value, bytes)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
        for value in values[:_MAX_VALUES_SHOWN]
    ]
    more = len(values) - len(shown)
    return ", ".join(shown) + (f", ... {more} more" if more else "")


def shorten_bytes(value: bytes) -> str:
    shown = repr(value[:_MAX_BYTES_SHOWN])
    return shown if len(value) <= _MAX_BYTES_SHOWN else f"{shown}... {len(value)} bytes"


def _first_row(column: Ragged) -> list[Any]:
    values = column.values
    row: list[Any] = values.tolist() if isinstance(values, Bytes) else np.asarray(values).tolist()
    return row


def _text_or_hex(value: bytes) -> str | dict[str, str]:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}
