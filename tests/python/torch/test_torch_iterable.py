"""The IterableDataset gives each record once, for all ranks, workers and seeds."""

from __future__ import annotations

import gc
import os
import pickle
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from children import in_threads
from torch_data import (
    ID,
    NUM_RECORDS,
    asks_for_too_much,
    flat,
    ids,
    write_examples,
)

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")

from torch.utils.data import DataLoader  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def dataset(shards: list[str], **options: Any) -> Any:
    return tt.IterableDataset(shards, 7, **{"features": ID, "seed": 3, **options})


def loaded(source: Any, workers: int, **options: Any) -> Any:
    return DataLoader(source, batch_size=None, num_workers=workers, **options)


def an_epoch(shards: list[str], epoch: int, **options: Any) -> list[list[int]]:
    loader = tt.Loader(shards, 7, features=ID, seed=3, **options)
    loader.set_epoch(epoch)
    return ids(loader)


def slow_to_begin(worker: int) -> None:
    time.sleep(random.Random(worker).random() * 0.3)


def test_epochs_go_on_although_the_seed_repeats(shards: list[str]) -> None:
    loader = loaded(dataset(shards), 3, worker_init_fn=slow_to_begin)
    for epoch in range(3):
        torch.manual_seed(0)
        assert ids(loader) == an_epoch(shards, epoch)


def test_workers_that_stay_take_the_next_epoch_or_the_chosen_one(shards: list[str]) -> None:
    source = dataset(shards)
    loader = loaded(source, 2, persistent_workers=True)
    assert ids(loader) == an_epoch(shards, 0)
    assert ids(loader) == an_epoch(shards, 1)
    source.set_epoch(7)
    assert ids(loader) == an_epoch(shards, 7)
    assert ids(loader) == an_epoch(shards, 8)
    next(iter(loader))
    assert ids(loader) == an_epoch(shards, 10)


def test_two_iterations_at_a_time_are_two_epochs(shards: list[str]) -> None:
    loader = loaded(dataset(shards), 2, worker_init_fn=slow_to_begin)
    epochs = zip(
        *((ids([one])[0], ids([other])[0]) for one, other in zip(loader, loader, strict=True)),
        strict=True,
    )
    got = sorted(list(map(list, epoch)) for epoch in epochs)
    assert got == sorted([an_epoch(shards, 0), an_epoch(shards, 1)])


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_workers_share_the_count_of_epochs_however_they_start(
    shards: list[str], start: str
) -> None:
    options = {"multiprocessing_context": start, "persistent_workers": True}
    loader = loaded(dataset(shards), 2, **options)
    assert ids(loader) == an_epoch(shards, 0)
    loader.dataset.set_epoch(4)
    assert ids(loader) == an_epoch(shards, 4)


def test_a_pickled_copy_counts_for_itself(shards: list[str]) -> None:
    source = dataset(shards)
    ids(source)
    copy = pickle.loads(pickle.dumps(source))
    assert ids(copy) == ids(source) == an_epoch(shards, 1)
    assert ids(copy) == an_epoch(shards, 2)
    assert ids(source) == an_epoch(shards, 2)


def test_a_pickle_of_records_that_are_not_as_many_now_is_refused(tmp_path: Path) -> None:
    shards = write_examples(tmp_path, NUM_RECORDS - 1)
    pickles = [pickle.dumps(dataset(shards)), pickle.dumps(tt.Dataset(shards, features=ID))]
    write_examples(tmp_path)
    for each in pickles:
        with pytest.raises(ValueError, match="had 102 records when this object was pickled, and"):
            pickle.loads(each)


class DiesOnce:
    """A transform that ends its process, as the system does if a process takes too much memory."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __call__(self, batch: Any) -> Any:
        if 50 in batch["id"] and not self.mark.exists():
            self.mark.touch()
            os._exit(9)
        return batch


def test_a_worker_that_dies_is_an_error_and_the_next_epoch_is_whole(
    shards: list[str], tmp_path: Path
) -> None:
    loader = loaded(dataset(shards, transform=DiesOnce(tmp_path / "died")), 2)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        ids(loader)
    gc.collect()  # the DataLoader's iterator, which would call the death an error again
    assert ids(loader) == an_epoch(shards, 1)


def test_an_error_names_the_argument_before_any_file_is_opened(shards: list[str]) -> None:
    with pytest.raises(TypeError, match="transform is a function of a batch, not int"):
        dataset(["no such file"], transform=5)
    with pytest.raises(TypeError, match="there is no buffer"):
        dataset(["no such file"], shuffle=1000)
    with pytest.raises(ValueError, match="Give rank and world together"):
        dataset(["no such file"], rank=1)
    with pytest.raises(TypeError, match=r"features must be .*, not 3\.5"):
        dataset(shards, features=3.5)


def test_without_features_batches_are_records(shards: list[str]) -> None:
    source = tt.IterableDataset(shards, 7, features=None, shuffle=False)
    with tfr.Reader(shards) as reader:
        for workers in (0, 2):
            assert flat(batch.tolist() for batch in loaded(source, workers)) == list(reader)
            source.set_epoch(0)


# ---- workers that begin late, and threads


def the_second_is_late(worker: int) -> None:
    if worker == 1:
        time.sleep(0.5)


@pytest.mark.parametrize("chosen", [None, 5])
def test_a_worker_that_stays_may_begin_after_others_have_begun_again(
    shards: list[str], chosen: int | None
) -> None:
    source = dataset(shards)
    loader = loaded(source, 2, worker_init_fn=the_second_is_late, persistent_workers=True)
    next(iter(loader))  # from the first worker
    if chosen is not None:
        source.set_epoch(chosen)
    epoch = 1 if chosen is None else chosen
    assert ids(loader) == an_epoch(shards, epoch)
    assert ids(loader) == an_epoch(shards, epoch + 1)


def test_choosing_an_epoch_does_not_change_one_that_has_begun(shards: list[str]) -> None:
    source = dataset(shards)
    loader = loaded(source, 2, worker_init_fn=the_second_is_late)
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


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_stop_iteration_of_a_transform_does_not_end_the_epoch(
    shards: list[str], workers: int, threads: int
) -> None:
    source = dataset(shards, transform=asks_for_too_much, threads=threads)
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(loaded(source, workers))
