"""Memory that another thread changes while a road uses it: records to write, numbers to read."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import numpy as np

from scene import Scene, outcome
from truth import Truth


@contextlib.contextmanager
def changing(change: Callable[[], object]) -> Iterator[None]:
    """Makes the change again and again in another thread, until the block ends."""
    done = threading.Event()

    def run() -> None:
        while not done.is_set():
            change()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def buffers(scene: Scene) -> None:
    """Records change while they are written. The shard is whole, with records of the same lengths,
    and those that did not change are right.
    """
    chosen = scene.chosen
    # NumPy copies without the GIL, so changes come in the midst of a call. Long records give time.
    length = chosen.choice([100, 10_000, 1_000_000])
    arrays = [np.zeros(length + i, np.uint8) for i in range(chosen.choice([1, 3, 20]))]
    fresh = np.arange(length + len(arrays), dtype=np.uint8)
    still = bytes(chosen.randbytes(50))
    given = [each for array in arrays for each in (array, still)]
    task = scene.task(records=[each if each is still else memoryview(each) for each in given])

    def change() -> None:
        for array in arrays:
            np.copyto(array, fresh[: len(array)])
            array.fill(0)

    with changing(change):
        said = outcome(lambda: scene.road.open(task))
    assert said.error is None, f"{said.error!r}"
    written = [content for _, content in said.items]
    assert len(written) == len(given), f"{len(written)} records instead of {len(given)}"
    assert sorted(map(len, written)) == sorted(map(len, given))
    assert written.count(still) == len(arrays), "a record that did not change is another"


def numbers(scene: Scene) -> None:
    """Numbers of records change while they are read. Each row is the record of its number."""
    chosen = scene.chosen
    scene.set_up(shards=2)
    records = [record for state in scene.states for record in state.records]
    order = np.array(chosen.sample(range(len(records)), len(records)), np.int64)
    wrong = chosen.choice([len(records), -1, 1 << 40, -(1 << 62)])
    given = order.copy()
    row = chosen.randrange(len(order)) if len(order) else 0

    def change() -> None:
        np.copyto(given, order[::-1])
        given[row : row + 1] = wrong
        np.copyto(given, order)

    task = scene.task(numbers=given)
    try:
        with changing(change):
            said = outcome(lambda: scene.road.open(task))
    except (IndexError, ValueError) as error:
        assert str(error)
        return
    known = Truth([[state] for state in scene.states])
    for number, content in said.items:
        known.check_one(number, content)
