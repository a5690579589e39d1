"""Shards of tfr.Writer beside those of TensorFlow."""

from pathlib import Path

import pytest

import tfrfast as tfr

tf = pytest.importorskip("tensorflow")
pytestmark = [pytest.mark.tensorflow, pytest.mark.newest]

RECORDS = [b"", b"one", b"\xff" * 300, bytes(1_000_000), b"text"]


@pytest.mark.parametrize("batch", [False, True])
def test_a_shard_is_tensorflows_byte_for_byte(tmp_path: Path, batch: bool) -> None:
    path = tmp_path / "shard"
    with tfr.Writer(path) as writer:
        if batch:
            writer.write_batch(RECORDS)
        else:
            for record in RECORDS:
                writer.write(record)
    assert [r.numpy() for r in tf.data.TFRecordDataset(str(path))] == RECORDS
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as theirs:
        for record in RECORDS:
            theirs.write(record)
    assert path.read_bytes() == (tmp_path / "theirs").read_bytes()
