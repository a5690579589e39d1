"""The current facts of objects, before opening."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from tfrfast import _native
from tfrfast.storage.remote import answers
from tfrfast.storage.remote.answers import Facts
from tfrfast.storage.remote.client import expect_to_open, use_client
from tfrfast.storage.remote.failures import GivenUpError

_AT_ONCE = 64


def look_at_objects(urls: Iterable[str], access: str) -> dict[str, Facts]:
    """Returns the facts of each object. Facts from a recent listing are not requested again.

    The next opening of such an object makes no request, and reading fails if the object has changed
    by then. Raises FileNotFoundError and OSError.
    """
    found: dict[str, Facts] = {}
    unknown = []
    for url in dict.fromkeys(urls):
        listed = _native.listed_version(url, access)
        if listed is None:
            unknown.append(url)
        else:
            found[url] = Facts.decode(listed)
    if unknown:
        try:
            found.update(use_client().run(_examine_all(unknown, access)))
        except GivenUpError as failure:
            raise OSError(failure.number, failure.text) from None
    # An object without a lasting version is examined again at its opening.
    expect_to_open({url: facts for url, facts in found.items() if facts.etag}, access)
    return found


async def _examine_all(urls: list[str], access: str) -> dict[str, Facts]:
    found = {}

    async def work_off(some: Iterator[str]) -> None:
        for url in some:
            found[url] = await answers.examine(url, access)

    rest = iter(urls)
    tasks = [asyncio.ensure_future(work_off(rest)) for _ in range(min(_AT_ONCE, len(urls)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    return found
