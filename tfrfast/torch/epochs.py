"""Numbers that worker processes share: the number of the next epoch, and sums."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from multiprocessing import context, reduction
from typing import Any

__all__ = ["EpochCounter", "SharedSums"]

_REMEMBERED = 16  # iterations of DataLoaders that may run at the same time
_MOST_BYTES = 1 << 20


class SharedNumbers:
    """Numbers that a process shares with its workers, however they are started.

    They lie in a file without a name, which all processes have open. The file's lock, unlike a
    semaphore, is released if a worker dies.
    """

    _close = staticmethod(os.close)  # lives longer than `os` when Python ends

    def __init__(self, numbers: dict[str, Any]) -> None:
        self._file = _nameless_file()
        self._write(numbers)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with _threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _read(self) -> dict[str, Any]:
        numbers: dict[str, Any] = json.loads(os.pread(self._file, _MOST_BYTES, 0))
        return numbers

    def _write(self, numbers: dict[str, Any]) -> None:
        text = json.dumps(numbers).encode()
        os.pwrite(self._file, text.ljust(os.fstat(self._file).st_size), 0)

    def __getstate__(self) -> Any:
        # A starting process shares the file. Any other pickle is a copy.
        if context.get_spawning_popen() is not None:
            return reduction.DupFd(self._file)
        with self._locked():
            return self._read()

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self._file = _nameless_file()
            self._write(state)
        else:
            self._file = state.detach()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._close(self._file)


class SharedSums(SharedNumbers):
    """Sums to which several processes add."""

    def add(self, numbers: dict[str, Any]) -> None:
        with self._locked():
            sums = self._read()
            self._write({name: sums[name] + number for name, number in numbers.items()})

    def now(self) -> dict[str, Any]:
        with self._locked():
            return self._read()


class EpochCounter(SharedNumbers):
    """Gives each iteration of a DataLoader the next epoch, the same one in all of its workers.

    A DataLoader tells its dataset nothing when an iteration begins. Its workers call `take` in any
    order, and some may be late. They recognise the iteration by the seed that the DataLoader gives
    its workers. The seed never becomes the epoch, because ranks have different seeds. Persistent
    workers keep their seed, so each also counts its rounds.
    """

    _rounds = 0  # iterations that this worker process has begun

    def __init__(self) -> None:
        super().__init__({"next": 0, "taken": []})

    def choose(self, epoch: int) -> None:
        """Gives the next iteration this epoch. Late workers of an earlier one keep their epoch."""
        with self._locked():
            self._write(self._read() | {"next": epoch})

    def take(self, worker: Any) -> int:
        """Returns the epoch of the iteration that `worker` (None: this process alone) begins."""
        with self._locked():
            numbers = self._read()
            if worker is not None:
                iteration = [worker.seed - worker.id, self._rounds]
                self._rounds += 1
                for begun, epoch, workers in reversed(numbers["taken"]):
                    # A worker of this iteration begins another iteration, even with the same seed.
                    if begun == iteration and worker.id not in workers:
                        workers.append(worker.id)
                        self._write(numbers)
                        return int(epoch)
                numbers["taken"].append([iteration, numbers["next"], [worker.id]])
                del numbers["taken"][:-_REMEMBERED]
            numbers["next"] += 1
            self._write(numbers)
            return int(numbers["next"] - 1)


_threads: threading.Lock  # The lock of a file excludes processes, not threads of one process.


def _renew_lock() -> None:
    global _threads
    _threads = threading.Lock()


_renew_lock()
os.register_at_fork(after_in_child=_renew_lock)  # another thread may have held the lock


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("tfrfast-epochs")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
