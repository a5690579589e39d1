"""A Loader, or one iterator, in many threads and processes: no batch is lost or comes twice."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import random
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from children import in_threads, printed_by
from patience import PATIENCE_S
from record_files import write_shard

RECORDS = [b"%d:" % i + bytes(i % 300) for i in range(1500)]
STEPS = 300

forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def reader(tmp_path: Path) -> tfr.Reader:
    return tfr.Reader(write_shard(tmp_path / "shard", RECORDS), index="memory")


# -- sharing


def test_threads_share_an_iterator_each_batch_goes_to_one_and_the_end_ends_all(
    reader: tfr.Reader,
) -> None:
    for prefetch in (1, 2, 9):
        loader = tfr.Loader(reader, 5, threads=2, prefetch=prefetch)
        for epoch in range(3):
            assert loader.epoch == epoch
            batches = iter(loader)
            received: list[list[int]] = [[], [], []]

            def consume(numbers: list[int], batches: Iterator[Any] = batches) -> None:
                for batch in batches:
                    assert batch.tolist() == [RECORDS[i] for i in batch.indices.tolist()]
                    numbers += batch.indices.tolist()

            works = [lambda numbers=numbers: consume(numbers) for numbers in received]
            in_threads(works)
            assert sorted(sum(received, [])) == list(range(len(RECORDS)))
            assert next(batches, None) is None
        assert loader.epoch == 3


def test_another_thread_sees_the_state_between_two_batches(reader: tfr.Reader) -> None:
    loader = tfr.Loader(reader, 5, threads=2)
    done = threading.Event()

    def consume() -> None:
        for _ in range(4):
            for _ in loader:
                pass
        done.set()

    def watch() -> None:
        before = (0, 0)
        while not done.is_set():
            state = loader.state_dict()
            now = (state["epoch"], state["position"])
            assert before <= now
            assert now[1] % 5 == 0
            before = now

    in_threads([consume, watch, watch])


def test_a_signal_handler_may_take_a_batch_of_the_loop_that_it_interrupts(
    reader: tfr.Reader,
) -> None:
    loader = tfr.Loader(reader, 5, threads=1, prefetch=1)
    batches = iter(loader)
    in_handler: list[int] = []

    def take(number: int, frame: object) -> None:
        batch = next(batches, None)
        if batch is not None:
            in_handler.extend(batch.indices.tolist())
        if is_running:  # an alarm after the last would end the process
            signal.setitimer(signal.ITIMER_REAL, 0.0005)

    is_running = True
    before = signal.signal(signal.SIGALRM, take)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        in_loop = [number for batch in batches for number in batch.indices.tolist()]
    finally:
        is_running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert sorted(in_loop + in_handler) == list(range(len(RECORDS)))


# -- moved while it runs


def test_a_running_loop_ends_when_the_loader_is_moved_and_the_next_one_obeys(
    reader: tfr.Reader,
) -> None:
    loader = tfr.Loader(reader, 5)
    plan = tfr.Plan(tfr.Shuffle(), 5, num_records=len(reader))
    elsewhere = {**loader.state_dict(), "epoch": 2, "position": 50}
    moves: list[tuple[Callable[[], None], tuple[int, int]]] = [
        (lambda: loader.set_epoch(7), (7, 0)),
        (lambda: loader.load_state_dict(elsewhere), (2, 10)),
        (lambda: loader.load_state_dict(loader.state_dict()), (3, 1)),  # the loader's present place
    ]
    for move, (epoch, step) in moves:
        received = 0
        with pytest.raises(RuntimeError, match="has moved this loader"):
            for _ in loader:
                received += 1
                move()
        assert received == 1
        batches = iter(loader)
        assert next(batches).indices.tolist() == plan.indices(epoch, step).tolist()


# -- forked, spawned and pickled


def first_of_next_loop(loader: tfr.Loader) -> tuple[int, list[int], int]:
    state = loader.state_dict()
    batch = next(iter(loader), None)
    numbers = [] if batch is None else batch.indices.tolist()
    return state["position"], numbers, loader.epoch


def report(loaders: list[tfr.Loader], results: Any) -> None:
    results.put([first_of_next_loop(loader) for loader in loaders])


def bring_to(loader: tfr.Loader, place: str) -> Iterator[Any] | None:
    """Returns the loop's iterator, if the loop is to stay unfinished."""
    if place == "made":
        return None
    if place == "moved":
        loader.set_epoch(4)
        return None
    batches = iter(loader)
    for _ in range({"begun": 0, "received all": STEPS}.get(place, 7)):
        next(batches)
    if place == "ended":
        assert len(list(batches)) == STEPS - 7
    return None if place in ("left", "ended") else batches


@forks
def test_forked_spawned_and_pickled_loaders_stand_at_the_same_place(reader: tfr.Reader) -> None:
    places = ["made", "moved", "begun", "running", "left", "received all", "ended"]
    loaders = [tfr.Loader(reader, 5, threads=2) for _ in places]
    still_running = [bring_to(*each) for each in zip(loaders, places, strict=True)]
    pickled = [first_of_next_loop(pickle.loads(pickle.dumps(loader))) for loader in loaders]
    for method in ["fork", "forkserver", "spawn"]:
        context: Any = multiprocessing.get_context(method)
        queue = context.Queue()
        child = context.Process(target=report, args=(loaders, queue))
        child.start()
        assert queue.get(timeout=PATIENCE_S) == pickled, method
        child.join(PATIENCE_S)
        assert child.exitcode == 0
    stood_at = dict(zip(places, pickled, strict=True))
    assert stood_at["running"] == stood_at["left"]
    assert stood_at["running"][0] == 35
    assert stood_at["received all"] == (len(RECORDS), [], 1)
    del still_running


@forks
def test_a_forked_child_goes_on_with_an_iterator_that_a_thread_was_reading(
    tmp_path: Path,
) -> None:
    records = [b"%d:" % i + bytes(20_000) for i in range(500)]  # 53 a batch
    reader = tfr.Reader(write_shard(tmp_path / "shard", records), index="memory")
    done = threading.Event()
    iterators = [iter(reader)]

    def iterate() -> None:
        while not done.is_set():
            for _ in iterators[0]:
                pass
            iterators[0] = iter(reader)

    def fork() -> None:
        try:
            for _ in range(20):
                child = os.fork()
                if child == 0:
                    signal.alarm(PATIENCE_S)  # a child that hangs dies
                    rest = list(iterators[0])
                    os._exit(0 if rest == records[len(records) - len(rest) :] else 1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        finally:
            done.set()

    in_threads([iterate, iterate, fork])


# -- stacks


SMALL_STACKS = """
import ctypes, os, sys
import tfrfast as tfr
plain, packed, stack_bytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
libc = ctypes.CDLL(None)
attributes = ctypes.create_string_buffer(64)
assert libc.pthread_attr_init(attributes) == 0
assert libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(stack_bytes)) == 0
assert libc.pthread_setattr_default_np(attributes) == 0
for path in (plain, packed):
    for io in ("mmap", "pread"):
        reader = tfr.Reader(path, io=io, index="memory")
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        for shuffle in (False, True):
            print(sum(map(len, tfr.Loader(reader, 256, shuffle=shuffle, threads=2))))
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "pthread_setattr_default_np"), reason="this libc has no default"
)
def test_threads_need_little_stack(tmp_path: Path) -> None:
    """musl gives a thread 128 KiB. Here a thread's own data and guard page count, too."""
    records = [random.Random(number).randbytes(3000) for number in range(2000)]
    paths = [str(tmp_path / "plain"), str(tmp_path / "packed")]
    for path, compression in zip(paths, ("", "GZIP"), strict=True):
        with tfr.Writer(path, compression=compression) as writer:
            writer.write_batch(records)
    assert printed_by(SMALL_STACKS, *paths, 100 << 10).split() == ["2000"] * 8
