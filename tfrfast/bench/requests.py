"""Plain requests for the first bytes of objects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from tfrfast.storage.remote import answers
from tfrfast.storage.remote.client import use_client

_REQUEST_BYTES = 8 << 20
_AT_ONCE = 64

_Request = tuple[str, str, int, int]  # URL, version, first byte, count


class PlainRequests:
    """Requests for objects, in order, at most `max_bytes` of each set of objects."""

    def __init__(self) -> None:
        self._requests: list[_Request] = []

    @property
    def num_bytes(self) -> int:
        return sum(count for *_, count in self._requests)

    def add_first(self, urls: Iterable[str], max_bytes: int) -> list[str]:
        """Returns the first objects that together have `max_bytes`, and adds requests for these
        bytes.
        """
        chosen = []
        left = max_bytes
        for url in urls:
            if left <= 0:
                break
            facts = use_client().run(answers.examine(url, ""))
            end = min(facts.size, left)
            chosen.append(url)
            self._requests += [
                (url, facts.encode(), at, min(_REQUEST_BYTES, end - at))
                for at in range(0, end, _REQUEST_BYTES)
            ]
            left -= end
        return chosen

    def epoch(self) -> list[None]:
        """Fetches all bytes once, and has no batches."""
        use_client().run(_request_all(iter(self._requests)))
        return []


async def _request_all(requests: Iterator[_Request]) -> None:
    async def work_off() -> None:
        for url, version, first_byte, count in requests:
            await answers.read(url, "", version, first_byte, count, lambda *_: None)

    await asyncio.gather(*(work_off() for _ in range(_AT_ONCE)))
