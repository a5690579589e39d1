"""Mixtures under Grain and JAX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from mixed_files import mixture_of, write_sets

jax = pytest.importorskip("jax")
pytest.importorskip("grain")
tg = pytest.importorskip("tfrfast.grain", exc_type=ModuleNotFoundError)
tj = pytest.importorskip("tfrfast.jax", exc_type=ModuleNotFoundError)

ID = {"id": tfr.FixedLen((), "int64")}
BEGINS = np.array([0, 50, 80])


def test_a_dataset_of_a_mixture_says_whose_each_row_is(tmp_path: Path) -> None:
    mixture = mixture_of(write_sets(tmp_path))
    loader = tfr.Loader(mixture, 16, features=ID)
    dataset = tg.IterDataset(loader, epochs=2)
    iterator = iter(dataset)
    first = [next(iterator) for _ in range(3)]
    state = iterator.get_state()
    rest = list(iterator)
    again = iter(dataset)
    again.set_state(state)
    assert [b.indices.tolist() for b in again] == [b.indices.tolist() for b in rest]
    plan = tfr.Plan(mixture, 16)
    expected = [plan.indices(e, s).tolist() for e in range(2) for s in range(plan.steps)]
    assert [b.indices.tolist() for b in first + rest] == expected
    for batch in first + rest:
        np.testing.assert_array_equal(batch["id"], batch.indices - BEGINS[batch.sources])


def test_a_source_of_a_mixture_keeps_its_weights(tmp_path: Path) -> None:
    mixture = mixture_of(write_sets(tmp_path))
    source = tg.Source(mixture, features=ID, epochs=2)
    assert len(source) == 400
    plan = tfr.Plan(mixture, 200)
    numbers = np.concatenate([plan.indices(epoch, 0) for epoch in range(2)])
    ids = numbers - BEGINS[np.searchsorted(BEGINS, numbers, side="right") - 1]
    assert [source[i]["id"] for i in (0, 199, 200, 399, -1)] == ids[[0, 199, 200, 399, -1]].tolist()
    assert [row["id"] for row in source._getitems(range(400))] == ids.tolist()
    with pytest.raises(IndexError, match="Item 400 does not exist"):
        source[400]
    assert "mixture=permuted" in repr(source)
    with pytest.raises(TypeError, match="needs an order: give order="):
        tg.Source(mixture.reader, epochs=2)


def test_batches_on_devices_keep_their_sources(tmp_path: Path) -> None:
    mixture = mixture_of(write_sets(tmp_path))
    columns = tfr.Loader(mixture, 16, features=ID, remainder="drop")
    expected = [batch.sources.tolist() for batch in tfr.Loader(mixture, 16, remainder="drop")]
    batches = list(tj.Loader(columns))
    assert [np.asarray(batch.sources).tolist() for batch in batches] == expected
    traced = jax.jit(lambda batch: batch.sources)
    assert [np.asarray(traced(batch)).tolist() for batch in batches] == expected
    doubled = jax.tree.map(lambda leaf: leaf, batches[0])
    assert doubled.source_starts.tolist() == BEGINS.tolist()
