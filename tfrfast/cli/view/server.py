"""The server of the page, for one browser on this machine.

Whoever does not know the token in the address gets nothing, so no other page and no other user can
read the data. No path of a file comes from the browser. All that a data set holds is shown as text,
or as a picture, sound or video of a type that the server names.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tfrfast.cli.view.data_set import DataSet

_ADDRESS = "127.0.0.1"
_USUAL_PORT = 80
_LONGEST_QUERY = 8192
_OWN_PAGE_ALONE = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_POLICY = (
    "default-src 'none'; connect-src 'self'; img-src 'self' data:; media-src 'self'; "
    "style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)

_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{0,18})")

Asked = Mapping[str, str]


class Server(ThreadingHTTPServer):
    """Serves the page of a data set at `address` until `shutdown`."""

    daemon_threads = True

    def __init__(self, data: DataSet, port: int = 0) -> None:
        super().__init__((_ADDRESS, port), _Handler)
        self.data = data
        self.token = secrets.token_urlsafe(24)
        names = (_ADDRESS, "localhost")
        self.hosts = {f"{name}:{self.server_port}" for name in names}
        if self.server_port == _USUAL_PORT:  # browsers leave it out
            self.hosts.update(names)

    @property
    def address(self) -> str:
        return f"http://{_ADDRESS}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a browser that closes a connection early is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "tfrfast"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 60

    #: True after the beginning of an answer was sent.
    _has_answered = False

    def do_GET(self) -> None:
        self._has_answered = False
        parts = urlsplit(self.path)
        _, token, *rest = (parts.path + "/").split("/")
        name = rest[0] if rest else ""
        asked = dict(parse_qsl(parts.query[:_LONGEST_QUERY], keep_blank_values=True))
        known = hmac.compare_digest(token.encode(), self.server.token.encode())
        if self.headers.get("Host") not in self.server.hosts or not known:
            self._refuse(403, "This page belongs to the address that `tfrfast view` has printed.")
        elif len(parts.query) > _LONGEST_QUERY:
            self._refuse(414, "The question is too long.")
        elif not name:
            self._page()
        elif name == "value":
            self._try(self._value, asked)
        elif name in _ANSWERS:
            self._try(self._answer(_ANSWERS[name]), asked)
        else:
            self._refuse(404, "There is no such page.")

    def _try(self, answer: Callable[[Asked], None], asked: Asked) -> None:
        try:
            answer(asked)
        except Exception as error:  # the page shows it
            if self._has_answered:  # the browser has gone
                raise
            text = f"{error.args[0]!r} is missing." if isinstance(error, KeyError) else str(error)
            self._refuse(400, text or type(error).__name__)

    def _answer(self, ask: Callable[[DataSet, Asked], object]) -> Callable[[Asked], None]:
        def answer(asked: Asked) -> None:
            content = json.dumps(ask(self.server.data, asked), allow_nan=False, default=str)
            self._send(200, "application/json", content.encode())

        return answer

    def _page(self) -> None:
        nonce = secrets.token_urlsafe(16)
        page = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
        policy = {"Content-Security-Policy": _POLICY.format(nonce=nonce)}
        self._send(200, "text/html; charset=utf-8", page.replace("{nonce}", nonce).encode(), policy)

    def _value(self, asked: Asked) -> None:
        number, at = int(asked["record"]), int(asked.get("at", "0"))
        mime, value = self.server.data.value(number, asked.get("feature"), at)
        kind = mime or "application/octet-stream"
        more = {} if mime else {"Content-Disposition": 'attachment; filename="value.bin"'}
        part = _RANGE.fullmatch(self.headers.get("Range", ""))
        if part is None:
            self._send(200, kind, value, more | {"Accept-Ranges": "bytes"})
            return
        first = int(part[1])
        last = min(int(part[2]) if part[2] else len(value) - 1, len(value) - 1)
        if first > last:
            self._refuse(416, "The value has no such bytes.")
            return
        more["Content-Range"] = f"bytes {first}-{last}/{len(value)}"
        self._send(206, kind, value[first : last + 1], more)

    def _refuse(self, status: int, text: str) -> None:
        self._send(status, "application/json", json.dumps({"error": text}).encode())

    def _send(
        self, status: int, kind: str, content: bytes, more: Mapping[str, str] | None = None
    ) -> None:
        self._has_answered = True
        self.send_response(status)
        policy = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox"}
        facts = {"Content-Type": kind, "Content-Length": str(len(content))}
        for name, text in {**_OWN_PAGE_ALONE, **policy, **facts, **(more or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: the terminal is the user's."""


_ANSWERS: dict[str, Callable[[DataSet, Asked], object]] = {
    "set": lambda data, asked: data.facts(),
    "rows": lambda data, asked: data.rows(
        int(asked["chosen"]),
        int(asked["at"]),
        int(asked["count"]),
        int(asked.get("num_damaged", "-1")),
    ),
    "record": lambda data, asked: data.record(int(asked["record"])),
    "choose": lambda data, asked: data.choose(asked),
    "statistics": lambda data, asked: data.statistics(),
}
