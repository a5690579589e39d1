"""Specs of features that hold for all records of a scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from tfrfast.columns.arrow_nodes import ArrowNode
from tfrfast.features import FixedLen, VarLen

__all__ = ["NO_VALUES", "settled_by_all"]

NO_VALUES = {"int64": 0, "float32": 0.0, "bytes": b""}


class _ScanOfLists(Protocol):
    features: Any

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


def settled_by_all(scan: _ScanOfLists) -> dict[str, FixedLen | VarLen]:
    """Returns the specs of `infer_features` for all records of a scan with only list columns."""
    features: Mapping[str, VarLen] = scan.features
    shortest = dict.fromkeys(features, np.iinfo(np.int64).max)
    longest = dict.fromkeys(features, 0)
    absent = dict.fromkeys(features, 0)
    for batch in ArrowNode.batches(scan):
        for column in batch.children:
            lengths = np.diff(column.offsets(np.int64))
            if column.null_count:
                absent[column.name] += column.null_count
                lengths = lengths[column.present()]
            if len(lengths):
                shortest[column.name] = min(shortest[column.name], int(lengths.min()))
                longest[column.name] = max(longest[column.name], int(lengths.max()))
    settled: dict[str, FixedLen | VarLen] = {}
    for name, spec in features.items():
        count = longest[name]
        if count == 0 or shortest[name] != count or (absent[name] and count != 1):
            settled[name] = spec
        else:
            default = NO_VALUES[spec.dtype] if absent[name] else None
            settled[name] = FixedLen(() if count == 1 else (count,), spec.dtype, default)
    return settled
