"""On the ranks of a real process group: shares, collectives, a run that stops and resumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torch_data import FEATURES, ID, NUM_RECORDS, flat, ids
from torch_ranks import on_ranks

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")


def train(shards: list[str]) -> dict[str, Any]:
    """Returns the records that a rank reads in three ways, and its trained weights."""
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = tt.Loader(shards, 7, features=FEATURES, seed=3, transform=lambda batch: batch)
    read: dict[str, Any] = {"loader": []}
    for batch in loader:
        optimizer.zero_grad()
        model(batch["dense"]).square().mean().backward()
        optimizer.step()
        read["loader"] += ids([batch])
        if loader.step == 5:
            read["state"] = loader.state_dict()
    read["weights"] = model.module.weight.tolist()
    sampler = tt.BatchSampler(NUM_RECORDS, 7, seed=3)
    dataset = tt.Dataset(shards, features=ID)
    read["sampler"] = ids(
        torch.utils.data.DataLoader(dataset, batch_sampler=sampler, collate_fn=tt.collate)
    )
    iterable = tt.IterableDataset(shards, 7, features=ID, seed=3)
    options = {"num_workers": 1, "multiprocessing_context": "fork"}
    read["iterable"] = ids(torch.utils.data.DataLoader(iterable, batch_size=None, **options))
    return read


def test_two_ranks_train_together(shards: list[str], tmp_path: Path) -> None:
    ranks = on_ranks(2, tmp_path, train, shards)
    for way in ("loader", "sampler", "iterable"):
        read = [rank[way] for rank in ranks]
        assert sorted(flat(flat(read))) == list(range(NUM_RECORDS))
        assert read == [rank["loader"] for rank in ranks]
    assert ranks[0]["weights"] == ranks[1]["weights"]
    assert ranks[0]["state"] == ranks[1]["state"]
    alone = tt.Loader(shards, 9, features=ID, seed=3)
    alone.load_state_dict(ranks[0]["state"])
    received = [rank["loader"][:5] for rank in ranks]
    assert sorted(flat(flat(received)) + flat(ids(alone))) == list(range(NUM_RECORDS))
