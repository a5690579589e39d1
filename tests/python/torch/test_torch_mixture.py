"""Mixtures under PyTorch's loaders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from mixed_files import mixture_of, write_sets

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")

from torch.utils.data import DataLoader  # noqa: E402

ID = {"id": tfr.FixedLen((), "int64")}
BEGINS = torch.tensor([0, 50, 80])


@pytest.fixture
def mixture(tmp_path: Path) -> tfr.Mixture:
    return mixture_of(write_sets(tmp_path))


def planned(mixture: tfr.Mixture, epoch: int) -> list[list[int]]:
    plan = tfr.Plan(mixture, 16)
    return [plan.indices(epoch, step).tolist() for step in range(plan.steps)]


def test_the_loader_says_whose_each_row_is(mixture: tfr.Mixture) -> None:
    loader = tt.Loader(mixture, 16, features=ID)
    for epoch in range(2):
        batches = list(loader)
        assert [batch.indices.tolist() for batch in batches] == planned(mixture, epoch)
        for batch in batches:
            assert torch.equal(batch["id"], batch.indices - BEGINS[batch.sources])


@pytest.mark.parametrize("workers", [0, 2])
def test_the_iterable_dataset_deals_a_mixture(mixture: tfr.Mixture, workers: int) -> None:
    dataset = tt.IterableDataset(mixture, 16, features=ID)
    batches = list(DataLoader(dataset, batch_size=None, num_workers=workers))
    assert [batch.indices.tolist() for batch in batches] == planned(mixture, 0)
    for batch in batches:
        assert torch.equal(batch["id"], batch.indices - BEGINS[batch.sources])


def test_the_sampler_and_the_dataset_agree(mixture: tfr.Mixture) -> None:
    dataset = tt.Dataset(mixture, features=ID)
    sampler = tt.BatchSampler(mixture, 16)
    loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=tt.collate)
    batches = list(loader)
    assert [batch.indices.tolist() for batch in batches] == planned(mixture, 0)
    assert torch.equal(batches[0]["id"], batches[0].indices - BEGINS[batches[0].sources])


def test_a_sampler_of_all_records_would_drop_the_weights(mixture: tfr.Mixture) -> None:
    dataset = tt.Dataset(mixture, features=ID)
    with pytest.raises(TypeError, match=r"drop the weights .*BatchSampler\(mixture, 256\)"):
        tt.BatchSampler(len(dataset), 16)
    with pytest.raises(TypeError, match="drop the weights"):
        DataLoader(dataset, batch_size=16, shuffle=True)


@pytest.mark.parametrize("given", [{"seed": 0}, {"shuffle": True}, {"order": tfr.Shuffle()}])
def test_a_mixture_brings_its_own_order(mixture: tfr.Mixture, given: Any) -> None:
    with pytest.raises(TypeError, match="a Mixture"):
        tt.Loader(mixture, 16, features=ID, **given)
    with pytest.raises(TypeError, match="a Mixture"):
        tt.IterableDataset(mixture, 16, features=ID, **given)
    with pytest.raises(TypeError, match="a Mixture"):
        tt.BatchSampler(mixture, 16, **given)
    with pytest.raises(TypeError, match="give nothing beside it"):
        tt.BatchSampler(tfr.Plan(mixture, 16), **given)
