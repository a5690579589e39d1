"""Objects that are made from files, and appear under their names whole or not at all."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from concurrent.futures import wait
from typing import Any

from tfrfast.storage.remote.client import use_client
from tfrfast.storage.remote.failures import GivenUpError
from tfrfast.storage.remote.library import obstore
from tfrfast.storage.remote.objects import failed_upload, head
from tfrfast.storage.remote.stores import writing_store
from tfrfast.storage.remote.urls import locate

#: The size of a part of an upload, unless the object would have too many parts.
_PART_BYTES = 8 << 20
_MAX_PARTS = 9_999
_PARTS_AT_ONCE = 4
_OBJECTS_AT_ONCE = 4
_LOOK_S = 0.1
#: The longest time in which a failed or interrupted upload may remove its parts.
_PATIENCE_S = 10.0


def upload_files(files: dict[str, str], access: str) -> None:
    """Uploads files, by their URLs. Each object appears when complete. Raises OSError.

    After a failure, complete objects remain, and the parts of other objects are removed, if the
    removal takes a few seconds.
    """
    given_up = threading.Event()
    uploading = use_client().start(_upload_all(files, access, given_up))
    try:
        while not uploading.done():
            wait([uploading], _LOOK_S)
    except BaseException:
        given_up.set()
        wait([uploading], _PATIENCE_S)
        uploading.cancel()
        raise
    try:
        uploading.result()
    except GivenUpError as failure:
        raise failure.for_users() from None


async def _upload_all(files: dict[str, str], access: str, given_up: threading.Event) -> None:
    rest = iter(files.items())

    async def work_off() -> None:
        for url, path in rest:
            if not given_up.is_set():
                await _upload_file(url, path, access, given_up)

    works = [asyncio.ensure_future(work_off()) for _ in range(_OBJECTS_AT_ONCE)]
    try:
        await asyncio.gather(*works)
    except Exception:
        given_up.set()  # the other uploads then remove their parts
        await asyncio.wait(works, timeout=_PATIENCE_S)
        raise
    finally:
        for each in works:
            each.cancel()


async def _upload_file(url: str, path: str, access: str, given_up: threading.Event) -> None:
    size = os.path.getsize(path)
    part_bytes = max(_PART_BYTES, -(-size // _MAX_PARTS))
    store = writing_store(locate(url), access, _OBJECTS_AT_ONCE * _PARTS_AT_ONCE * part_bytes)

    def pieces() -> Iterator[bytes]:
        with open(path, "rb") as file:
            for _ in range(0, max(size, 1), part_bytes):
                if given_up.is_set():
                    raise InterruptedError  # the parts are removed
                yield file.read(part_bytes)

    before = await _look(url, access)
    try:
        await obstore().put_async(
            store.native,
            locate(url).key,
            pieces(),
            use_multipart=size > part_bytes,
            chunk_size=part_bytes,
            max_concurrency=_PARTS_AT_ONCE,
        )
    except Exception as error:
        # The answer to the last request may be lost.
        has_come = _has_come(before, await _look(url, access), size)
        if has_come or given_up.is_set():
            return
        then = "Nothing appeared under that name."
        if has_come is None:
            then = "Whether it appeared under that name is not known: look before you repeat it."
        raise failed_upload(f"Writing '{url}'", error, store, then) from None


_UNKNOWN = ("?",)


async def _look(url: str, access: str) -> tuple[Any, ...]:
    """Returns what tells an object from one that replaces it; nothing if there is none."""
    try:
        meta = await head(url, access)
    except GivenUpError:
        return _UNKNOWN
    names = () if meta is None else ("size", "e_tag", "version", "last_modified")
    return tuple(meta.get(name) for name in names)


def _has_come(before: tuple[Any, ...], now: tuple[Any, ...], size: int) -> bool | None:
    """True if a new object of that size has appeared, None if nobody knows."""
    if now != _UNKNOWN and now[:1] != (size,):
        return False
    return None if _UNKNOWN in (before, now) else now != before
