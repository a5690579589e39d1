"""`zero_copy=True`: the same records, pointing into the files where the runtime allows it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from record_files import some_records, write_shard

tf = pytest.importorskip("tensorflow")

from tfrfast.tensorflow import library  # noqa: E402

RECORDS = some_records(300, longest=9000)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return [
        write_shard(tmp_path / "first", RECORDS[:200]),
        write_shard(tmp_path / "second", RECORDS[200:]),
    ]


def records_of(dataset: Any) -> list[bytes]:
    return [record for batch in dataset.batch(7) for record in batch.numpy().tolist()]


@pytest.mark.parametrize("indexed", [False, True])
def test_gives_the_same_records(files: list[str], indexed: bool) -> None:
    if indexed:
        tfr.Reader(files).close()
    assert records_of(tfr.TFRecordDataset(files, zero_copy=True)) == RECORDS
    copied = records_of(tfr.TFRecordDataset(files).shuffle(9, seed=3))
    assert records_of(tfr.TFRecordDataset(files, zero_copy=True).shuffle(9, seed=3)) == copied


def test_gives_the_same_records_of_compressed_files(files: list[str], tmp_path: Path) -> None:
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(Path(files[0]).read_bytes()))
    assert records_of(tfr.TFRecordDataset(packed, "GZIP", zero_copy=True)) == RECORDS[:200]


def test_finds_damage(files: list[str]) -> None:
    with tfr.Reader(files) as reader:
        offset = reader.locate(4).offset
    with open(files[0], "r+b") as file:
        file.seek(offset + 12)
        byte = file.read(1)
        file.seek(offset + 12)
        file.write(bytes([byte[0] ^ 1]))
    received = []
    with pytest.raises(tf.errors.DataLossError, match="record 4"):
        for record in tfr.TFRecordDataset(files, zero_copy=True):
            received.append(record.numpy())
    assert received == RECORDS[:4]
    skipping = tfr.TFRecordDataset(files, on_corruption="skip", zero_copy=True)
    assert records_of(skipping) == RECORDS[:4] + RECORDS[5:]


@pytest.mark.parametrize("zero_copy", [False, True])
def test_points_into_the_file(tmp_path: Path, zero_copy: bool) -> None:
    """A later change of the file shows in the string, or does not."""
    path = write_shard(tmp_path / "shard", [b"x" * 1000])
    (record,) = tfr.TFRecordDataset(path, zero_copy=zero_copy)
    with open(path, "r+b") as file:
        file.seek(12)
        file.write(b"y")
    shows = zero_copy and library.runtime_counts_views()
    assert record.numpy()[:2] == (b"yx" if shows else b"xx")


def test_strings_outlive_their_dataset(files: list[str]) -> None:
    dataset = tfr.TFRecordDataset(files, zero_copy=True).batch(300)
    (batch,) = dataset
    del dataset
    for path in files:
        Path(path).unlink()
    assert batch.numpy().tolist() == RECORDS
