"""A shuffled dataset opens each of many shards at its first read."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrfast as tfr
from tfrecord_model import write_shard

tf = pytest.importorskip("tensorflow")

RECORDS = [b"%d" % i for i in range(100)]


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    (tmp_path / "data").mkdir()
    paths = [
        write_shard(tmp_path / "data" / f"shard-{i:03d}", [record])
        for i, record in enumerate(RECORDS)
    ]
    tfr.build_index(paths)
    return paths


def test_a_shard_that_is_gone_when_its_turn_comes(paths: list[str]) -> None:
    dataset = tfr.TFRecordDataset(paths).shuffle(1000, seed=1)
    Path(paths[50]).unlink()
    with pytest.raises(tf.errors.OpError, match="shard-050"):
        list(dataset.as_numpy_iterator())
