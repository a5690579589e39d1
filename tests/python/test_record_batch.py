import copy
import gc
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from tfrecord_model import write_shard

RECORDS = [b"one", b"", b"three", b"\x00" * 1000, b""]


@pytest.fixture
def batch(tmp_path: Path, io: Any) -> tfr.RecordBatch:
    with tfr.Reader(write_shard(tmp_path / "shard", RECORDS), io=io) as reader:
        return reader[:]


def test_rows_are_records(batch: tfr.RecordBatch) -> None:
    assert len(batch) == 5
    assert [batch[i] for i in range(5)] == RECORDS
    assert [batch[i - 5] for i in range(5)] == RECORDS
    assert batch[np.int8(2)] == b"three"
    assert list(batch) == batch.tolist() == RECORDS


@pytest.mark.parametrize("row", [5, -6, 1 << 40])
def test_rows_that_do_not_exist(batch: tfr.RecordBatch, row: int) -> None:
    for get in (batch.__getitem__, batch.view):
        with pytest.raises(IndexError, match=f"Row {row} does not exist: there are 5 rows"):
            get(row)


def test_the_arrays(batch: tfr.RecordBatch) -> None:
    assert batch.data.dtype == np.uint8
    assert batch.data.tobytes() == b"".join(RECORDS)
    assert batch.offsets.dtype == np.int64
    assert batch.offsets.tolist() == [0, 3, 3, 8, 1008, 1008]
    assert batch.indices.dtype == np.int64
    assert batch.indices.tolist() == [0, 1, 2, 3, 4]
    assert batch.valid.dtype == np.bool_
    assert batch.valid.tolist() == [True] * 5


def test_an_empty_batch(tmp_path: Path) -> None:
    batch = tfr.Reader(write_shard(tmp_path / "shard", RECORDS))[0:0]
    assert len(batch) == 0
    assert batch.tolist() == []
    assert batch.data.tolist() == []
    assert batch.offsets.tolist() == [0]
    assert pickle.loads(pickle.dumps(batch)).tolist() == []


def test_a_view_costs_no_copy_and_is_read_only(batch: tfr.RecordBatch) -> None:
    view = batch.view(2)
    assert view == b"three"
    assert view.readonly
    assert np.shares_memory(np.frombuffer(view, np.uint8), batch.data)
    assert batch.view(-1) == b""
    with pytest.raises(TypeError):
        view[0] = 1  # type: ignore[index]


def test_views_and_arrays_outlive_batch_and_reader(tmp_path: Path, io: Any) -> None:
    records = [bytes([i]) * 100_000 for i in range(20)]
    path = write_shard(tmp_path / "shard", records)
    reader = tfr.Reader(path, io=io)
    batch = reader[:]
    views = [batch.view(i) for i in range(20)]
    data, offsets, indices, valid = batch.data, batch.offsets, batch.indices, batch.valid
    reader.close()
    del batch, reader
    gc.collect()
    Path(path).write_bytes(b"")
    for _ in range(5):  # memory that was freed too early would be reused here
        tfr.Reader(write_shard(tmp_path / "other", [b"\xff" * 100_000] * 20), io=io)[:]
    assert [bytes(view) for view in views] == records
    assert data.tobytes() == b"".join(records)
    assert offsets.tolist() == list(range(0, 2_000_001, 100_000))
    assert indices.tolist() == list(range(20))
    assert valid.all()


def test_pickle_and_copy(batch: tfr.RecordBatch) -> None:
    batch.valid[1] = False
    for other in (pickle.loads(pickle.dumps(batch)), copy.copy(batch), copy.deepcopy(batch)):
        assert other.tolist() == RECORDS
        assert other.indices.tolist() == [0, 1, 2, 3, 4]
        assert other.valid.tolist() == [True, False, True, True, True]
        assert not np.shares_memory(other.data, batch.data)


@pytest.mark.parametrize(
    "offsets", [[0, 3, 8], [1, 3, 3, 8], [0, 3, 2, 8], [0, 3, 3, 9], [0, 3, 3, 7], [0, 9, 3, 8], []]
)
def test_parts_that_do_not_fit(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="Offsets must ascend from 0"):
        tfr.RecordBatch(np.frombuffer(b"onethree", np.uint8), offsets, [7, 8, 9], [True] * 3)
