"""Packed rows as dicts for JAX and Grain, sharded and resumed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from packed_files import ALL, IDS, pieces_in, write_tokens

pytest.importorskip("grain", reason="needs grain")

import jax
from jax.sharding import NamedSharding, PartitionSpec

import tfrfast.grain as tg
import tfrfast.jax as tj

LENGTHS = np.random.default_rng(2).integers(0, 30, 200)
PACKS = tfr.Packed(64, rows=3, lengths="ids")
WHOLE = Counter({(i, 0, n): 1 for i, n in enumerate(LENGTHS.tolist()) if n})
KEYS = {"ids", "ids_segment_ids", "ids_positions"}


def in_a_worker(loader: Any, part: int) -> Any:
    dataset = tg.IterDataset(loader)
    dataset.set_slice(slice(part, None, 2))
    return dataset


def test_batches_are_dicts_with_grains_names(tmp_path: Path) -> None:
    path = write_tokens(tmp_path / "a", LENGTHS)
    loader = tfr.Loader(path, PACKS, features=IDS, seed=4)
    parts = [list(in_a_worker(loader, part)) for part in (0, 1)]
    turns = [parts[i % 2][i // 2] for i in range(len(loader))]
    for batches in (list(tj.Loader(loader)), list(tg.IterDataset(loader)), turns):
        assert all(type(batch) is dict and set(batch) == KEYS for batch in batches)
        assert sum((pieces_in(batch) for batch in batches), Counter()) == WHOLE
        for batch, same in zip(batches, turns, strict=True):
            assert (np.asarray(batch["ids"]) == same["ids"]).all()


def test_a_packed_batch_is_no_pytree_but_its_dict_is(tmp_path: Path) -> None:
    loader = tfr.Loader(write_tokens(tmp_path / "a", LENGTHS), PACKS, features=IDS)
    batch = next(iter(loader))
    with pytest.raises(TypeError, match=r"take batch\.as_dict\(\)"):
        jax.tree.map(np.copy, batch)
    assert jax.tree.map(np.copy, batch.as_dict()).keys() >= KEYS


def test_rows_are_sharded(tmp_path: Path) -> None:
    path = write_tokens(tmp_path / "a", LENGTHS)
    mesh = jax.make_mesh((jax.device_count(),), ("rows",))
    sharding = NamedSharding(mesh, PartitionSpec("rows"))
    packs = tfr.Packed(64, rows=jax.device_count() * 2, lengths="ids")
    loader = tfr.Loader(path, packs, features=IDS, remainder="pad")
    found: Counter[Any] = Counter()
    for batch in tj.Loader(loader, sharding):
        assert all(
            each.sharding == sharding and each.shape == (packs.rows, 64) for each in batch.values()
        )
        found += pieces_in(batch)
    assert found == WHOLE
    if jax.device_count() > 1:
        others = tfr.Loader(path, packs, features=ALL, remainder="pad")
        with pytest.raises(ValueError, match="'name' has values for each record"):
            tj.Loader(others, sharding)
