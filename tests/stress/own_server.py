"""A server of objects in a process of its own, with a slow link that loses answers."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator, Mapping

from range_server import Seen, Trouble, range_server


@contextlib.contextmanager
def served(
    objects: Mapping[str, bytes], bytes_per_s: float = 0, losses: float = 0, seed: float = 0
) -> Iterator[dict[str, str]]:
    """Yields the URL of each object. Some answers are lost, late or cut short."""
    urls, told = os.pipe()
    ends, end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        try:
            serve(objects, bytes_per_s, losses, seed, told, ends)
        finally:
            os._exit(0)
    os.close(told)
    os.close(ends)
    try:
        with os.fdopen(urls) as answer:
            url = answer.readline().strip()
        yield {name: f"{url}/set/{name}" for name in objects}
    finally:
        os.close(end)
        os.waitpid(child, 0)


def serve(
    objects: Mapping[str, bytes],
    bytes_per_s: float,
    losses: float,
    seed: float,
    told: int,
    ends: int,
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
        for name, data in objects.items():
            server.put(f"set/{name}", data)
        os.write(told, f"{server.url}\n".encode())
        os.close(told)
        os.read(ends, 1)  # until the other process closes the pipe, or ends
