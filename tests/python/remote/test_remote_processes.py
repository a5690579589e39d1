"""Forks, exits, Ctrl-C and threads that die: nothing hangs."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import remote_child
import tfrfast as tfr
from patience import PATIENCE_S
from range_server import RangeServer, Trouble
from record_files import some_records, write_shard
from tfrfast.storage.remote import client

pytest.importorskip("obstore", reason="needs obstore")


@pytest.fixture
def url(server: RangeServer, tmp_path: Path) -> str:
    shard = write_shard(tmp_path / "shard", some_records(300, longest=3000))
    server.put("set/shard", Path(shard).read_bytes())
    return f"{server.url}/set/shard"


def child(task: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, remote_child.__file__, task, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output_of(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert "Traceback" not in err, err
    return out


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_read_with_their_parents_reader(
    server: RangeServer, url: str, method: str
) -> None:
    output_of(child("started_by", method, url))
    assert {each.headers.get("authorization") for each in server.seen} == {"Bearer handed-over"}


def test_children_of_a_process_that_is_reading(url: str) -> None:
    output_of(child("forked_while_reading", url))


def test_a_program_ends_whatever_the_network_does(server: RangeServer, url: str) -> None:
    process = child("exits_while_reading", url)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    server.trouble = lambda *_: Trouble(silent=True)
    output_of(process)  # a request alone would take longer than that waits


def seconds_until_ctrl_c_is_answered(server: RangeServer, url: str, kind: str) -> float:
    server.trouble = lambda *_: None
    process = child("waits_for_the_network", url)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "open\n"
    server.trouble = lambda *_: Trouble(silent=True)
    asked = len(server.seen)
    process.stdin.write(kind + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "reading\n"
    while len(server.seen) == asked:
        time.sleep(0.01)
    time.sleep(0.2)  # the child waits by then
    sent = time.time()
    process.send_signal(signal.SIGINT)
    return float(output_of(process).split()[1]) - sent


@pytest.mark.parametrize("kind", ["one", "many", "loader", "opening", "iterating", "verifying"])
def test_ctrl_c_ends_a_wait_for_the_network(server: RangeServer, url: str, kind: str) -> None:
    # A busy machine may be slow, but not every time. A request alone would take an hour.
    for _ in range(8):
        if seconds_until_ctrl_c_is_answered(server, url, kind) < 5:
            return
    pytest.fail("A wait never ended within five seconds.")


def test_stopping_leaves_nothing_running(server: RangeServer, url: str) -> None:
    reader = tfr.Reader(url)
    server.trouble = lambda *_: Trouble(silent=True)
    loader = tfr.Loader(reader, 10)
    refused: list[ValueError] = []

    def wait() -> None:
        try:
            next(iter(loader))
        except ValueError as error:
            refused.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while not server.running:
        time.sleep(0.01)
    loader.close()
    thread.join(PATIENCE_S)
    assert refused
    deadline = time.monotonic() + PATIENCE_S
    while client.use_client()._running and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not client.use_client()._running


def test_readers_notice_when_the_thread_dies(server: RangeServer, url: str) -> None:
    reader = tfr.Reader(url)
    expected = reader[5]
    server.trouble = lambda *_: Trouble(silent=True)
    failure: list[BaseException] = []

    def read() -> None:
        try:
            reader[7]
        except OSError as error:
            failure.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    while not server.running:
        time.sleep(0.01)
    running = client.use_client()
    running._loop.call_soon_threadsafe(running._loop.stop)
    thread.join(PATIENCE_S)
    assert "cannot be read: the thread that makes requests" in str(failure[0])
    server.trouble = lambda *_: None
    with pytest.raises(OSError, match="cannot be read"):
        reader[7]
    # The next opening makes a new client.
    assert tfr.Reader(url)[5] == expected
    assert reader[5] == expected


def test_a_finaliser_in_the_thread_that_makes_requests_may_wait_for_one(
    server: RangeServer, url: str
) -> None:
    reader = tfr.Reader(url)
    expected = reader[5], list(reader.read([7, 250]))
    read: list[object] = []
    others: list[object] = []
    is_over = threading.Event()

    class Abandoned:
        def __init__(self) -> None:
            self.myself = self

        def __del__(self) -> None:
            read.append(reader[5])

    def collect() -> None:
        gc.collect()
        is_over.set()

    stuck = client.use_client()
    server.delay_s = 0.2
    gc.collect()
    gc.disable()
    try:
        Abandoned()
        stuck._loop.call_soon_threadsafe(collect)
        # Requests of other threads are answered meanwhile.
        other = threading.Thread(target=lambda: others.extend(reader.read([7, 250])))
        other.start()
        is_in_time = is_over.wait(PATIENCE_S)
    finally:
        gc.enable()
        if not is_over.is_set():
            stuck.end()
    assert is_in_time
    for thread in (other, stuck._thread):
        thread.join(PATIENCE_S)
    assert (*read, others) == expected
    assert not stuck.has_thread
    assert client.use_client() is not stuck
    assert list(reader.read([7, 250])) == others


def test_a_pickle_leaves_secrets_out(server: RangeServer, url: str) -> None:
    import pickle

    reader = tfr.Reader(url, storage={"token": "not-in-pickles", "timeout": 20})
    text = pickle.dumps(reader)
    assert b"not-in-pickles" not in text
    # This process knows the secrets.
    server.forget()
    assert pickle.loads(text)[3] == reader[3]
    assert server.seen[-1].headers["authorization"] == "Bearer not-in-pickles"


def test_a_program_may_end_while_a_thread_of_obstores_reports_an_answer(url: str) -> None:
    output_of(child("ended_after_a_read", url))


def test_the_loop_knows_what_is_still_to_be_said(server: RangeServer, url: str) -> None:
    reader = tfr.Reader(url)
    reader.read([0, 299])
    loop = client.use_client()._loop
    # The thread's last call into Python may come after the answer.
    assert loop.wait_until_silent(PATIENCE_S)
    server.trouble = lambda *_: Trouble(silent=True)

    failures = []

    def read() -> None:
        try:
            reader.read([0])
        except OSError as error:
            failures.append(str(error))

    waiting = threading.Thread(target=read)
    waiting.start()
    until = time.monotonic() + PATIENCE_S
    while not loop._due and time.monotonic() < until:
        time.sleep(0.01)
    assert loop._due
    client.use_client().end()
    waiting.join(PATIENCE_S)
    assert not loop._due
    assert len(failures) == 1
    assert "127.0.0.1" in failures[0]
