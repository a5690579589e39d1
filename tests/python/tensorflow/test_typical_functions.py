"""Functions like those in training programs: their results, and where they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from example_files import plain
from record_files import write_shard

tf = pytest.importorskip("tensorflow")

from map_functions import is_lifted  # noqa: E402
from row_by_row import same_bits  # noqa: E402
from typical_functions import TYPICAL, Typical  # noqa: E402

COUNT = 23

#: Functions that compute floats in another order than tf.data, or draw random numbers.
ROUNDS = {"logarithms and hashes"}


def runs(dataset: Any) -> str:
    if not is_lifted(dataset):
        return "plain"
    return "split" if "row by row" in str(tfr.explain(dataset)) else "whole"


def same(ours: Any, theirs: Any, nearly: bool) -> bool:
    """Whether two components of a batch are the same, bit for bit unless `nearly`."""
    if not tf.is_tensor(theirs) or not hasattr(theirs, "numpy"):
        return bool(plain(ours) == plain(theirs))
    one, other = ours.numpy(), theirs.numpy()
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if nearly and one.dtype.kind == "f":
        return bool(np.allclose(one, other, rtol=1e-5, atol=1e-6))
    return bool(same_bits(one, other).all())


@pytest.mark.filterwarnings("ignore::tfrfast.SlowPathWarning")
@pytest.mark.parametrize("name", TYPICAL)
def test_typical_functions(name: str, tmp_path: Path) -> None:
    typical: Typical = TYPICAL[name]
    path = write_shard(tmp_path / "records", typical.records(COUNT))
    tfr.Reader(path).close()
    ours, theirs = (
        reader(path).map(typical.parse).batch(5)
        for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert ours.element_spec == theirs.element_spec
    assert runs(ours) == typical.runs, tfr.explain(ours)
    for batch, expected in zip(ours, theirs, strict=True):
        for one, other in zip(tf.nest.flatten(batch), tf.nest.flatten(expected), strict=True):
            assert same(one, other, name in ROUNDS), (one, other)
