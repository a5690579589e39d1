"""Asks every node, before a job starts, whether it sees what the job reads and writes."""

from __future__ import annotations

import importlib.metadata
import os
import secrets
from collections.abc import Sequence
from typing import Any

import ray

from tfrfast._native import crc32c
from tfrfast._remote.options import Storage
from tfrfast._remote.urls import is_url

__all__ = ["check_nodes"]

# Of many files, so many are compared, spread over all.
_FILES = 32
_ENDS_BYTES = 4096
_SHOWN = 5


def check_nodes(inputs: Sequence[str], outputs: Sequence[str], storage: Storage) -> None:
    """Raises OSError that names each node on which a job could not run, and the path.

    Nodes must see the same inputs as this process, under the same names, and what they put into
    the folders `outputs` must appear here. These are made. Nodes without processors are not asked.
    """
    step = max(1, len(inputs) // _FILES)
    some = [*inputs[::step], *inputs[-1:]]
    here = {path: _look(path, storage) for path in some}
    for path, seen in here.items():
        if isinstance(seen, str):
            raise FileNotFoundError(2, f"{path!r} cannot be read here: {seen}", path)
    for folder in outputs:
        os.makedirs(folder, exist_ok=True)
    complaints = []
    for node, answer in _ask(some, list(outputs), storage):
        complaints += [f"{node} {each}" for each in _compare(answer, here)]
    if complaints:
        shown = "; ".join(complaints[:_SHOWN])
        more = f"; and {len(complaints) - _SHOWN} more" if len(complaints) > _SHOWN else ""
        raise OSError(
            2,
            f"Not every node sees the same files as this machine: {shown}{more}. Mount the folders "
            "on all nodes under the same names",
        )


def _ask(
    inputs: list[str], outputs: list[str], storage: Storage
) -> list[tuple[str, dict[str, Any]]]:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    asked = {}
    for node in ray.nodes():
        if node["Alive"] and node["Resources"].get("CPU"):
            place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = ray.remote(_answer).options(num_cpus=0, scheduling_strategy=place)
            name = f"node {node['NodeManagerAddress']} ({node['NodeID'][:8]})"
            asked[name] = task.remote(inputs, outputs, storage, secrets.token_hex(8))
    answers = []
    for name, task in asked.items():
        try:
            answers.append((name, ray.get(task)))
        except ray.exceptions.RayError as error:
            answers.append((name, {"failed": str(getattr(error, "cause", None) or error)}))
    return answers


def _answer(inputs: list[str], outputs: list[str], storage: Storage, token: str) -> dict[str, Any]:
    """What a node sees, and where it has left a file."""
    probes: dict[str, str] = {}
    refused: dict[str, str] = {}
    for folder in outputs:
        probe = os.path.join(folder, f".tfrfast-probe-{token}")
        try:
            with open(probe, "xb"):
                probes[folder] = probe
        except OSError as error:
            refused[folder] = str(error.strerror)
    return {
        "version": _version(),
        "inputs": {path: _look(path, storage) for path in inputs},
        "probes": probes,
        "refused": refused,
    }


def _compare(answer: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """What is wrong with a node, in words. Removes what it has left."""
    if "failed" in answer:
        return [f"does not answer: {answer['failed']}"]
    wrong = []
    if answer["version"] != _version():
        wrong.append(f"has tfrfast {answer['version']}, and this machine has {_version()}")
    for path, seen in answer["inputs"].items():
        if isinstance(seen, str):
            wrong.append(f"cannot read {path!r}: {seen}")
        elif seen != here[path]:
            wrong.append(
                f"sees another {path!r}, of {seen[0]} bytes instead of {here[path][0]}"
                if seen[0] != here[path][0]
                else f"sees another {path!r}, of the same size"
            )
    for folder, reason in answer["refused"].items():
        wrong.append(f"cannot write to {folder!r}: {reason}")
    for folder, probe in answer["probes"].items():
        os.listdir(folder)  # a network filesystem looks again
        try:
            os.unlink(probe)
        except FileNotFoundError:
            wrong.append(f"has another folder {folder!r}: what it writes there is not seen here")
    return wrong


def _version() -> str:
    return importlib.metadata.version("tfrfast")


def _look(path: str, storage: Storage) -> tuple[int, int] | str:
    """The size of a file and a checksum of its ends, or why it cannot be read."""
    try:
        if is_url(path):
            return _look_at_object(path, storage)
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            begin = file.read(_ENDS_BYTES)
            file.seek(max(0, size - _ENDS_BYTES))
            return size, crc32c(file.read(), crc32c(begin))
    except OSError as error:
        return str(error.strerror or error)


def _look_at_object(url: str, storage: Storage) -> tuple[int, int] | str:
    from tfrfast._base.paths import reach
    from tfrfast._remote.uploads import is_there

    reach([url], storage)
    return (0, 0) if is_there(url, storage.access) else "there is no such object"
