"""Each iteration is one epoch, for workers that are slow to begin and for threads, too."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from children import in_threads
from torch_data import ID, ids

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")

from torch.utils.data import DataLoader  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def the_second_is_late(worker: int) -> None:
    if worker == 1:
        time.sleep(0.5)


def dataset(shards: list[str]) -> Any:
    return tt.IterableDataset(shards, 7, features=ID, seed=3)


def loaded(source: Any, **options: Any) -> Any:
    return DataLoader(
        source, batch_size=None, num_workers=2, worker_init_fn=the_second_is_late, **options
    )


def an_epoch(shards: list[str], epoch: int) -> list[list[int]]:
    loader = tt.Loader(shards, 7, features=ID, seed=3)
    loader.set_epoch(epoch)
    return ids(loader)


@pytest.mark.parametrize("chosen", [None, 5])
def test_a_worker_that_stays_may_begin_after_others_have_begun_again(
    shards: list[str], chosen: int | None
) -> None:
    source = dataset(shards)
    loader = loaded(source, persistent_workers=True)
    next(iter(loader))  # from the first worker
    if chosen is not None:
        source.set_epoch(chosen)
    epoch = 1 if chosen is None else chosen
    assert ids(loader) == an_epoch(shards, epoch)
    assert ids(loader) == an_epoch(shards, epoch + 1)


def test_choosing_an_epoch_does_not_change_one_that_has_begun(shards: list[str]) -> None:
    source = dataset(shards)
    loader = loaded(source)
    batches = iter(loader)
    first = ids([next(batches)])
    source.set_epoch(4)
    assert first + ids(batches) == an_epoch(shards, 0)
    assert ids(loader) == an_epoch(shards, 4)


def test_threads_that_iterate_at_once_get_different_epochs(shards: list[str]) -> None:
    source, epochs = dataset(shards), list[int]()

    def iterate() -> None:
        for _ in range(40):
            epochs.append(iter(source).state_dict()["epoch"])

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        in_threads([iterate] * 4)
    finally:
        sys.setswitchinterval(before)
    assert sorted(epochs) == list(range(160))
