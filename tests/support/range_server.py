"""A server of objects, with ranges, versions and listings, that can fail in many ways.

It speaks plain HTTP, and the parts of S3's, Google's and Azure's protocols for reading objects and
writing small objects.
"""

from __future__ import annotations

import hashlib
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from patience import PATIENCE_S

OLD = 1_700_000_000
_PIECE_BYTES = 4096


@dataclass
class StoredObject:
    data: bytes
    etag: str | None
    modified: int = OLD


@dataclass
class Seen:
    """A request that came in."""

    method: str
    path: str
    begin: int | None
    end: int | None
    headers: dict[str, str]


@dataclass
class Trouble:
    """A failure of a request. By default, none."""

    status: int = 0
    body: str = ""
    location: str = ""  # with `status`: of a redirect
    unsized: bool = False  # no length, as after compression on the way
    short_by: int = 0  # bytes of the body that are missing
    reset: bool = False
    silent: bool = False  # no answer at all, until the server ends
    says_less: bool = False  # with `short_by`: Content-Length and Content-Range agree
    stalls_after: int = -1  # bytes of the body; then silence, until the server ends


@dataclass
class RangeServer:
    """Objects by path, such as "bucket/folder/name"."""

    objects: dict[str, StoredObject] = field(default_factory=dict)
    delay_s: float = 0.0
    bytes_per_s: float = 0.0  # of all bodies together, in both directions; 0 for no limit
    strong: bool = True  # whether answers have ETags
    honours_conditions: bool = True
    trouble: Callable[[Seen, int], Trouble | None] = lambda seen, number: None
    lists_without_end: bool = False
    seen: list[Seen] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    running: int = 0
    most_running: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    free_s: float = 0.0  # the time when the link has carried all bytes

    def put(self, path: str, data: bytes, modified: int = OLD) -> None:
        etag = '"' + hashlib.md5(data).hexdigest() + '"' if self.strong else None
        self.objects[path] = StoredObject(data, etag, modified)

    def carry(self, count: int) -> None:
        """Waits until the link has carried `count` bytes, after the bytes of earlier calls."""
        if self.bytes_per_s:
            with self.lock:
                self.free_s = max(self.free_s, time.monotonic()) + count / self.bytes_per_s
                until = self.free_s
            self.ended.wait(until - time.monotonic())

    def hold_until(self, running: int) -> None:
        """Answers no read until that many run at once, and from then on all."""
        enough = threading.Event()

        def hold(seen: Seen, _: int) -> None:
            if seen.begin is not None:
                if self.running >= running:
                    enough.set()
                enough.wait(PATIENCE_S)

        self.trouble = hold

    def reads(self) -> list[Seen]:
        return [each for each in self.seen if each.begin is not None]

    def forget(self) -> None:
        with self.lock:
            self.seen.clear()
            self.most_running = 0


def fails_at_first(times: int, **how: object) -> Callable[[Seen, int], Trouble | None]:
    """Makes every range fail that many times before it is answered."""
    counts: dict[tuple[str, int | None], int] = {}
    lock = threading.Lock()

    def decide(seen: Seen, _: int) -> Trouble | None:
        if seen.begin is None:
            return None
        with lock:
            counts[seen.path, seen.begin] = counts.get((seen.path, seen.begin), 0) + 1
            return Trouble(**how) if counts[seen.path, seen.begin] <= times else None  # type: ignore[arg-type]

    return decide


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: RangeServer

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._serve(with_body=False)

    def do_GET(self) -> None:
        self._serve(with_body=True)

    def do_PUT(self) -> None:
        state = self.state
        path = unquote(urlsplit(self.path).path).lstrip("/")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        state.carry(len(body))
        seen = Seen("PUT", path, None, None, {k.lower(): v for k, v in self.headers.items()})
        with state.lock:
            state.seen.append(seen)
            number = len(state.seen)
        trouble = state.trouble(seen, number) or Trouble()
        if trouble.status:
            self._send(trouble.status, trouble.body.encode(), {}, True)
            return
        if self.headers.get("If-None-Match") == "*" and path in state.objects:
            self._send(412, b"", {}, True)
            return
        state.put(path, body)
        self._send(200, b"", {"ETag": state.objects[path].etag or ""}, True)

    def _serve(self, with_body: bool) -> None:
        state = self.state
        parts = urlsplit(self.path)
        path = unquote(parts.path).lstrip("/")
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        begin, end = (int(match[1]), int(match[2]) + 1) if match else (None, None)
        seen = Seen(self.command, path, begin, end, {k.lower(): v for k, v in self.headers.items()})
        with state.lock:
            state.seen.append(seen)
            number = len(state.seen)
            state.running += 1
            state.most_running = max(state.most_running, state.running)
        try:
            trouble = state.trouble(seen, number) or Trouble()
            if state.delay_s:
                time.sleep(state.delay_s)
            self._answer(path, parse_qs(parts.query), begin, end, with_body, trouble)
        finally:
            with state.lock:
                state.running -= 1

    def _answer(
        self,
        path: str,
        query: dict[str, list[str]],
        begin: int | None,
        end: int | None,
        with_body: bool,
        trouble: Trouble,
    ) -> None:
        state = self.state
        if trouble.silent:
            state.ended.wait()
            self.close_connection = True
            return
        if trouble.reset:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            self.close_connection = True
            return
        if trouble.status:
            where = {"Location": trouble.location} if trouble.location else {}
            self._send(trouble.status, trouble.body.encode(), where, with_body)
            return
        if "list-type" in query or query.get("comp") == ["list"]:
            self._list(path, query)
            return
        stored = state.objects.get(path)
        if stored is None:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", {}, with_body)
            return
        headers = {"Last-Modified": formatdate(stored.modified, usegmt=True)}
        if stored.etag:
            headers["ETag"] = stored.etag
        if state.honours_conditions and not self._holds(stored):
            self._send(412, b"", headers, with_body)
            return
        body = stored.data
        status = 200
        if begin is not None and end is not None:
            if begin >= len(body):
                self._send(416, b"", headers, with_body)
                return
            end = min(end, len(body))
            status = 206
            body = body[begin:end]
            if trouble.says_less:
                body = body[: len(body) - trouble.short_by]
            headers["Content-Range"] = f"bytes {begin}-{begin + len(body) - 1}/{len(stored.data)}"
        if trouble.unsized:
            headers["Content-Encoding"] = "identity"
        short = 0 if trouble.says_less else trouble.short_by
        self._send(status, body, headers, with_body, short, trouble.stalls_after)

    def _holds(self, stored: StoredObject) -> bool:
        wanted = self.headers.get("If-Match")
        if wanted is not None:
            return (stored.etag or "").strip('"') == wanted.strip('"')
        since = self.headers.get("If-Unmodified-Since")
        return since is None or since == formatdate(stored.modified, usegmt=True)

    def _write(self, body: bytes) -> None:
        if not self.state.bytes_per_s:
            self.wfile.write(body)
            return
        for at in range(0, len(body), _PIECE_BYTES):
            piece = body[at : at + _PIECE_BYTES]
            self.state.carry(len(piece))
            self.wfile.write(piece)

    def _send(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str],
        with_body: bool,
        short: int = 0,
        stalls_after: int = -1,
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Encoding" in headers:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self._write(body[: len(body) - short if stalls_after < 0 else stalls_after])
        if stalls_after >= 0:
            self.state.ended.wait()
            self.close_connection = True
        if short:
            self.wfile.flush()
            self.close_connection = True

    def _list(self, path: str, query: dict[str, list[str]]) -> None:
        state = self.state
        prefix = query.get("prefix", [""])[0]
        flat = "delimiter" in query
        root = path.rstrip("/") + "/"
        is_azure = "comp" in query
        found = []
        for key, stored in sorted(state.objects.items()):
            name = key.removeprefix(root)
            if name == key or not name.startswith(prefix) or (flat and "/" in name[len(prefix) :]):
                continue
            when = formatdate(stored.modified, usegmt=True)
            if is_azure:
                found.append(
                    f"<Blob><Name>{escape(name)}</Name><Properties>"
                    f"<Last-Modified>{when}</Last-Modified><Etag>{(stored.etag or '').strip(chr(34))}"
                    f"</Etag><Content-Length>{len(stored.data)}</Content-Length>"
                    "<Content-Type>application/octet-stream</Content-Type></Properties></Blob>"
                )
                continue
            iso = time.strftime("%Y-%m-%dT%H:%M:%S.345Z", time.gmtime(stored.modified))
            found.append(
                f"<Contents><Key>{escape(name)}</Key><LastModified>{iso}</LastModified>"
                f"<ETag>{escape(stored.etag or '')}</ETag><Size>{len(stored.data)}</Size></Contents>"
            )
        more = "<IsTruncated>false</IsTruncated>"
        if state.lists_without_end:
            more = "<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>"
        text = (
            f"<EnumerationResults><Blobs>{''.join(found)}</Blobs><NextMarker/></EnumerationResults>"
            if is_azure
            else f"<ListBucketResult>{more}{''.join(found)}</ListBucketResult>"
        )
        self._send(200, f'<?xml version="1.0" encoding="utf-8"?>{text}'.encode(), {}, True)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients may hang up."""


@contextmanager
def range_server() -> Iterator[RangeServer]:
    state = RangeServer()
    handler = type("Handler", (_Handler,), {"state": state})
    server = _Server(("127.0.0.1", 0), handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield state
    finally:
        state.ended.set()
        server.shutdown()
        server.server_close()
