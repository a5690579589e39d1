"""Batches and their columns as Arrow's consumers see them."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from table_data import FEATURES, expected_row

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def batch(shards: list[str]) -> tfr.Batch:
    return next(iter(tfr.Loader(shards, 50, features=FEATURES, shuffle=False)))


def address_of(buffer: Any) -> int:
    return int(buffer.address)


def test_a_batch_is_a_record_batch_of_its_rows(batch: tfr.Batch) -> None:
    table = pa.record_batch(batch.to_arrow())
    table.validate(full=True)
    rows = table.to_pylist()
    for number in range(50):
        row = expected_row(number)
        # A Batch has defaults and empty rows, and does not show absence.
        row["lengths"] = -1 if row["lengths"] is None else row["lengths"]
        row = {name: [] if value is None else value for name, value in row.items()}
        assert rows[number] == row
    assert pa.RecordBatch._import_from_c_capsule(*batch.__arrow_c_array__()).equals(table)


def test_values_that_were_decoded_are_shared(batch: tfr.Batch) -> None:
    table = pa.record_batch(batch.to_arrow())
    dense = table["dense"]
    assert address_of(dense.values.buffers()[1]) == batch["dense"].ctypes.data
    assert address_of(table["name"].buffers()[2]) == batch["name"].data.ctypes.data
    assert address_of(table["id"].buffers()[1]) == batch["id"].ctypes.data
    batch["id"][0] = 1234
    assert table["id"][0].as_py() == 1234


def test_what_was_taken_outlives_the_batch(batch: tfr.Batch) -> None:
    table = pa.record_batch(batch.to_arrow())
    expected = batch["dense"].tolist()
    batch.clear()
    gc.collect()
    assert table["dense"].to_pylist() == expected


def test_arrays_from_elsewhere_are_copied() -> None:
    values = np.arange(6)
    column = pa.array(tfr.Ragged(values, np.array([0, 2, 6])))
    values[:] = 0
    assert column.to_pylist() == [[0, 1], [2, 3, 4, 5]]


def test_columns_of_every_class_become_arrays() -> None:
    words = tfr.Bytes(np.frombuffer(b"abcdef", np.uint8), np.array([0, 1, 1, 4, 6]))
    assert pa.array(words).to_pylist() == [b"a", b"", b"bcd", b"ef"]
    square = tfr.Bytes(words.data, words.offsets, (2, 2))
    assert pa.array(square).to_pylist() == [[b"a", b""], [b"bcd", b"ef"]]
    rows = tfr.Ragged(words, np.array([0, 0, 3, 4], np.int32))
    assert pa.array(rows).to_pylist() == [[], [b"a", b"", b"bcd"], [b"ef"]]
    nested = tfr.Ragged(rows, np.array([0, 2, 3]))
    assert pa.array(nested).to_pylist() == [[[], [b"a", b"", b"bcd"]], [[b"ef"]]]
    steps = tfr.Ragged(np.arange(8.0).reshape(4, 2), np.array([0, 1, 4]))
    assert pa.array(steps).to_pylist() == [[[0, 1]], [[2, 3], [4, 5], [6, 7]]]
    sparse = tfr.Sparse(np.array([[2, 5], [0, 1], [2, 3]]), np.array([7, 8, 9]), np.array([3, 9]))
    assert pa.array(sparse).to_pylist() == [
        [{"position": 1, "value": 8}],
        [],
        [{"position": 5, "value": 7}, {"position": 3, "value": 9}],
    ]


def test_views_of_columns_are_taken_from_where_they_begin(batch: tfr.Batch) -> None:
    assert pa.array(batch["name"][7:9]).to_pylist() == batch["name"][7:9].tolist()
    assert pa.array(batch["words"][7:9]).to_pylist() == batch["words"][7:9].tolist()
    part = pa.record_batch(batch[10:20].to_arrow())
    assert part["id"].to_pylist() == list(range(10, 20))
    assert pa.record_batch(batch[::-7].to_arrow())["id"].to_pylist() == batch["id"][::-7].tolist()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint64", "f2", "f4", "f8"])
def test_numbers_keep_their_type(dtype: str) -> None:
    values = np.array([0, 1, 1, 0, 1], dtype)
    batch = tfr.Batch({"x": values}, np.arange(5), np.ones(5, bool))
    column = pa.record_batch(batch.to_arrow())["x"]
    assert column.type == pa.from_numpy_dtype(values.dtype)
    assert [float(each.as_py()) for each in column] == values.astype(float).tolist()


def test_offsets_that_lie_are_an_error_and_are_not_read_again() -> None:
    good = np.array([0, 2, 3])
    data = np.frombuffer(b"abc", np.uint8)
    for wrong in ([0, 9, 3], [0, 2, 4], [-1, 2, 3], [2, 1, 3]):
        with pytest.raises(ValueError, match="do not ascend"):
            tfr.Bytes(data, np.array(wrong)).__arrow_c_array__()
        with pytest.raises(ValueError, match="do not ascend"):
            tfr.Ragged(np.arange(3), np.array(wrong)).__arrow_c_array__()
    column = tfr.Bytes(data, good)
    taken = pa.array(column)
    good[:] = 10**9
    assert taken.to_pylist() == [b"ab", b"c"]


def test_columns_of_different_lengths_are_refused() -> None:
    batch = tfr.Batch({"x": np.arange(4)}, np.arange(5), np.ones(5, bool))
    with pytest.raises(ValueError, match="column 'x' has 4 rows instead of 5"):
        batch.to_arrow()


def test_what_arrow_has_no_type_for_is_refused() -> None:
    batch = tfr.Batch({"x": np.zeros(2, "c8")}, np.arange(2), np.ones(2, bool))
    with pytest.raises(TypeError, match="no type for complex64"):
        batch.to_arrow()
