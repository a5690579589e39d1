"""Packed rows as dicts for tf.data and Keras."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from packed_files import ALL, IDS, pieces_in, write_tokens

tf = pytest.importorskip("tensorflow")

LENGTHS = np.random.default_rng(2).integers(0, 30, 200)
WHOLE = Counter({(i, 0, n): 1 for i, n in enumerate(LENGTHS.tolist()) if n})


@pytest.mark.parametrize("remainder", ["keep", "drop", "pad"])
@pytest.mark.parametrize("lengths", ["ids", LENGTHS], ids=["kept", "array"])
def test_a_dataset_gives_the_loaders_rows(tmp_path: Path, remainder: Any, lengths: Any) -> None:
    path = write_tokens(tmp_path / "a", LENGTHS)
    packs = tfr.Packed(64, rows=3, lengths=lengths)
    loader = tfr.Loader(path, packs, features=ALL, seed=4, remainder=remainder)
    dataset = loader.to_tf_dataset(epochs=2, with_indices=True)
    rows = None if remainder == "keep" else 3
    assert dataset.element_spec[0]["ids"].shape.as_list() == [rows, 64]
    expected = [batch for _ in range(2) for batch in loader]
    found: Counter[Any] = Counter()
    for (given, indices), batch in zip(dataset, expected, strict=True):
        assert indices.numpy().tolist() == batch.indices.tolist()
        assert given["name"].numpy().tolist() == batch["name"].tolist()
        assert given["more"].row_splits.numpy().tolist() == batch["more"].row_splits.tolist()
        for name in ("ids", "mask", "ids_segment_ids", "mask_positions"):
            assert (given[name].numpy() == batch.as_dict()[name]).all()
        found += pieces_in(given)
    if remainder != "drop":
        assert found == WHOLE + WHOLE


def test_keras_takes_rows_segments_and_weights(tmp_path: Path) -> None:
    path = write_tokens(tmp_path / "a", LENGTHS)
    packs = tfr.Packed(64, rows=4, lengths="ids", keys=("{}_segments", "{}_positions"))
    loader = tfr.Loader(path, packs, features=IDS, remainder="pad")
    names = ["ids", "ids_segments", "ids_positions"]
    epoch = loader.to_keras(features=names, label="ids")
    rows = 0
    for step in range(len(epoch)):
        inputs, label, weights = epoch[step]
        assert set(inputs) == set(names)
        assert (np.asarray(label) == inputs["ids"]).all()
        assert (weights == (inputs["ids_segments"][:, 0] > 0)).all()
        rows += int(weights.sum())
    assert rows == loader.plan.positions
    with pytest.raises(ValueError, match="no column 'ids_segment_ids'"):
        loader.to_keras(features="ids_segment_ids")


def test_rows_with_tokens_of_any_budget_have_weight(tmp_path: Path) -> None:
    path = write_tokens(tmp_path / "a", [0] * 8 + [1])
    loader = tfr.Loader(
        path,
        tfr.Packed({"ids": 9, "more": 3}, rows=8),
        features={**IDS, "more": ALL["more"]},
        remainder="pad",
    )
    _, _, weights = loader.to_keras(features="ids", label="more")[0]
    assert weights.sum() == loader.plan.positions
