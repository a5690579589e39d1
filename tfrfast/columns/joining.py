"""Columns of several batches, end to end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrfast.columns.pictures import Pictures
from tfrfast.columns.ragged import Ragged
from tfrfast.columns.strings import Bytes

__all__ = ["joined"]


def joined(parts: Sequence[Any]) -> Any:
    """Joins columns of one class and type. A single column is not copied."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], Bytes):
        data = np.concatenate([each.data[each.offsets[0] : each.offsets[-1]] for each in parts])
        shape = (sum(map(len, parts)), *parts[0].shape[1:])
        return Bytes(data, _ends([each.offsets for each in parts]), shape)
    if isinstance(parts[0], Ragged):
        values = [each.values[int(each.row_splits[0]) : int(each.row_splits[-1])] for each in parts]
        return Ragged(joined(values), _ends([each.row_splits for each in parts]))
    if isinstance(parts[0], Pictures):
        rows = joined([each._rows() for each in parts])
        return Pictures(rows.values, rows.row_splits, joined([each.shapes for each in parts]))
    return np.concatenate(parts)


def _ends(offsets: Sequence[Any]) -> Any:
    """Returns the offsets of all parts. Each part continues at its predecessor's end."""
    sizes = np.concatenate([np.diff(each) for each in offsets])
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
