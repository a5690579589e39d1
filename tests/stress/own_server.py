"""A server of the files of a folder, in a process of its own, with a slow link that loses answers."""

from __future__ import annotations

import os
import random
from pathlib import Path

from range_server import OLD, RangeServer, Seen, StoredObject, Trouble, range_server


class _FilesAsObjects(dict[str, StoredObject]):
    """The files of a folder as they are now."""

    def __init__(self, folder: Path, server: RangeServer) -> None:
        super().__init__()
        self._folder = folder
        self._server = server

    def get(self, path: str, default: object = None) -> StoredObject | None:
        try:
            data = (self._folder / path.removeprefix("set/")).read_bytes()
        except OSError:
            return None
        self._server.put(path, data, OLD)
        return self[path]


def start_server(folder: Path, bytes_per_s: float = 0, losses: float = 0, seed: float = 0) -> str:
    """Returns the URL of a server. It ends with this process, or its last child."""
    urls, told = os.pipe()
    ends, end = os.pipe()
    if os.fork() == 0:
        os.close(end)
        try:
            _serve(folder, bytes_per_s, losses, seed, told, ends)
        finally:
            os._exit(0)
    os.close(told)
    os.close(ends)
    with os.fdopen(urls) as answer:
        return answer.readline().strip()


def _serve(
    folder: Path, bytes_per_s: float, losses: float, seed: float, told: int, ends: int
) -> None:
    chosen = random.Random(seed)

    def trouble(seen: Seen, number: int) -> Trouble | None:
        if chosen.random() >= losses:
            return None
        return chosen.choice(
            [
                Trouble(reset=True),
                Trouble(status=503, body="<Error><Code>SlowDown</Code></Error>"),
                Trouble(short_by=chosen.randrange(1, 3000)),
                Trouble(stalls_after=chosen.randrange(3000)),
            ]
        )

    with range_server() as server:
        server.bytes_per_s = bytes_per_s
        server.trouble = trouble
        server.objects = _FilesAsObjects(folder, server)
        os.write(told, f"{server.url}\n".encode())
        os.close(told)
        os.read(ends, 1)  # until the other processes close the pipe, or end
