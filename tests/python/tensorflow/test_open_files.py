"""Files that are read in file order stay open between epochs, and no longer than their dataset."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from record_files import write_shard

tf = pytest.importorskip("tensorflow")
reasons = pytest.importorskip("tfrfast.tensorflow.reasons")

MAPS = Path("/proc/self/maps")
has_maps = pytest.mark.skipif(not MAPS.exists(), reason="shows mappings by /proc")


def mapped(path: Path) -> list[str]:
    """Returns the mappings of the file, one line each."""
    return [line for line in MAPS.read_text().splitlines() if line.endswith(str(path))]


@has_maps
def test_files_stay_mapped_until_the_dataset_goes(tmp_path: Path) -> None:
    path = tmp_path / "data"
    records = [bytes([n]) * 1000 for n in range(100)]
    write_shard(path, records)
    dataset = tfr.TFRecordDataset(str(path)).batch(7).prefetch(1)
    assert mapped(path) == []
    expected = [records[at : at + 7] for at in range(0, 100, 7)]
    assert [list(batch.numpy()) for batch in dataset] == expected
    first = mapped(path)
    assert len(first) == 1
    assert [list(batch.numpy()) for batch in dataset] == expected
    assert mapped(path) == first
    del dataset
    gc.collect()
    assert mapped(path) == []


def test_another_file_of_the_same_size_and_time_is_read_to_its_end(tmp_path: Path) -> None:
    path, other = tmp_path / "data", tmp_path / "other"
    write_shard(path, [b"old"] * 100)
    write_shard(other, [b"new"] * 100)
    dataset = tfr.TFRecordDataset(str(path)).batch(10)
    assert set(dataset.unbatch().as_numpy_iterator()) == {b"old"}
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)
    assert set(dataset.unbatch().as_numpy_iterator()) == {b"new"}


@has_maps
def test_datasets_in_a_function_keep_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data"
    write_shard(path, [bytes(100_000)] * 3)

    @tf.function
    def count() -> object:
        return tfr.TFRecordDataset(str(path)).batch(2).reduce(0, lambda n, _: n + 1)

    assert count().numpy() == 2
    assert count().numpy() == 2
    gc.collect()
    assert mapped(path) == []


@pytest.mark.parametrize(
    "chain",
    [
        lambda path: tf.data.TFRecordDataset(path).shuffle(9).map(tf.strings.length),
        lambda path: tf.data.Dataset.from_tensors(path).flat_map(
            lambda name: tf.data.TFRecordDataset([name, name])
        ),
    ],
    ids=["elements", "functions"],
)
def test_a_refusal_keeps_no_files(tmp_path: Path, chain: Any) -> None:
    """An exception that its own frames keep would keep their plan, and the files of the plan."""
    path = write_shard(tmp_path / "data", [b"record"] * 100)
    gc.collect()
    gc.disable()
    try:
        assert str(tfr.explain(chain(path)))
        assert [each for each in gc.get_objects() if type(each) is reasons.RefusedError] == []
    finally:
        gc.enable()
