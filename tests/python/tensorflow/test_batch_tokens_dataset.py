"""Batches by token budget as a tf.data.Dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrfast as tfr
from record_files import write_shards


@pytest.mark.parametrize("remainder", ["keep", "drop", "pad"])
def test_a_dataset_gives_the_batches_of_the_loader(tmp_path: Path, remainder: str) -> None:
    reader = tfr.Reader(write_shards(tmp_path, [150, 90]))
    batching = tfr.ByTokens(900, reader.lengths)
    loaders = [
        tfr.Loader(reader, batching, rank=1, world=2, remainder=remainder)  # type: ignore[arg-type]
        for _ in range(2)
    ]
    dataset = loaders[0].to_tf_dataset(epochs=2, with_indices=True, with_valid=True)
    expected = [batch for _ in range(2) for batch in loaders[1]]
    given = list(dataset)
    assert len(given) == len(expected)
    for (records, indices, valid), batch in zip(given, expected, strict=True):
        assert indices.numpy().tolist() == batch.indices.tolist()
        assert valid.numpy().tolist() == batch.valid.tolist()
        assert records.numpy().tolist() == batch.tolist()
