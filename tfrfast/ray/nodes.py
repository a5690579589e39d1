"""Checks, before a job starts, that every node sees the job's files."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import secrets
from collections.abc import Sequence
from typing import Any

import ray

from tfrfast._native import crc32c, file_facts
from tfrfast.storage.paths import reach
from tfrfast.storage.remote.options import Storage
from tfrfast.storage.schemes import is_url

__all__ = ["check_nodes"]

# At most this many files are compared, spread over all files.
_FILES = 32
_ENDS_BYTES = 4096
_SHOWN = 5
# The longest wait for nodes that remove their probes.
_PATIENCE_S = 10


def check_nodes(inputs: Sequence[str], outputs: Sequence[str], storage: Storage) -> None:
    """Raises OSError if a node cannot work on the job. The message names the node and the path.

    Each node must see the same inputs as this process, under the same names. A file that the node
    puts into one of the folders `outputs` must appear here. Missing folders are made. Nodes without
    processors are not checked.
    """
    step = max(1, -(-len(inputs) // _FILES))
    some = [*inputs[::step], *inputs[-1:]]
    here = {path: _see(path, storage) for path in some}
    made = [each for folder in outputs for each in _made_folders(folder)]
    nodes = [_Node(facts) for facts in ray.nodes() if _runs_tasks(facts)]
    try:
        for node in nodes:
            node.ask(some, list(outputs), storage)
        complaints = [f"{node.name} {each}" for node in nodes for each in node.complaints(here)]
        if complaints:
            shown = "; ".join(complaints[:_SHOWN])
            more = f"; and {len(complaints) - _SHOWN} more" if len(complaints) > _SHOWN else ""
            raise OSError(
                2,
                f"Not every node sees the same files as this machine: {shown}{more}. Mount the "
                "folders on all nodes under the same names",
            )
    except BaseException:
        _remove_probes(nodes)
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        raise


def _made_folders(folder: str) -> list[str]:
    """Makes a folder. Returns the folders that were missing, the outermost first."""
    missing = []
    above = folder
    while not os.path.lexists(above):
        missing.append(above)
        above = os.path.dirname(above)
    os.makedirs(folder, exist_ok=True)
    return missing[::-1]


def _runs_tasks(facts: dict[str, Any]) -> bool:
    return bool(facts["Alive"] and facts["Resources"].get("CPU"))


class _Node:
    """A node, its task, and the probes that it may have left."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.name = f"node {facts['NodeManagerAddress']} ({facts['NodeID'][:8]})"
        self._id = facts["NodeID"]
        self.task: Any = None
        #: One probe for each folder.
        self.probes: dict[str, str] = {}

    def ask(self, inputs: list[str], outputs: list[str], storage: Storage) -> None:
        last = f".tfrfast-probe-{secrets.token_hex(8)}"
        self.probes = {folder: os.path.join(folder, last) for folder in outputs}
        self.task = self._run(_answer, inputs, self.probes, storage)

    def complaints(self, here: dict[str, Any]) -> list[str]:
        try:
            return _compare(ray.get(self.task), here)
        except ray.exceptions.RayError as error:
            return [f"does not answer: {getattr(error, 'cause', None) or error}"]

    def remove_probes(self) -> Any:
        """Returns a task that removes the node's probes, which this process may not see."""
        return self._run(_remove, list(self.probes.values()))

    def _run(self, function: Any, *args: Any) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        place = NodeAffinitySchedulingStrategy(self._id, soft=False)
        return ray.remote(function).options(num_cpus=0, scheduling_strategy=place).remote(*args)


def _remove_probes(nodes: list[_Node]) -> None:
    with contextlib.suppress(ray.exceptions.RayError):
        asked = [node for node in nodes if node.task is not None and node.probes]
        # A running task would leave new probes after the removal.
        _wait([node.task for node in asked])
        _wait([node.remove_probes() for node in asked])
    _remove([probe for node in nodes for probe in node.probes.values()])


def _wait(tasks: list[Any]) -> None:
    if tasks:
        ray.wait(tasks, num_returns=len(tasks), timeout=_PATIENCE_S)


def _remove(paths: list[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _answer(inputs: list[str], probes: dict[str, str], storage: Storage) -> dict[str, Any]:
    """Returns the files that a node sees, and leaves probes in the folders for this process."""
    left: dict[str, str] = {}
    refused: dict[str, str] = {}
    for folder, probe in probes.items():
        try:
            # The probe exists already if Ray runs this task again.
            with open(probe, "wb"):
                left[folder] = probe
        except OSError as error:
            refused[folder] = str(error.strerror)
    return {
        "version": _version(),
        "inputs": {path: _look(path, storage) for path in inputs},
        "probes": left,
        "refused": refused,
    }


def _compare(answer: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """Returns the faults of a node, in words. Removes the visible probes."""
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
        os.listdir(folder)  # makes a network filesystem look again
        try:
            os.unlink(probe)
        except FileNotFoundError:
            wrong.append(f"has another folder {folder!r}: its files there are not seen here")
    return wrong


def _version() -> str:
    return importlib.metadata.version("tfrfast")


def _look(path: str, storage: Storage) -> tuple[int, int] | str:
    """Returns the result of _see(), or the reason of its failure."""
    try:
        return _see(path, storage)
    except OSError as error:
        return str(error.strerror or error)


def _see(path: str, storage: Storage) -> tuple[int, int]:
    """Returns the size of a file and a checksum of its ends. Behind a URL, it only has to exist."""
    if is_url(path):
        reach([path], storage)
        file_facts(os.fsencode(path), storage.core)
        return 0, 0
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        begin = file.read(_ENDS_BYTES)
        file.seek(max(0, size - _ENDS_BYTES))
        return size, crc32c(file.read(), crc32c(begin))
