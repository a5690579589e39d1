"""Each class for PyTorch delivers a Loader's batches."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from adapter_roads import (
    SOURCES,
    SPECIAL,
    Road,
    assert_a_loaders,
    assert_an_epoch_is_counted,
    assert_an_error_comes_at_its_place,
)

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")

from torch.utils.data import DataLoader  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Small sparse tensors take PyTorch's threads much longer."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def slowly_moved(batch: Any) -> Any:
    time.sleep(random.Random(int(batch.indices[0])).random() * 0.002)
    return batch.to("cpu")


class Iterated(tt.IterableDataset):
    """Without a DataLoader. The state is that of its iterator, for a StatefulDataLoader."""

    rest: Any = None

    def __iter__(self) -> Any:
        self.place, self.rest = self.rest or super().__iter__(), None
        return self.place

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = self.place.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rest = super().__iter__()
        self.rest.load_state_dict(state)


class InWorkers:
    """An IterableDataset in worker processes, where test_torchdata.py resumes it."""

    def __init__(self, *given: Any, workers: int = 2, method: str = "fork", **options: Any) -> None:
        self.dataset = tt.IterableDataset(*given, **options)
        self.batches = DataLoader(
            self.dataset, batch_size=None, num_workers=workers, multiprocessing_context=method
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)

    def stats(self) -> Any:
        return self.dataset.stats()


class Sampled:
    """A Dataset and a BatchSampler, which counts what was asked for."""

    def __init__(
        self, source: Any, batching: Any, *, features: Any, workers: Any = None, **order: Any
    ) -> None:
        dataset = tt.Dataset(source, features=features)
        records = source if isinstance(source, tfr.Mixture) else len(source)
        self.sampler = tt.BatchSampler(records, batching, **order)
        self.batches = DataLoader(
            dataset, batch_sampler=self.sampler, collate_fn=tt.collate, **workers or {}
        )

    def __iter__(self) -> Iterator[Any]:
        self.delivered = 0
        for batch in self.batches:
            self.delivered += 1
            yield batch

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = self.sampler.state_dict(self.delivered)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.sampler.load_state_dict(state)


ROADS = {
    "Loader": Road(tt.Loader),
    "IterableDataset": Road(partial(Iterated, threads=1)),
    "BatchSampler": Road(Sampled, packs=None, tries_again=False),
}
WITH_HELP = {
    "transformed": Road(partial(tt.Loader, transform=slowly_moved, threads=3)),
    "threads": Road(partial(Iterated, threads=3)),
    "workers": Road(InWorkers, resumes=False, tries_again=False),
    "workers of a BatchSampler": Road(
        partial(Sampled, workers={"num_workers": 2}), packs=None, resumes=False
    ),
}
SPAWNED = {"num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("road", ROADS)
def test_batches_and_places_are_a_loaders(tmp_path: Path, road: str, source: str) -> None:
    assert_a_loaders(ROADS[road], source, tmp_path)


@pytest.mark.parametrize("source", SPECIAL)
@pytest.mark.parametrize("road", WITH_HELP)
def test_batches_of_threads_and_workers(tmp_path: Path, road: str, source: str) -> None:
    assert_a_loaders(WITH_HELP[road], source, tmp_path)


def test_batches_of_a_spawned_worker(tmp_path: Path) -> None:
    road = Road(partial(Sampled, workers=SPAWNED), resumes=False)
    assert_a_loaders(road, "columns of every kind", tmp_path)


@pytest.mark.parametrize("road", [*ROADS, "transformed", "threads", "workers"])
def test_an_error_comes_at_its_place(tmp_path: Path, road: str) -> None:
    assert_an_error_comes_at_its_place((ROADS | WITH_HELP)[road], tmp_path)


@pytest.mark.parametrize(
    "make",
    [
        tt.Loader,
        tt.IterableDataset,
        InWorkers,
        partial(InWorkers, workers=1, method="spawn"),
    ],
)
def test_an_epoch_is_counted(tmp_path: Path, make: Any) -> None:
    assert_an_epoch_is_counted(make, tmp_path)
