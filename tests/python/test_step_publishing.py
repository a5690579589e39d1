"""A step file gets its name whole or not at all."""

import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from file_limits import few_bytes_a_file

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


def test_a_full_disk_is_said_and_leaves_nothing(path: str) -> None:
    tfr.build_index(path)
    before = files(path)
    with few_bytes_a_file(2000), pytest.raises(OSError, match=r"File too large: .*\.steps'"):
        tfr.build_steps(path, along="s/", threads=1)
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
