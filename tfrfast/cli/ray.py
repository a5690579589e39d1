"""`--ray [ADDRESS]`: the command's work as tasks of a Ray cluster."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from concurrent.futures import Executor

_ADDRESS = re.compile(r"ray://\S+|[^\s/*?]+:\d+")


def add_ray(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="run on the Ray cluster with this address (host:port, ray://host:port), or on the one "
        "that runs here, or on one that is started for it",
    )


def joined_addresses(arguments: Sequence[str]) -> list[str]:
    """Joins each `--ray ADDRESS` into one argument, and takes no path for an address."""
    joined: list[str] = []
    for each in arguments:
        if joined and joined[-1] == "--ray":
            is_word = each in ("auto", "local")  # a file of that name is ./auto
            is_address = is_word or bool(_ADDRESS.fullmatch(each) and not os.path.exists(each))
            joined[-1:] = [f"--ray={each}"] if is_address else ["--ray=", each]
        else:
            joined.append(each)
    return joined


def executor_of(options: argparse.Namespace) -> Executor | None:
    """Returns the executor that `--ray` names, connected to its cluster."""
    if options.ray is None:
        return None
    from tfrfast.ray import RayExecutor  # first, because its error says how to install Ray

    import ray  # isort: skip

    if not ray.is_initialized():
        ray.init(options.ray or None, log_to_driver=False, logging_level="ERROR")
    return RayExecutor()
