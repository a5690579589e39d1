"""Loader(transform=): threads transform later batches; results come in order, with states."""

from __future__ import annotations

import contextlib
import gc
import json
import pickle
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from children import in_threads, is_right_in_child
from patience import PATIENCE_S
from record_files import flip_payload_byte, write_shard

COUNT, ROWS = 50, 4
STEPS = 13
ID = {"id": tfr.FixedLen((), "int64")}


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    records = [tfr.encode_example({"id": number}) for number in range(COUNT)]
    return write_shard(tmp_path_factory.mktemp("data") / "shard", records)


def ids(batch: Any) -> list[int]:
    return batch["id"].tolist()


def slow_ids(batch: Any) -> list[int]:
    """Finishes later batches before earlier batches."""
    time.sleep(0.01 * (3 - batch["id"][0] % 3))
    return ids(batch)


def test_what_cannot_be_called_is_no_transform(shard: str) -> None:
    with pytest.raises(TypeError, match="transform is a function of a batch, not str"):
        loader_of(shard, transform="ids")


def loader_of(shard: str, transform: Any = ids, **options: Any) -> tfr.Loader:
    return tfr.Loader(shard, ROWS, features=ID, seed=3, transform=transform, **options)


@pytest.fixture(scope="module")
def expected(shard: str) -> list[list[list[int]]]:
    plain = tfr.Loader(shard, ROWS, features=ID, seed=3)
    return [[ids(batch) for batch in plain] for _ in range(3)]


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_order(shard: str, expected: Any, threads: int) -> None:
    loader = loader_of(shard, slow_ids, threads=threads)
    assert [list(loader) for _ in range(3)] == expected
    assert (loader.epoch, loader.step) == (3, 0)


def test_work_is_done_ahead_by_other_threads(shard: str) -> None:
    seen: list[int] = []
    second = threading.Event()
    of_thread = threading.local()
    new_threads: list[str] = []

    def note(batch: Any) -> int:
        if not hasattr(of_thread, "is_known"):
            of_thread.is_known = True
            new_threads.append(threading.current_thread().name)
        seen.append(threading.get_ident())
        if len(seen) == 2:
            second.set()
        return len(ids(batch))

    loader = loader_of(shard, note, threads=8)
    batches = iter(loader)
    assert next(batches) == ROWS
    assert loader.stats().batches == 2  # the first result waits for no more
    assert second.wait(PATIENCE_S)
    assert sum(map(len, [list(batches), list(loader), list(loader)])) == 3 * STEPS - 1
    assert threading.get_ident() not in seen
    assert len(new_threads) <= 8  # in all epochs


@pytest.mark.parametrize("taken", [0, 1, 5, STEPS])
def test_a_state_is_of_what_was_handed_out(shard: str, expected: Any, taken: int) -> None:
    loader = loader_of(shard, threads=2)
    batches = iter(loader)
    assert [next(batches) for _ in range(taken)] == expected[0][:taken]
    state = json.loads(json.dumps(loader.state_dict()))
    assert (state["epoch"], state["position"]) == (0, min(taken * ROWS, COUNT))
    assert loader.step == taken
    plain = tfr.Loader(shard, ROWS, features=ID, seed=3)
    plain.load_state_dict(state)
    assert [ids(batch) for batch in plain] == expected[0][taken:]
    for other in (loader_of(shard), pickle.loads(pickle.dumps(loader))):
        other.load_state_dict(state)
        assert list(other) == expected[0][taken:]
        assert list(other) == expected[1]
    assert list(batches) == expected[0][taken:]


def test_an_error_comes_in_its_place_and_is_tried_again(shard: str, expected: Any) -> None:
    failing = {3, 4}

    def fails_once(batch: Any) -> list[int]:
        step = expected[0].index(ids(batch))
        if step in failing:
            failing.discard(step)
            raise ZeroDivisionError(step)
        return ids(batch)

    loader = loader_of(shard, fails_once, threads=3)
    received: list[Any] = []
    batches = iter(loader)
    while len(received) < STEPS + 2:
        try:
            received.append(next(batches))
        except ZeroDivisionError as error:
            assert loader.step == error.args[0]
            received.append(error.args[0])
    assert received == [*expected[0][:3], 3, expected[0][3], 4, *expected[0][4:]]


def test_a_stop_iteration_does_not_end_the_epoch(shard: str) -> None:
    def stops(batch: Any) -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="transform raised StopIteration"):
        list(loader_of(shard, stops))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("ask", [lambda _, batches: next(batches), lambda loader, _: iter(loader)])
@pytest.mark.parametrize("has_adapter", [False, True])
def test_a_transform_that_asks_its_own_loader_is_an_error(
    shard: str, expected: Any, ask: Any, threads: int, has_adapter: bool
) -> None:
    asking: list[Any] = []

    def transform(batch: Any) -> Any:
        for batches in asking:
            ask(loader, batches)
        return ids(batch)

    loader = loader_of(shard, transform, threads=threads)
    if has_adapter:
        loader._deliver_through(lambda batch: batch, ahead=1)
    batches = iter(loader)
    asking.append(batches)
    with pytest.raises(RuntimeError, match="transform asked its own Loader for a batch"):
        next(batches)
    asking.clear()
    delivered = []
    while len(delivered) < STEPS:
        with contextlib.suppress(RuntimeError):  # of a batch that was transformed ahead
            delivered.append(next(batches))
    assert delivered == expected[0]


def test_without_threads_the_error_says_what_to_do_and_no_batch_is_lost(
    shard: str, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    batches = iter(loader_of(shard))
    with monkeypatch.context() as no_threads:
        no_threads.setattr(threading.Thread, "start", refuse)
        for _ in range(2):
            with pytest.raises(OSError, match="Ask for fewer threads, or raise the limits"):
                next(batches)
    assert list(batches) == expected[0]


def test_a_transform_that_returns_nothing_is_an_error(shard: str) -> None:
    with pytest.raises(TypeError, match="transform returned None"):
        list(loader_of(shard, lambda batch: None))


def test_a_damaged_record_is_an_error_after_what_comes_before(shard: str, tmp_path: Path) -> None:
    records = list(tfr.Reader(shard))
    damaged = write_shard(tmp_path / "damaged", records)
    flip_payload_byte(damaged, records, 23)
    loader = tfr.Loader(damaged, ROWS, features=ID, shuffle=False, transform=ids, threads=3)
    batches = iter(loader)
    assert [next(batches) for _ in range(5)] == [[*range(4 * i, 4 * i + 4)] for i in range(5)]
    for _ in range(2):
        with pytest.raises(tfr.CorruptRecordError):
            next(batches)
        assert (loader.step, loader.state_dict()["position"]) == (5, 20)


def test_another_iteration_ends_the_first(shard: str, expected: Any) -> None:
    loader = loader_of(shard)
    first = iter(loader)
    next(first)
    second = iter(loader)
    with pytest.raises(RuntimeError, match="Another iteration"):
        next(first)
    assert list(second) == expected[1]
    third = iter(loader)
    next(third)
    loader.set_epoch(0)
    with pytest.raises(RuntimeError, match="moved this loader"):
        next(third)
    assert list(loader) == expected[0]
    loader.close()
    with pytest.raises(ValueError, match="closed"):
        next(iter(loader))


@pytest.mark.parametrize("ahead", [None, 2])
def test_threads_share_an_iterator(shard: str, expected: Any, ahead: int | None) -> None:
    loader = loader_of(shard, slow_ids, threads=2)
    if ahead is not None:  # of an adapter
        loader._deliver_through(lambda batch: batch, ahead=ahead)
    batches = iter(loader)
    received: list[Any] = []
    in_threads([lambda: received.extend(batches)] * 3)
    assert sorted(received) == sorted(expected[0])


def test_a_forked_child_goes_on_where_the_parent_was(shard: str, expected: Any) -> None:
    loader = loader_of(shard, threads=2)
    batches = iter(loader)
    assert [next(batches) for _ in range(3)] == expected[0][:3]
    for each in (batches, loader):
        assert is_right_in_child(
            lambda each=each: [*each, *loader] == expected[0][3:] + expected[1]
        )
    assert list(batches) == expected[0][3:]


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize(("asked", "place"), [(4, (0, 4)), (STEPS + 2, (1, 0))])
def test_a_forked_child_counts_steps_and_epochs_like_its_parent(
    shard: str, expected: Any, ahead: int, asked: int, place: tuple[int, int]
) -> None:
    loader = loader_of(shard, None)
    loader._deliver_through(ids, ahead=ahead)
    batches = iter(loader)
    for _ in range(asked - 1):
        next(batches, None)

    def goes_on() -> bool:
        next(batches, None)
        return (loader.epoch, loader.step) == place and list(loader) == expected[1]

    assert is_right_in_child(goes_on)


def test_weights_change_where_the_user_stands(shard: str) -> None:
    mixture = tfr.Mixture({"a": (tfr.Reader(shard), 1), "b": (tfr.Reader(shard), 1)}, seed=1)
    loader = tfr.Loader(
        mixture, ROWS, features=ID, threads=3, transform=lambda batch: batch.sources.tolist()
    )
    batches = iter(loader)
    for _ in range(2):
        next(batches)
    loader.change_weights({"a": 0, "b": 1})
    assert loader.state_dict()["position"] == 2 * ROWS
    assert np.concatenate(list(loader)).min() == 1


def test_records_that_are_not_decoded_are_transformed_too(shard: str) -> None:
    loader = tfr.Loader(shard, ROWS, shuffle=False, transform=lambda batch: batch.tolist())
    assert [record for batch in loader for record in batch] == list(tfr.Reader(shard))


def test_a_transform_may_raise_what_a_cancelled_future_raises(shard: str, expected: Any) -> None:
    failing = {3}

    def cancelled_once(batch: Any) -> list[int]:
        if expected[0].index(ids(batch)) in failing:
            failing.clear()
            raise CancelledError
        return ids(batch)

    batches = iter(loader_of(shard, cancelled_once, threads=2))
    received = [next(batches) for _ in range(3)]
    with pytest.raises(CancelledError):
        next(batches)
    assert received + list(batches) == expected[0]


def test_work_of_an_abandoned_loop_does_not_hold_up_the_next(shard: str) -> None:
    release, begun, ended = threading.Event(), threading.Event(), threading.Event()
    was_released: list[bool] = []

    def hang_once(batch: Any) -> int:
        if len(calls) == 1:
            begun.set()
            was_released.append(release.wait(PATIENCE_S))
            ended.set()
        calls.append(0)
        return len(ids(batch))

    calls: list[int] = []
    loader = loader_of(shard, hang_once, threads=1)
    next(iter(loader))
    assert begun.wait(PATIENCE_S)
    calls += [0, 0]
    loader.set_epoch(0)
    assert next(iter(loader)) == ROWS
    release.set()
    assert ended.wait(PATIENCE_S)
    assert was_released == [True]  # otherwise the loop has waited


def test_a_dropped_loader_ends_its_threads_at_once(shard: str) -> None:
    def threads() -> int:
        return sum(each.name.startswith("tfrfast") for each in threading.enumerate())

    before = threads()
    gc.disable()
    try:
        for _ in range(3):
            list(loader_of(shard, threads=2))
        end = time.monotonic() + PATIENCE_S
        while threads() > before and time.monotonic() < end:
            time.sleep(0.01)
        assert threads() <= before
    finally:
        gc.enable()
