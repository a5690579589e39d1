"""A Hugging Face Hub on this machine, with the answers that readers of datasets need: the tree of a
repository, page by page, and redirects to another server, which holds the files.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from range_server import RangeServer, range_server

_PAGE_ENTRIES = 3


@dataclass
class Hub:
    """Files by repository, revision and path. With a token, only requests with the token are answered."""

    files: dict[tuple[str, str, str], bytes] = field(default_factory=dict)
    token: str = ""
    seen: list[tuple[str, str, str]] = field(default_factory=list)  # method, path, Authorization
    #: The server of the files.
    store: RangeServer = field(default_factory=RangeServer)
    leads_to: str = ""  # the server of later pages, if not this server
    redirects_trees: str = ""  # once, to this server
    later_page: bytes | None = None  # instead of every page but the first; b"" is a missing entry
    url: str = ""

    def put(self, path: str, data: bytes, repo: str = "org/set", revision: str = "main") -> None:
        self.files[repo, revision, path] = data
        self.store.put(f"lfs/{hashlib.sha256(data).hexdigest()}", data)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub, parts = self.hub, urlsplit(self.path)
        told = self.headers.get("Authorization", "")
        hub.seen.append((self.command, self.path, told))
        kind, _, rest = parts.path.partition("/datasets/")
        org, name, what, *quoted = rest.split("/")
        repo, revision = f"{org}/{name}", unquote(quoted[0]) if quoted else "main"
        revisions = {held for owner, held, _ in hub.files if owner == repo}
        if not revisions or (hub.token and told != f"Bearer {hub.token}"):
            self._refuse(401, "RepoNotFound", "Repository not found")
        elif revision not in revisions:
            self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        elif kind == "/api" and what == "tree":
            self._tree(repo, revision, unquote("/".join(quoted[1:])), parse_qs(parts.query))
        elif what == "resolve":
            self._resolve(hub.files.get((repo, revision, unquote("/".join(quoted[1:])))))

    def _tree(self, repo: str, revision: str, folder: str, query: dict[str, list[str]]) -> None:
        hub = self.hub
        if hub.redirects_trees:
            server, hub.redirects_trees = hub.redirects_trees, ""
            self._send(307, b"", {"Location": f"{server}{self.path}"})
            return
        entries: dict[str, dict[str, object]] = {}
        for (owner, held, path), data in sorted(hub.files.items()):
            inner = path.removeprefix(f"{folder}/") if folder else path
            if (owner, held) != (repo, revision) or (folder and inner == path):
                continue
            *above, _ = inner.split("/")
            for depth in range(1, len(above) + 1):
                each = "/".join([*([folder] if folder else []), *above[:depth]])
                if depth == 1 or query["recursive"] == ["true"]:
                    entries[each] = {"type": "directory", "oid": "1", "size": 0, "path": each}
            if not above or query["recursive"] == ["true"]:
                oid = hashlib.sha1(data).hexdigest()
                lfs = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 1}
                entries[path] = {"type": "file", "oid": oid, "size": len(data), "path": path}
                entries[path]["lfs"] = lfs
        if "cursor" in query and hub.later_page is not None:
            entries.clear()
            if hub.later_page:
                self._send(200, hub.later_page, {})
                return
        if not entries:
            self._refuse(404, "EntryNotFound", f"{folder} does not exist")
            return
        begin = int(query.get("cursor", ["0"])[0])
        page = list(entries.values())[begin : begin + _PAGE_ENTRIES]
        headers = {"Content-Type": "application/json"}
        if begin + _PAGE_ENTRIES < len(entries):
            server = hub.leads_to or hub.url
            path = f"{urlsplit(self.path).path}?recursive={query['recursive'][0]}&expand=false"
            headers["Link"] = f'<{server}{path}&cursor={begin + _PAGE_ENTRIES}>; rel="next"'
        self._send(200, json.dumps(page).encode(), headers)

    def _resolve(self, data: bytes | None) -> None:
        if data is None:
            self._refuse(404, "EntryNotFound", "Entry not found")
            return
        digest = hashlib.sha256(data).hexdigest()
        headers = {"X-Repo-Commit": "0" * 40, "X-Linked-Etag": f'"{digest}"'}
        headers["X-Linked-Size"] = str(len(data))
        headers["Location"] = f"{self.hub.store.url}/lfs/{digest}?X-Amz-Signature=signed"
        self._send(302, b"", headers)

    def _refuse(self, status: int, code: str, message: str) -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": message}
        self._send(status, json.dumps({"error": message}).encode(), headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def hub_server() -> Iterator[Hub]:
    with range_server() as store:
        hub = Hub(store=store)
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
        server.daemon_threads = True
        hub.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield hub
        finally:
            server.shutdown()
            server.server_close()
