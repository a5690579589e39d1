"""Lets threads, exits, forks, the garbage collector and signals disturb calls into native code.

    python boundary.py SCENARIO FOLDER [--seed 7] [--rounds 3]

FOLDER must be empty. If all went well, prints nothing and exits with 0. Each scenario runs in
forked children, which end like programs. The seed fixes random numbers, but not the timing of
threads.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import itertools
import os
import pickle
import random
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tfrfast as tfr
from boundary_calls import CALLS, EXAMPLES, FEATURES, RECORDS, Call, make_calls, shard
from patience import PATIENCE_S

#: Calls that a forked child may make while its parent's threads are inside the same calls.
INHERITED = ["read_one", "read_many", "iterate", "open_reader", "read_damaged", "parse", "encode"]


class Threads:
    """Runs each call in a thread of its own, again and again, until the block ends."""

    def __init__(self, calls: list[Call]) -> None:
        self._calls = calls
        self._done = threading.Event()
        self._raised: list[BaseException] = []
        self.counts = [0] * len(calls)

    def _run(self, number: int) -> None:
        try:
            while not self._done.is_set():
                self._calls[number]()
                self.counts[number] += 1
        except BaseException as error:
            self._raised.append(error)
            self._done.set()

    def __enter__(self) -> Threads:
        self._threads = [
            threading.Thread(target=self._run, args=[number]) for number in range(len(self._calls))
        ]
        for thread in self._threads:
            thread.start()
        return self

    def wait_for_all(self, times: int) -> None:
        """Waits until each thread has made that many calls."""
        while min(self.counts) < times and not self._done.is_set():
            time.sleep(0.001)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()
        if self._raised:
            raise self._raised[0]


def in_child(work: Callable[[], object]) -> str:
    """Runs `work` in a forked child that ends like a program. Returns the failure, or ""."""
    outlet, inlet = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(outlet)
        os.dup2(inlet, 1)
        os.dup2(inlet, 2)
        faulthandler.register(signal.SIGALRM, chain=True)
        signal.alarm(PATIENCE_S)  # a hanging child prints its stacks and dies
        work()
        sys.exit(0)  # the end of the interpreter is part of the test
    os.close(inlet)
    with open(outlet, errors="replace") as said:
        text = said.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return text if code == 0 else f"exit code {code}: {text}"


# -- exit: daemon threads are in the midst of a call when the program ends


def exit_with_daemons(call: Call, threads: int) -> None:
    begun = threading.Barrier(threads + 1)

    def run() -> None:
        call()
        begun.wait()
        while True:
            call()

    for _ in range(threads):
        threading.Thread(target=run, daemon=True).start()
    begun.wait()


def exits(folder: Path, dice: random.Random, rounds: int) -> Iterator[str]:
    for name in CALLS:
        for number in range(rounds):
            place = folder / f"{name}-{number}"
            place.mkdir()

            def work(name: str = name, place: Path = place) -> None:
                time.sleep(dice.random() / 100)
                exit_with_daemons(CALLS[name](place), 1)

            if failure := in_child(work):
                yield f"a daemon thread in {name}: {failure}"
    place = folder / "all"
    place.mkdir()

    def all_at_once() -> None:
        for call in make_calls(place).values():
            exit_with_daemons(call, 1)

    if failure := in_child(all_at_once):
        yield f"daemon threads in all: {failure}"


# -- threads call all methods of one object


def guarded(often: list[Call], rarely: list[Call], told: str, dice: random.Random) -> list[Call]:
    """Returns the calls, which may raise errors that say so. Rare calls wait a little."""

    def guard(call: Call, delay_s: float) -> Call:
        def run() -> None:
            try:
                call()
            except (ValueError, RuntimeError) as error:
                if not re.search(told, str(error)):
                    raise
            time.sleep(delay_s)

        return run

    return [guard(call, 0) for call in often] + [
        guard(call, 0.001 + dice.random() / 100) for call in rarely
    ]


class SharedLoader:
    """A Loader and its iterator. Threads read both, and close, move and replace the Loader."""

    def __init__(self, folder: Path) -> None:
        self._reader = tfr.Reader(shard(folder), threads=1)
        self._make()

    def _make(self) -> None:
        self._loader = tfr.Loader(self._reader, 3, threads=2, prefetch=3)
        self._batches = iter(self._loader)

    def _check(self, batch: Any) -> None:
        assert batch.tolist() == [RECORDS[number] for number in batch.indices.tolist()]

    def take(self) -> None:
        for batch in self._batches:
            self._check(batch)

    def take_one(self) -> None:
        self._check(next(iter(self._loader), tfr.RecordBatch([], [0], [], [])))

    def move(self) -> None:
        self._loader.set_epoch(3)

    def restore(self) -> None:
        self._loader.load_state_dict(self._loader.state_dict())

    def ask(self) -> None:
        state = self._loader.state_dict()
        assert state["position"] % 3 == 0
        assert len(self._loader) == 334
        repr(self._loader)
        self._loader.stats()

    def copy(self) -> None:
        pickle.loads(pickle.dumps(self._loader)).close()

    def close(self) -> None:
        self._loader.close()
        self._make()

    def drop(self) -> None:
        self._make()

    def calls(self, dice: random.Random) -> list[Call]:
        """Returns the calls. Each call works until another thread closes or moves the loader."""
        rarely = [self.move, self.restore, self.close, self.drop, self.copy]
        often = [self.take, self.take, self.take, self.take_one, self.ask]
        told = "has been closed|has begun|has moved this loader"
        return guarded(often, rarely, told, dice)


class SharedRest:
    """A Reader, its iterator, a writer and a parser."""

    def __init__(self, folder: Path) -> None:
        self._path = shard(folder)
        self._written = folder / "written"
        self._make_reader()
        self._make_writer()

    def _make_reader(self) -> None:
        self._reader = tfr.Reader(self._path, index="memory", threads=2)
        self._records = iter(self._reader)

    def _make_writer(self) -> None:
        self._writer = tfr.Writer(self._written, sync=False, overwrite=True, index=False)

    def read(self) -> None:
        batch = self._reader.read(range(0, 1000, 3))
        views = [batch.view(row) for row in range(5)]
        del batch
        assert [bytes(view) for view in views] == RECORDS[:15:3]

    def iterate(self) -> None:
        for record in self._records:
            assert record[:1].isdigit()

    def reopen(self) -> None:
        self._reader.close()
        self._make_reader()

    def write(self) -> None:
        writer = self._writer
        writer.write(RECORDS[99])
        writer.write_batch(RECORDS)
        assert writer.num_records > len(RECORDS)

    def close(self) -> None:
        self._writer.close()
        self._make_writer()

    def abort(self) -> None:
        self._writer.abort()
        self._make_writer()

    def parse(self) -> None:
        assert len(tfr.parse_example(EXAMPLES, FEATURES)["x"]) == len(EXAMPLES)

    def calls(self, dice: random.Random) -> list[Call]:
        often = [self.read, self.iterate, self.iterate, self.write, self.write, self.parse]
        rarely = [self.reopen, self.close, self.abort, self.parse]
        return guarded(often, rarely, "has been closed", dice)


def threads(folder: Path, dice: random.Random, rounds: int) -> Iterator[str]:
    warnings.simplefilter("ignore", ResourceWarning)  # writers are dropped on purpose
    for number in range(rounds):
        for kind in (SharedLoader, SharedRest):
            place = folder / f"{kind.__name__}-{number}"
            place.mkdir()

            def work(kind: Any = kind, place: Path = place) -> None:
                gc.set_threshold(7)  # collects in every thread, all the time
                with Threads(kind(place).calls(dice)) as running:
                    running.wait_for_all(20)

            if failure := in_child(work):
                yield f"{kind.__name__}: {failure}"


# -- garbage: objects are collected in other threads than their own, while they work


def drop_in_cycles(folder: Path) -> Call:
    path = shard(folder)
    numbers = itertools.count()

    def call() -> None:
        reader = tfr.Reader(path, index="memory", threads=2)
        loader = tfr.Loader(reader, 7, threads=2)
        batches = iter(loader)
        batch = next(batches)
        records = iter(reader)
        next(records)
        writer = tfr.Writer(folder / "never", sync=False, overwrite=True)
        writer.write(RECORDS[0])
        ring: list[Any] = [reader, loader, batches, batch.view(0), batch.data, records, writer]
        ring.append(ring)
        if next(numbers) % 8 == 0:
            gc.collect()  # collects other threads' rings, too: otherwise their threads would pile up

    return call


def garbage(folder: Path, dice: random.Random, rounds: int) -> Iterator[str]:
    warnings.simplefilter("ignore", ResourceWarning)  # writers are dropped on purpose
    for number in range(rounds):
        places = [folder / f"{number}-{thread}" for thread in range(3)]
        for place in places:
            place.mkdir()

        def work(places: list[Path] = places) -> None:
            with Threads([drop_in_cycles(place) for place in places]) as running:
                running.wait_for_all(20)

        if failure := in_child(work):
            yield failure


# -- fork: while threads are in the midst of calls, whose objects and locks a child inherits


def forks(folder: Path, dice: random.Random, rounds: int) -> Iterator[str]:
    warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)

    def work() -> None:
        (folder / "parent").mkdir()
        calls = make_calls(folder / "parent")
        with Threads(list(calls.values())) as running:
            running.wait_for_all(1)
            for number in range(8 * rounds):
                place = folder / str(number)
                place.mkdir()
                chosen = dice.sample(list(CALLS), 3)

                def of_child(place: Path = place, chosen: list[str] = chosen) -> None:
                    for name in INHERITED:
                        calls[name]()
                    for name in chosen:
                        (place / name).mkdir()
                        CALLS[name](place / name)()

                if failure := in_child(of_child):
                    raise AssertionError(f"child {number}, {chosen}: {failure}")

    if failure := in_child(work):
        yield failure


# -- signals: Ctrl-C at any moment of a call


def signals(folder: Path, dice: random.Random, rounds: int) -> Iterator[str]:
    interrupted = threading.Event()

    def interrupt(number: int, frame: object) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    def work() -> None:
        signal.signal(signal.SIGINT, interrupt)
        calls = make_calls(folder)
        del calls["open_plan"]  # ctypes drops exceptions of its callbacks
        for call in calls.values():
            call()  # NumPy's import, for one, survives no interruption
            for _ in range(rounds):
                interrupted.clear()
                delay_s = dice.random() / 50
                timer = threading.Timer(delay_s, os.kill, (os.getpid(), signal.SIGINT))
                try:
                    timer.start()
                    while not interrupted.is_set():
                        call()
                    raise AssertionError("the interruption got lost")
                except KeyboardInterrupt:
                    timer.join()
            call()  # still works

    if failure := in_child(work):
        yield failure


SCENARIOS: dict[str, Callable[[Path, random.Random, int], Iterator[str]]] = {
    each.__name__: each for each in (exits, threads, garbage, forks, signals)
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    os.environ["TFRFAST_CACHE_DIR"] = str(folder / "cache")
    (folder / "data").mkdir()
    dice = random.Random(arguments.seed)
    failures = 0
    for failure in SCENARIOS[arguments.scenario](folder / "data", dice, arguments.rounds):
        print(failure)
        failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
