"""A quick server of one folder's files by HTTP ranges, for measurements: one thread, no copies.

python benchmarks/object_server.py FOLDER [--delay-ms 20] [--fail-every 100]

Prints the URL. Ends with the standard input. `GET /counts` returns the counts of the answers.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import itertools
import json
import os
import re
import selectors
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

_HEAD = re.compile(rb"(GET|HEAD) (/\S*) HTTP/1.1\r\n")
_RANGE = re.compile(rb"(?i)\r\nrange: *bytes=(\d+)-(\d+)")


@dataclass
class _Connection:
    socket: socket.socket
    asked: bytes = b""
    head: bytes = b""
    file: int = -1
    at: int = 0
    end: int = 0


@dataclass
class ObjectServer:
    folder: Path
    delay_s: float = 0.0
    fail_every: int = 0
    """With n > 0, one of n requested ranges fails with 503."""
    ranges: int = 0
    bytes: int = 0
    failed: int = 0
    _files: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    _later: list[tuple[float, int, _Connection]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def serve(self) -> None:
        self._selector = selectors.DefaultSelector()
        listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        while True:
            wait = max(0.0, self._later[0][0] - time.monotonic()) if self._later else None
            for key, _ in self._selector.select(wait):
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is listener:
                    self._accept(listener)
                else:
                    self._go_on(key.data, key.events)
            while self._later and self._later[0][0] <= time.monotonic():
                self._send(heapq.heappop(self._later)[2])

    def _accept(self, listener: socket.socket) -> None:
        connected, _ = listener.accept()
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(connected, selectors.EVENT_READ, _Connection(connected))

    def _go_on(self, connection: _Connection, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._send(connection)
            return
        try:
            some = connection.socket.recv(1 << 16)
        except OSError:
            some = b""
        connection.asked += some
        if not some:
            self._selector.unregister(connection.socket)
            connection.socket.close()
        elif connection.asked.endswith(b"\r\n\r\n"):
            self._answer(connection)
            connection.asked = b""
            heapq.heappush(
                self._later, (time.monotonic() + self.delay_s, next(self._numbers), connection)
            )

    def _answer(self, connection: _Connection) -> None:
        asked = _HEAD.match(connection.asked)
        path = asked[2].decode() if asked else ""
        connection.at = connection.end = 0
        if path == "/counts":
            text = json.dumps(self._counts()).encode()
            connection.head = _head("200 OK", len(text)) + text
            return
        if (opened := self._open(path)) is None:
            connection.head = _head("404 Not Found", 0)
            return
        connection.file, size, facts = opened
        status, begin, end = "200 OK", 0, size
        if found := _RANGE.search(connection.asked):
            self.ranges += 1
            if self.fail_every and self.ranges % self.fail_every == 0:
                self.failed += 1
                connection.head = _head("503 Slow Down", 0)
                return
            status, begin, end = "206 Partial Content", int(found[1]), min(int(found[2]) + 1, size)
            facts += f"Content-Range: bytes {begin}-{end - 1}/{size}\r\n"
        connection.head = _head(status, end - begin, facts)
        if asked and asked[1] == b"GET":
            connection.at, connection.end = begin, end
            self.bytes += end - begin

    def _counts(self) -> dict[str, float]:
        return {
            "ranges": self.ranges,
            "bytes": self.bytes,
            "failed": self.failed,
            "processor_s": time.process_time(),
        }

    def _open(self, path: str) -> tuple[int, int, str] | None:
        if path not in self._files:
            try:
                file = os.open(self.folder / path.lstrip("/"), os.O_RDONLY)
            except OSError:
                return None
            found = os.fstat(file)
            facts = (
                f'ETag: "{found.st_ino}-{found.st_mtime_ns}"\r\n'
                f"Last-Modified: {formatdate(found.st_mtime, usegmt=True)}\r\n"
            )
            self._files[path] = file, found.st_size, facts
        return self._files[path]

    def _send(self, connection: _Connection) -> None:
        connected = connection.socket
        try:
            while connection.head:
                connection.head = connection.head[connected.send(connection.head) :]
            while connection.at < connection.end:
                left = connection.end - connection.at
                connection.at += os.sendfile(
                    connected.fileno(), connection.file, connection.at, left
                )
            wanted = selectors.EVENT_READ
        except BlockingIOError:
            wanted = selectors.EVENT_WRITE
        except OSError:  # the client has hung up; the next read finds that
            connection.head, connection.at = b"", connection.end
            wanted = selectors.EVENT_READ
        with contextlib.suppress(KeyError, ValueError):  # the socket was closed meanwhile
            if self._selector.get_key(connected).events != wanted:
                self._selector.modify(connected, wanted, connection)


def _head(status: str, length: int, facts: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{facts}\r\n".encode()


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--delay-ms", type=float, default=0, help="before each answer")
    parser.add_argument("--fail-every", type=int, default=0, help="one of N ranges is a 503")
    given: Any = parser.parse_args(arguments)
    ObjectServer(given.folder, given.delay_ms / 1000, given.fail_every).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
