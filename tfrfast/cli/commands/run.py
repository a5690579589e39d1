"""Run a Python program. Every tf.data dataset that it iterates is read by tfrfast, as by
tfr.accelerate(). All else is as `python SCRIPT` runs it. With TFRFAST_ACCELERATE=0 this is `python
SCRIPT`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import tfrfast.startup

_OWN = ("--explain", "-h", "--help")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "tfrfast run [-h] [--explain] (SCRIPT | -m MODULE) [ARGS ...]"
    parser.add_argument(
        "--explain",
        action="store_true",
        help="print on stderr, at the end of the program, the treatment of each dataset",
    )


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns tfrfast's arguments, and the program with its arguments."""
    begin = next((i for i, each in enumerate(arguments[1:], 1) if each not in _OWN), None)
    return list(arguments[:begin]), [] if begin is None else list(arguments[begin:])


def run(options: argparse.Namespace) -> int:
    program: list[str] = options.program
    if not program or program == ["-m"]:
        raise ValueError("Name the program: tfrfast run SCRIPT, or tfrfast run -m MODULE.")
    if program[0].startswith("-") and program[0] != "-m":
        raise ValueError(f"tfrfast run has no option {program[0]}. Name the program first.")
    if sys.flags.ignore_environment or sys.flags.no_site:
        raise ValueError("Python's options -E, -I and -S keep tfrfast out. Run without them.")
    environment = dict(os.environ)
    if options.explain:
        environment["TFRFAST_EXPLAIN"] = "1"
    if environment.get("TFRFAST_ACCELERATE") != "0":
        ours = str(Path(tfrfast.startup.__file__).parent)
        before = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{ours}{os.pathsep}{before}" if before else ours
    # Python itself runs the program, so __main__, exit code, signals and tracebacks are the
    # program's own.
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    os.execve(sys.executable, [sys.executable, *flags, *program], environment)
