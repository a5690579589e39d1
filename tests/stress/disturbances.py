"""What disturbs a road from outside: kills, signals, exits, threads, forks that close descriptors."""

from __future__ import annotations

import gc
import inspect
import itertools
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from road import PUBLISHES, SERVED, Opened
from scene import Outcome, Scene, outcome
from truth import write
from whole_children import failure, finish, kill, started, watch


def kills(scene: Scene) -> None:
    """The road is killed at any moment. A new run is exact, and leaves nothing of the killed one."""
    scene.set_up()
    for _ in range(scene.chosen.randrange(1, 5)):
        seed = scene.chosen.random()
        child = started(lambda seed=seed: _run(scene, seed), scene.folder)
        kill(child, scene.folder, scene.chosen.uniform(0, 0.3))
        scene.check_outputs()
    scene.check_exact()
    if PUBLISHES in scene.road.has:
        places = [scene.folder / "out", scene.folder / "out.tfrfast"]
        left = [path.name for place in places for path in place.glob(".*")]
        left += [path.name for path in places[1].glob("shuffle-*")]
        left = [name for name in left if not name.endswith("lock")]
        assert not left, f"left behind: {left}"


def _run(scene: Scene, seed: float) -> None:
    scene.chosen = random.Random(seed)
    outcome(scene.open)


class TimeIsUpError(Exception):
    """What the user's own signal handler raises."""


def signals(scene: Scene) -> None:
    """A signal handler raises at any moment: its exception arrives, and the road still works."""
    scene.set_up()
    opened = scene.open()
    came = []

    def interrupt_after(delay_s: float) -> None:
        threading.Timer(delay_s, os.kill, (os.getpid(), signal.SIGUSR1)).start()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if _is_elsewhere(frame):
            interrupt_after(0.001)
            return
        came.append(number)
        raise TimeIsUpError("after a while")

    signal.signal(signal.SIGUSR1, interrupt)
    dropped: list[object] = []
    sys.unraisablehook = dropped.append  # by Python itself, as in a callback of a weak reference
    for _ in range(3):
        came.clear()
        try:
            interrupt_after(scene.chosen.uniform(0.0001, 0.05))
            while not came:
                opened = scene.open() if scene.chosen.random() < 0.5 else opened
                for _ in opened.epoch():
                    pass
            assert dropped, "the handler's exception got lost"
        except TimeIsUpError:
            pass
    scene.judge(scene.truth(), outcome(opened))
    scene.check_exact()


def _is_elsewhere(frame: FrameType | None) -> bool:
    """Returns True inside a framework, which may drop the exception, and in a generator or an import,
    where Python may.
    """
    while frame is not None:
        code = frame.f_code
        if "tensorflow/" in code.co_filename.replace("tfrfast/tensorflow/", ""):
            return True
        if code.co_flags & inspect.CO_GENERATOR or "importlib" in code.co_filename:
            return True
        if "site-packages/jax" in code.co_filename or code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def exits(scene: Scene) -> None:
    """The program ends while threads are on the road. It ends as programs do, and soon."""
    scene.set_up()

    def work() -> None:
        begun = threading.Event()

        def run() -> None:
            while True:
                outcome(scene.open)
                begun.set()

        threading.Thread(target=run, daemon=True).start()
        begun.wait(60)
        time.sleep(scene.chosen.uniform(0, 0.02))

    finish(started(work, scene.folder, exits=True), scene.folder)
    scene.check_exact()


def threads(scene: Scene) -> None:
    """Several threads take the same road at once, each with a folder of its own."""
    scene.set_up()
    before = scene.folder
    said: list[Outcome | BaseException] = []

    def run(task: Callable[[], object]) -> None:
        try:
            said.append(outcome(task))
        except BaseException as error:
            said.append(error)

    tasks = []
    for number in range(4):
        task = scene.task()
        task.folder = before / f"out-{number}"
        task.folder.mkdir()
        tasks.append(task)
    running = [
        threading.Thread(target=run, args=[lambda task=task: scene.road.open(task)])
        for task in tasks
    ]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    for each in said:
        if isinstance(each, BaseException):
            raise each
        assert each.error is None, f"beside other threads it fails: {each.error!r}"
        scene.judge(scene.truth(), each)


def forks(scene: Scene) -> None:
    """A child closes all descriptors, as daemons do, and opens other files, which get their numbers.
    The road returns no byte of those, and leaves them open.
    """
    chosen = scene.chosen
    scene.set_up(may_pack=False)
    other = scene.folder / "other"
    fresh = [b"9" + text[1:] for state in scene.states for text in state.texts]
    write(other, scene.state_of(fresh).records)
    opened = scene.open()
    epoch = iter(opened.epoch())
    before = list(itertools.islice(epoch, chosen.choice([0, 1, 5, 100])))
    finish(
        started(lambda: _in_child(scene, opened, epoch, before, other), scene.folder), scene.folder
    )
    said = outcome(opened)  # the parent goes on
    assert said.error is None, f"after a fork, the parent fails: {said.error!r}"
    scene.judge(scene.truth(), said)


def _in_child(
    scene: Scene, opened: Opened, epoch: Iterator[Any], before: list[Any], other: Path
) -> None:
    chosen = scene.chosen
    # The client of a server needs its own descriptors, which are no files.
    if closes := SERVED not in scene.road.has and chosen.random() < 0.8:
        os.closerange(3, 256)
        watch(failure(scene.folder, os.getpid()))
        for _ in range(chosen.choice([3, 10, 60])):
            os.open(other, os.O_RDONLY)
    taken = [number for number in range(3, 256) if _names(number, other)]
    ways: dict[str, Any] = {"the rest": Opened(lambda rest=epoch: rest), "an epoch": opened}
    for name in chosen.sample(["the rest", "an epoch", "a new run"], 3):
        said = outcome(ways.get(name, scene.open))
        if name == "the rest":
            said.items[:0] = before
        elif name == "a new run" or not closes:
            assert said.error is None, f"in a child, {name} fails: {said.error!r}"
        if name != "a new run":
            # A loader's first epoch in a child is the rest of its parent's.
            said.error = said.error or InterruptedError("a part")
        scene.judge(scene.truth(), said)
    ways.clear()
    del opened, epoch
    gc.collect()
    lost = [number for number in taken if not _names(number, other)]
    assert not lost, f"the program's descriptors {lost} were closed"


def _names(number: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(number), file.stat())
    except OSError:
        return False
