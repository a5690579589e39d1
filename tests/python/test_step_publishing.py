"""A step file gets its name whole or not at all, even if its builder dies."""

import multiprocessing
import os
import resource
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from tfrfast.steps import building

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def path(tmp_path: Path) -> str:
    name = str(tmp_path / "data" / "robots")
    os.mkdir(os.path.dirname(name))
    with tfr.Writer(name) as writer:
        for _ in range(20):
            image = [bytes(each) for each in np.random.default_rng(0).integers(1, 99, 200)]
            writer.write(tfr.encode_example({"s/n": range(200), "s/image": image}))
    return name


def child(function: Any, *arguments: Any) -> Any:
    process = FORK.Process(target=function, args=arguments)
    process.start()
    return process


def files(path: str) -> list[str]:
    return sorted(os.listdir(f"{os.path.dirname(path)}.tfrfast"))


def test_a_killed_builder_leaves_what_the_next_one_removes(path: str) -> None:
    tfr.build_index(path)
    before = files(path)

    def build_and_die(when: str) -> None:
        publish = building.publish_own

        def die(*arguments: Any) -> None:
            if when == "after":
                publish(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        building.publish_own = die
        tfr.build_steps(path, along="s/", threads=1)

    for when, finished in (("before", 0), ("after", 1)):
        died = child(build_and_die, when)
        died.join()
        assert died.exitcode == -signal.SIGKILL
        left = [each for each in files(path) if each not in before]
        assert len([each for each in left if each.endswith(".steps")]) == finished
        assert len([each for each in left if each.startswith(".")]) == 1
    made = tfr.build_steps(path, along="s/")
    assert files(path) == sorted([*before, os.path.basename(made)])
    assert len(tfr.Steps(path, along="s/", index="require")) == 4000


def test_a_full_disk_is_said_and_leaves_nothing(path: str) -> None:
    tfr.build_index(path)
    before = files(path)

    def build() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        with pytest.raises(OSError, match=r"File too large: .*\.steps'"):
            tfr.build_steps(path, along="s/", threads=1)

    failing = child(build)
    failing.join()
    assert failing.exitcode == 0
    assert files(path) == before


def test_builders_at_once_end_with_one_whole_file(path: str) -> None:
    barrier = FORK.Barrier(3)

    def build() -> None:
        barrier.wait()
        for _ in range(5):
            tfr.build_steps(path, along="s/", threads=1)
            assert len(tfr.Steps(path, along="s/", index="require")) == 4000

    builders = [child(build) for _ in range(3)]
    for each in builders:
        each.join()
    assert [each.exitcode for each in builders] == [0, 0, 0]
    assert len([each for each in files(path) if each.endswith(".steps")]) == 1
    assert not [each for each in files(path) if each.startswith(".")]
