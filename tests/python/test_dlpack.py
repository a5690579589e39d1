"""Frameworks take columns without a copy, and keep their memory alive."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

ROWS = 37
COLUMNS = {
    "i": np.arange(ROWS * 5).reshape(ROWS, 5),
    "f": np.arange(ROWS * 3, dtype=np.float32).reshape(ROWS, 3),
    "scalar": np.arange(ROWS),
    "flag": np.arange(ROWS) % 2,
    "raw": [bytes([row]) * 12 for row in range(ROWS)],
    "ragged": tfr.Ragged(np.arange(60), np.array([0] * (ROWS - 3) + [5, 20, 40, 60])),
}
FEATURES = {
    "i": tfr.FixedLen([5], "int64"),
    "f": tfr.FixedLen([3], "float32"),
    "scalar": tfr.FixedLen([], "int32"),
    "flag": tfr.FixedLen([], "bool"),
    "raw": tfr.FixedLen([2, 6], "uint8", raw=True),
    "ragged": tfr.VarLen("int64"),
}


@pytest.fixture(params=["parse_example", "Loader"])
def columns(request: pytest.FixtureRequest, tmp_path: Path) -> list[Any]:
    records = tfr.encode_examples(COLUMNS)
    if request.param == "parse_example":
        batch = tfr.parse_example(records, FEATURES)
    else:
        with tfr.Writer(tmp_path / "shard") as writer:
            writer.write_batch(records)
        batch = next(iter(tfr.Loader(tmp_path / "shard", ROWS, features=FEATURES)))
    return list(arrays_of(batch))


def arrays_of(batch: tfr.Batch) -> Iterator[Any]:
    for column in batch.values():
        if isinstance(column, tfr.Ragged):
            yield from (column.values, column.row_splits)
        else:
            yield column


def check_lifetime(columns: list[Any], taken: list[Any]) -> None:
    """Drops the columns and makes new columns. A framework's arrays must not change."""
    expected = [column.copy() for column in columns]
    columns.clear()
    gc.collect()
    for _ in range(20):
        tfr.parse_example(tfr.encode_examples(COLUMNS), FEATURES)
    for each, content in zip(taken, expected, strict=True):
        assert np.array_equal(np.asarray(each), content)


def test_torch(columns: list[Any]) -> None:
    torch = pytest.importorskip("torch")
    taken = [torch.from_dlpack(column) for column in columns]
    for tensor, column in zip(taken, columns, strict=True):
        assert tensor.data_ptr() == column.ctypes.data
        assert tuple(tensor.shape) == column.shape
        tensor.reshape(-1)[0] = 1  # writable, and seen from both sides
        assert column.reshape(-1)[0] == 1
    check_lifetime(columns, taken)


def test_jax(columns: list[Any]) -> None:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)  # JAX has no int64 unless asked to
    try:
        # JAX refuses if it would need a copy, for lack of alignment for example.
        taken = [jax.dlpack.from_dlpack(column, copy=False) for column in columns]
        for array, column in zip(taken, columns, strict=True):
            assert array.unsafe_buffer_pointer() == column.ctypes.data
            assert array.shape == column.shape
        check_lifetime(columns, taken)
    finally:
        jax.config.update("jax_enable_x64", before)
