"""Tasks of processes that read from a network. Run with a task's name, a URL and arguments."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import tfrfast as tfr
from patience import PATIENCE_S
from tfrfast.storage.remote import client

#: A silent server is waited for that long, longer than any test waits.
FOR_AN_HOUR = {"timeout": 3600, "retries": 0}


def read_and_send(reader: tfr.Reader, numbers: list[int], results: Any) -> None:
    results.put(list(reader.read(numbers)))


def started_by(method: str, url: str) -> None:
    """Starts a child by `method`, which gets the parent's reader and reads with it."""
    context = multiprocessing.get_context(method)
    reader = tfr.Reader(url, storage={"token": "handed-over"})
    numbers = [7, 250, 3]
    results = context.Queue()
    child = context.Process(target=read_and_send, args=(reader, numbers, results))
    child.start()
    assert results.get(timeout=PATIENCE_S) == list(reader.read(numbers))
    child.join(PATIENCE_S)
    assert child.exitcode == 0


def forked_while_reading(url: str) -> None:
    """Children of a process whose loader is running, and their children."""
    loader = tfr.Loader(tfr.Reader(url), 10, seed=1)
    it = iter(loader)
    first = [list(next(it)) for _ in range(3)]
    for generation in range(2):
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            assert status == 0, status
            break
        signal.alarm(PATIENCE_S)
        rest = [list(batch) for batch in loader]
        expected = [list(batch) for batch in tfr.Loader(tfr.Reader(url), 10, seed=1)]
        assert first + rest == expected
        loader.set_epoch(0)
        it = iter(loader)
        first = [list(next(it)) for _ in range(3)]
        if generation == 1:
            os._exit(0)
    else:
        return
    rest = [list(batch) for batch in it]
    if os.getppid() and generation == 1:
        os._exit(0)
    assert len(first) + len(rest) == 30


def refused(wait: Callable[[], object]) -> None:
    with contextlib.suppress(OSError):
        wait()


def exits_while_reading(url: str) -> None:
    """Ends while the network is silent, with workers and requests of its own under way."""
    reader = tfr.Reader(url, storage=FOR_AN_HOUR)
    print("open", flush=True)
    sys.stdin.readline()  # from now on the server is silent
    loader = tfr.Loader(reader, 10)
    for wait in (lambda: next(iter(loader)), lambda: reader[5]):
        threading.Thread(target=refused, args=(wait,), daemon=True).start()
    time.sleep(0.5)


class Lingers:
    """Lets the other threads run while Python ends."""

    def __del__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        sleep(0.6)


def ended_after_a_read(url: str) -> None:
    """Ends while threads that are not Python's are about to take the GIL again."""
    reader = tfr.Reader(url)
    loop = client.use_client()._loop
    wake = loop._write_to_self

    def wake_slowly() -> None:
        wake()
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.3)

    loop._write_to_self = wake_slowly
    reader.read([0, 299])
    sys.__dict__["lingers"] = Lingers()


def waits_for_the_network(url: str) -> None:
    """Reads from a silent server until Ctrl-C."""
    reader = tfr.Reader(url, storage=FOR_AN_HOUR)
    print("open", flush=True)
    kind = sys.stdin.readline().strip()
    print("reading", flush=True)
    try:
        if kind == "one":
            reader[5]
        elif kind == "many":
            reader.read(list(range(300)))
        elif kind == "loader":
            next(iter(tfr.Loader(reader, 10)))
        elif kind == "opening":
            tfr.Reader(url, index="memory", storage=FOR_AN_HOUR)
        elif kind == "iterating":
            list(reader)
        elif kind == "verifying":
            tfr.verify([url, url], threads=2, storage=FOR_AN_HOUR)
    except KeyboardInterrupt:
        print(f"interrupted {time.time()}", flush=True)


def writes_a_large_object(url: str, endpoint: str) -> None:
    """Uploads an object of three parts, and its index."""
    storage = {
        "endpoint": endpoint,
        "region": "us-east-1",
        "access_key_id": "testing-key",
        "secret_access_key": "testing-secret",
    }
    with tfr.Writer(url, storage=storage, overwrite=True) as writer:
        writer.write_batch([bytes([number]) * (1 << 20) for number in range(20)])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
