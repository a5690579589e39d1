"""Files that are read in file order stay open between epochs, and no longer than their dataset."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

import tfrfast as tfr
from record_files import write_shard

tf = pytest.importorskip("tensorflow")

from tfrfast.tensorflow.library import open_source_count  # noqa: E402

MAPS = Path("/proc/self/maps")


def mapped(path: Path) -> list[str]:
    """Returns the mappings of the file, one line each."""
    return [line for line in MAPS.read_text().splitlines() if line.endswith(str(path))]


@pytest.mark.skipif(not MAPS.exists(), reason="shows mappings by /proc")
def test_files_stay_mapped_until_the_dataset_goes(tmp_path: Path) -> None:
    path = tmp_path / "data"
    records = [bytes([n]) * 1000 for n in range(100)]
    write_shard(path, records)
    gc.collect()
    before = open_source_count()
    dataset = tfr.TFRecordDataset(str(path)).batch(7).prefetch(1)
    assert open_source_count() == before
    expected = [records[at : at + 7] for at in range(0, 100, 7)]
    assert [list(batch.numpy()) for batch in dataset] == expected
    first = mapped(path)
    assert len(first) == 1
    assert [list(batch.numpy()) for batch in dataset] == expected
    assert mapped(path) == first
    assert open_source_count() == before + 1
    del dataset
    gc.collect()
    assert open_source_count() == before
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


def test_datasets_in_a_function_keep_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data"
    write_shard(path, [b"a", b"b", b"c"])
    gc.collect()
    before = open_source_count()

    @tf.function
    def count() -> object:
        return tfr.TFRecordDataset(str(path)).batch(2).reduce(0, lambda n, _: n + 1)

    assert count().numpy() == 2
    assert count().numpy() == 2
    gc.collect()
    assert open_source_count() == before
