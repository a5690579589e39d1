"""Chains of public training programs, of few records: accelerated, they give the same rows."""

from __future__ import annotations

import collections
import functools
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

tf = pytest.importorskip("tensorflow")
sys.path.append(str(Path(__file__).resolve().parents[3]))  # last: the installed package is tested

from benchmarks.pipelines import images  # noqa: E402
from benchmarks.pipelines.every import CHAINS  # noqa: E402
from benchmarks.pipelines.records import write_data  # noqa: E402

RECORDS, ROWS, EPOCHS = 32, 8, 2


@pytest.fixture(scope="module")
def files_of(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("pipelines")

    @functools.cache
    def written(data: str) -> list[str]:
        return write_data(data, folder / data.replace(" ", "-"), RECORDS, files=4)

    return written


def rows_of(dataset: Any) -> collections.Counter[Any]:
    """Counts each row, without its padding."""
    counts: collections.Counter[Any] = collections.Counter()
    for batch in dataset:
        parts = [np.asarray(part) for part in tf.nest.flatten(batch, expand_composites=True)]
        is_batch = len({part.shape[:1] for part in parts}) == 1 and parts[0].ndim > 0
        for row in zip(*parts, strict=True) if is_batch else [parts]:
            counts[tuple(map(short, row))] += 1
    return counts


def short(value: Any) -> Any:
    flat = np.ravel(value)
    if flat.dtype.kind in "OS":
        return tuple(flat)
    flat = np.round(flat.astype(np.float64), 4)
    return np.trim_zeros(flat, "b").tobytes()


@pytest.mark.parametrize(
    "chain",
    [
        pytest.param(chain, marks=[] if chain.work == "parsing" else pytest.mark.slow)
        for chain in CHAINS
    ],
    ids=lambda chain: chain.programs,
)
def test_an_accelerated_chain_gives_the_same_rows(
    files_of: Any, chain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "distorts", False)
    random.seed(3)
    theirs = chain.build(files_of(chain.data), ROWS, EPOCHS)
    ours = tfr.accelerate(theirs)
    assert ours.element_spec == theirs.element_spec
    if ours is not theirs and not depends_on_order(chain.programs):
        assert rows_of(ours) == rows_of(theirs)


def depends_on_order(programs: str) -> bool:
    """Whether rows are dropped, packed, or have a form that depends on their batch."""
    names = ("paxml", "SIM", "waymax", "ranking", "tensorflow/gnn")
    return any(name in programs for name in names)
