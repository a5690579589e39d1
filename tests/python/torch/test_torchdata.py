"""Under torchdata's StatefulDataLoader, states count delivered batches."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from torch_data import ID, NUM_RECORDS, ids

torch = pytest.importorskip("torch")
torchdata = pytest.importorskip("torchdata.stateful_dataloader")
tt = pytest.importorskip("tfrfast.torch")

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def map_style(shards: list[str], workers: int) -> Any:
    return torchdata.StatefulDataLoader(
        tt.Dataset(shards, features=ID),
        batch_sampler=tt.BatchSampler(NUM_RECORDS, 10, seed=3),
        collate_fn=tt.collate,
        num_workers=workers,
    )


def iterable(shards: list[str], workers: int) -> Any:
    source = tt.IterableDataset(shards, 10, features=ID, seed=3)
    return torchdata.StatefulDataLoader(source, batch_size=None, num_workers=workers)


@pytest.mark.parametrize("make", [map_style, iterable])
@pytest.mark.parametrize("workers", [0, 2])
def test_saved_and_loaded_twice_within_an_epoch(shards: list[str], make: Any, workers: int) -> None:
    ours = tt.Loader(shards, 10, features=ID, seed=3)
    whole = [ids(ours) for _ in range(4)]
    loader = make(shards, workers)
    assert ids(loader) == whole[0]
    batches = iter(loader)
    got = ids(next(batches) for _ in range(3))
    for count in (4, 2):
        state = pickle.loads(pickle.dumps(loader.state_dict()))
        loader = make(shards, workers)
        loader.load_state_dict(state)
        batches = iter(loader)
        got += ids(next(batches) for _ in range(count))
    got += ids(batches)
    assert got == whole[1]
    assert ids(loader) == whole[2]
    state = loader.state_dict()  # at the end of an epoch
    loader = make(shards, workers)
    loader.load_state_dict(state)
    rest = ids(loader)
    assert rest in ([], whole[3])
    assert rest or ids(loader) == whole[3]


def test_a_state_of_other_workers_is_refused(shards: list[str]) -> None:
    loader = iterable(shards, 0)
    next(iter(loader))
    state = loader.state_dict()
    other = torchdata.StatefulDataLoader(
        tt.IterableDataset(shards, 10, features=ID, seed=4), batch_size=None
    )
    other.load_state_dict(state)
    with pytest.raises(ValueError, match="its order is"):
        next(iter(other))
