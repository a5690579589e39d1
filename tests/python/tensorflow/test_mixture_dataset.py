"""A Mixture as a tf.data.Dataset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from mixed_files import mixture_of, write_sets

ID = {"id": tfr.FixedLen((), "int64"), "tokens": tfr.VarLen("int64")}


@pytest.mark.parametrize("order", ["permuted", "spread"])
@pytest.mark.parametrize("per_source", [False, True])
def test_a_dataset_gives_the_batches_of_the_loader(
    tmp_path: Path, order: str, per_source: bool
) -> None:
    mixture = mixture_of(write_sets(tmp_path), arrangement=order, per_source=per_source)
    loader = tfr.Loader(mixture, 20, features=ID)
    next(iter(loader))
    loader.change_weights({"web": 1, "code": 2, "talk": 3})
    dataset = loader.to_tf_dataset(epochs=2, with_indices=True, with_sources=True)
    loader.load_state_dict(loader.state_dict())
    expected = [batch for _ in range(2) for batch in loader]
    count = 0
    for (columns, indices, sources), batch in zip(dataset, expected, strict=True):
        np.testing.assert_array_equal(indices.numpy(), batch.indices)
        np.testing.assert_array_equal(sources.numpy(), batch.sources)
        np.testing.assert_array_equal(columns["id"].numpy(), batch["id"])
        assert columns["tokens"].to_list() == [row.tolist() for row in batch["tokens"]]
        count += 1
    assert count == 19
