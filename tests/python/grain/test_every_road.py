"""Each way of JAX and Grain delivers a Loader's batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
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
    batches_from,
    plain,
)

grain = pytest.importorskip("grain")
tj = pytest.importorskip("tfrfast.jax", exc_type=ModuleNotFoundError)
tg = pytest.importorskip("tfrfast.grain", exc_type=ModuleNotFoundError)

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*")


class OnDevices(tj.Loader):
    def __init__(self, *given: Any, ahead: int = 1, **options: Any) -> None:
        super().__init__(tfr.Loader(*given, **options), ahead=ahead)


class InGrain:
    """Slices of an IterDataset in turn, as from mp_prefetch's workers, but not from processes."""

    def __init__(self, *given: Any, slices: int = 1, epochs: int = 3, **options: Any) -> None:
        self.loader = tfr.Loader(*given, **options)
        self.parts, self.turn = [], 0
        for number in range(slices):
            part = tg.IterDataset(self.loader, epochs=epochs)
            part.set_slice(slice(number, None, slices))
            self.parts.append(iter(part))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        batch = next(self.parts[self.turn])
        self.turn = (self.turn + 1) % len(self.parts)
        return batch

    def state_dict(self) -> Any:
        return [self.turn, [part.get_state() for part in self.parts]]

    def load_state_dict(self, state: Any) -> None:
        self.turn, places = state
        for part, place in zip(self.parts, places, strict=True):
            part.set_state(place)

    def stats(self) -> Any:
        return self.loader.stats()


def in_processes(*given: Any, **options: Any) -> Any:
    dataset = tg.IterDataset(tfr.Loader(*given, **options), epochs=2)
    return dataset.mp_prefetch(grain.MultiprocessingOptions(num_workers=2))


def items(source: Any, batching: Any, *, features: Any, order: Any = None) -> Any:
    return tg.Source(source, features=features, order=order, epochs=2)


def in_dicts(make: Callable[..., Any], **options: Any) -> Road:
    return Road(partial(make, **options), packs=tfr.Batch.as_dict)


ROADS = {
    "JAX": in_dicts(OnDevices),
    "Grain": in_dicts(InGrain),
    "Grain, in slices": in_dicts(InGrain, slices=3),
}
OTHERS = {
    "JAX, none ahead": in_dicts(OnDevices, ahead=0),
    "JAX, 100 ahead": in_dicts(OnDevices, ahead=100),
    "Grain, in more slices than batches": in_dicts(InGrain, slices=20),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("road", ROADS)
def test_batches_and_places_are_a_loaders(tmp_path: Path, road: str, source: str) -> None:
    assert_a_loaders(ROADS[road], source, tmp_path)


@pytest.mark.parametrize("source", SPECIAL)
@pytest.mark.parametrize("road", OTHERS)
def test_batches_ahead_and_in_many_slices(tmp_path: Path, road: str, source: str) -> None:
    assert_a_loaders(OTHERS[road], source, tmp_path)


def test_batches_of_processes_are_a_loaders(tmp_path: Path) -> None:
    assert_a_loaders(Road(in_processes, resumes=False), "columns of every kind", tmp_path)


IN_ROWS = [source for source in SOURCES if source.endswith(": rows")]


@pytest.mark.parametrize("source", [*IN_ROWS, "pictures", "steps", "choices of steps", "messages"])
def test_items_of_a_source_are_the_rows_of_a_loader(tmp_path: Path, source: str) -> None:
    call, plan = SOURCES[source](tmp_path)
    assert plan is not None
    expected = [
        {name: plain(column[row]) for name, column in batch.items()}
        for batch in islice(batches_from(call(tfr.Loader)), 2 * plan.steps)
        for row in range(len(batch.indices))
    ]
    found = call(items)
    assert [plain(found[i]) for i in range(len(found))] == expected
    assert list(map(plain, found._getitems(range(len(found))))) == expected


@pytest.mark.parametrize("road", ROADS | OTHERS)
def test_an_error_comes_at_its_place_each_time(tmp_path: Path, road: str) -> None:
    assert_an_error_comes_at_its_place((ROADS | OTHERS)[road], tmp_path)


@pytest.mark.parametrize("make", [OnDevices, partial(InGrain, epochs=1)])
def test_an_epoch_is_counted(tmp_path: Path, make: Any) -> None:
    assert_an_epoch_is_counted(make, tmp_path)
