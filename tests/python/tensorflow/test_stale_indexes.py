"""TFRecordDataset over shards with indexes of an earlier state."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import elements
from tfrecord_model import rested, shard_of, write_shard
from tfrfast import _native

tf = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.newest

RECORDS = [b"record %06d" % i for i in range(10_000)]
# The same number of bytes with one record less, away from the headers that opening compares.
ONE_LESS = [*RECORDS[:5001], RECORDS[5001] + bytes(16) + RECORDS[5002], *RECORDS[5003:]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return Path(write_shard(tmp_path / "data" / "shard", RECORDS))


def rewrite(path: Path, records: list[bytes]) -> None:
    with open(path, "r+b") as file:
        file.write(shard_of(records))
    rested(path)


def is_planned(dataset: Any) -> bool:
    return bool(dataset.cardinality() != tf.data.UNKNOWN_CARDINALITY)


@pytest.mark.parametrize("place", ["cache", "sibling"])
def test_a_stream_goes_on_without_a_stale_index_and_leaves_a_good_one(
    path: Path, place: str
) -> None:
    if place == "sibling":
        tfr.build_index(path)
    tfr.Reader(path)
    assert is_planned(tfr.TFRecordDataset(str(path)))
    for records in (ONE_LESS, RECORDS):
        rewrite(path, records)
        dataset = tfr.TFRecordDataset(str(path))
        assert not is_planned(dataset)
        assert elements(dataset.skip(6000)) == records[6000:]
        again = tfr.TFRecordDataset(str(path))
        assert int(again.cardinality()) == len(records)
        assert elements(again.skip(6000)) == records[6000:]
        assert elements(again.shuffle(1).take(100)) != records[:100]


def test_a_touched_shard_is_streamed_once_and_then_has_an_index_in_the_cache(path: Path) -> None:
    tfr.build_index(path)
    os.utime(path, (1, 1))
    dataset = tfr.TFRecordDataset(str(path))
    assert not is_planned(dataset)
    assert elements(dataset) == RECORDS
    assert is_planned(tfr.TFRecordDataset(str(path)))
    reader = tfr.Reader(path, index="require")
    assert reader.shards[0].index == _native.cached_index_path(os.fsencode(path))


def test_a_plan_outlives_a_touch_and_follows_a_rewriting(path: Path) -> None:
    tfr.build_index(path)
    in_order = tfr.TFRecordDataset(str(path)).batch(1000)
    assert is_planned(in_order)
    dataset = tfr.TFRecordDataset(str(path)).shuffle(1, seed=1).batch(1000)
    first = tfr.TFRecordDataset(str(path)).take(5001).shuffle(1, seed=1).batch(1000)
    # The files are checked from time to time.
    os.utime(path, (1, 1))
    end = time.monotonic() + 1.2
    while time.monotonic() < end:
        assert sorted(np_records(dataset)) == RECORDS
    assert tfr.Reader(path, index="require").shards[0].index is not None
    # The same numbers of records and bytes, at other boundaries.
    other = [*RECORDS[:5000], RECORDS[5000][:-1], RECORDS[5001] + b"+", *RECORDS[5002:]]
    assert sorted(np_records(first)) == RECORDS[:5001]
    rewrite(path, other)
    assert sorted(np_records(first)) == sorted(other[:5001])
    assert sorted(np_records(dataset)) == sorted(other)
    assert np_records(in_order) == other  # the contents at the beginning of the iteration
    assert elements(tfr.TFRecordDataset(str(path))) == other


def np_records(dataset: Any) -> list[bytes]:
    return [record for batch in dataset.as_numpy_iterator() for record in batch.tolist()]


def test_a_cache_that_is_not_used_is_said_on_stderr(path: Path, cache: Path, capfd: Any) -> None:
    indexes = cache / "index"
    indexes.mkdir()
    indexes.chmod(0o777)
    assert elements(tfr.TFRecordDataset(str(path))) == RECORDS
    assert f"tfrfast: The index cache '{indexes}' is not used" in capfd.readouterr().err
    assert elements(tfr.TFRecordDataset(str(path))) == RECORDS
    assert "tfrfast:" not in capfd.readouterr().err
