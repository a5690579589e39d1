"""What runs out or fails under a road: system calls, descriptors, sizes of files, memory."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
from pathlib import Path

import failing_memory
from road import FRAMEWORK, SERVED
from scene import Outcome, Scene, outcome
from whole_children import finish, started

CALLS = [
    "open", "preadv", "pread", "mmap", "fstat", "stat", "pwritev", "pwrite", "fsync", "linkat", "rename",
    "ftruncate", "mkdir", "close",
]  # fmt: skip
ERRORS = [errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EACCES, errno.ESTALE, errno.ENOMEM]


def calls_library() -> str:
    """Returns the library of failing_calls.c."""
    source = Path(__file__).with_name("failing_calls.c")
    return failing_memory.compiled(source, os.environ.get("CC", "cc"))


def preload() -> dict[str, str]:
    """Returns the environment in which calls can be made to fail."""
    libraries = [calls_library(), failing_memory.library(), os.environ.get("LD_PRELOAD", "")]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    return {**os.environ, **quiet, "LD_PRELOAD": " ".join(filter(None, libraries))}


def is_preloaded() -> bool:
    return calls_library() in os.environ.get("LD_PRELOAD", "")


def calls(scene: Scene) -> None:
    """A system call fails now and then, as on a full or a dying disk."""
    chosen = scene.chosen
    scene.set_up()
    call = scene.case = chosen.choice(CALLS)
    opened = [scene.open()] if chosen.random() < 0.5 else []
    os.environ |= {
        "FAILING_UNDER": str(scene.folder),
        "FAILING_ERROR": str(chosen.choice(ERRORS)),
        "FAILING_AFTER": str(chosen.choice([0, 1, 2, 5, 20, 100])),
        "FAILING_COUNT": str(chosen.choice([1, 3, 1_000_000])),
        "FAILING_CALL": call,
    }
    said = [outcome(opened[0] if opened else scene.open) for _ in range(3)]
    del os.environ["FAILING_CALL"]
    _check(scene, said)


def limits(scene: Scene) -> None:
    """Few descriptors, short files, little memory."""
    chosen = scene.chosen
    scene.set_up(shards=chosen.randrange(1, 100))
    # Other libraries end the process, or panic, when memory runs out.
    ours = not {FRAMEWORK, SERVED} & scene.road.has
    limit = scene.case = chosen.choice(["descriptors", "file size"] + ["memory"] * ours)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    what, value = {
        "descriptors": (resource.RLIMIT_NOFILE, chosen.randrange(6, 80)),
        "file size": (resource.RLIMIT_FSIZE, chosen.choice([0, 10, 4096, 100_000])),
        "memory": (resource.RLIMIT_AS, _memory_in_use() + (chosen.randrange(1, 200) << 20)),
    }[limit]
    before = resource.getrlimit(what)
    resource.setrlimit(what, (value, before[1]))
    said = [outcome(scene.open) for _ in range(2)]
    resource.setrlimit(what, before)
    _check(scene, said)


def _memory_in_use() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def memory(scene: Scene) -> None:
    """One `new` of C++ fails, or all of the memory is used up."""
    chosen = scene.chosen
    scene.set_up(shards=2, most=50)
    scene.check_exact()  # imports what it needs, and makes what is made only once
    fail_after = ctypes.CDLL(failing_memory.library()).fail_after

    def run(calls: int) -> None:
        fail_after(calls)
        said = outcome(scene.open)
        fail_after(-1)
        scene.judge(scene.truth(), said)

    for _ in range(10):
        calls = chosen.randrange(chosen.choice([20, 400, 3000]))
        finish(started(lambda calls=calls: run(calls), scene.folder), scene.folder)
    scene.check_exact()


def _check(scene: Scene, said: list[Outcome]) -> None:
    scene.check_outputs()
    for each in said:
        scene.judge(scene.truth(), each)
    scene.check_exact()
