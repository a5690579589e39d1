"""Packed rows in each class for PyTorch, and with the forms that its attention kernels take."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from packed_files import ALL, pieces_in, write_tokens

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

import tfrfast.torch as tt  # noqa: E402

LENGTHS = np.random.default_rng(2).integers(0, 30, 200)
PACKS = tfr.Packed(64, rows=3, lengths="ids")
WHOLE = Counter({(i, 0, n): 1 for i, n in enumerate(LENGTHS.tolist()) if n})


def columns_of(batch: Any) -> dict[str, Any]:
    facts = {"ids_segment_ids": batch.segments, "ids_positions": batch.positions}
    return {name: each.numpy() for name, each in {"ids": batch["ids"], **facts}.items()}


def test_a_loader_and_workers_give_the_same_packs(tmp_path: Path) -> None:
    path = write_tokens(tmp_path / "a", LENGTHS)
    expected = list(tfr.Loader(path, PACKS, features=ALL, seed=4))
    loader = tt.Loader(path, PACKS, features=ALL, seed=4)
    dataset = tt.IterableDataset(path, PACKS, features=ALL, seed=4)
    for given in (
        loader,
        DataLoader(dataset, batch_size=None),
        DataLoader(
            tt.IterableDataset(path, PACKS, features=ALL, seed=4), batch_size=None, num_workers=2
        ),
    ):
        found: Counter[tuple[int, int, int]] = Counter()
        batches = list(given)
        for batch, same in zip(batches, expected, strict=True):
            found += pieces_in(columns_of(batch))
            assert (batch["ids"].numpy() == same["ids"]).all()
            assert batch["name"] == same["name"].tolist()
            assert (batch.packing["starts"].numpy() == same.starts).all()
            assert batch.segments.dtype == torch.int32
        assert found == WHOLE
    moved = batches[0].to("cpu")
    assert (moved.segments == batches[0].segments).all()
    with pytest.raises(TypeError, match="A sampler gives record numbers"):
        tt.BatchSampler(200, tfr.Packed(64, rows=3, lengths=LENGTHS))
