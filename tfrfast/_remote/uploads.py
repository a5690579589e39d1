"""Objects that appear under their names when they are complete, or not at all."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from tfrfast._remote import answers, failures
from tfrfast._remote.client import use_client
from tfrfast._remote.failures import GivenUpError, Verdict
from tfrfast._remote.library import obstore
from tfrfast._remote.stores import Store, writing_store
from tfrfast._remote.urls import Location, locate

Answer = TypeVar("Answer")

#: How large a part of an upload is, unless the object would have too many of them.
_PART_BYTES = 8 << 20
_MAX_PARTS = 9_000
#: How many parts are in memory, and under way, at the same time.
_PARTS_AT_ONCE = 16
_OBJECTS_AT_ONCE = 4


def check_writable(url: str) -> Location:
    """Where an object may be written. Raises ValueError for a server without multipart uploads."""
    location = locate(url)
    if not location.has_folders:
        raise ValueError(
            f"{url!r} is read, and not written: a server has no uploads that are complete or "
            "nothing. Write to s3://, gs:// or az://, or to a folder."
        )
    return location


def upload_files(files: dict[str, str], access: str) -> None:
    """Uploads files, by their URLs. Each object is there when it is complete. Raises OSError.

    If that fails, objects that were complete by then remain.
    """
    _run(_upload_all(files, access))


def replace_bytes(url: str, access: str, data: bytes, version: dict[str, Any] | None) -> bool:
    """Writes a small object, unless it is not in that version any more (None: there was none).

    False if it is not. A storage that does not name versions replaces any. Raises OSError.
    """
    return _run(_replace(url, access, data, version))


def read_whole(url: str, access: str) -> tuple[bytes, dict[str, Any] | None]:
    """All bytes of a small object and its version; nothing and None if there is none.

    The version is empty if the storage does not name it.
    """
    return _run(_read_whole(url, access))


def is_there(url: str, access: str) -> bool:
    """Whether there is an object of that name. Raises OSError."""

    async def look() -> bool:
        try:
            await answers.examine(url, access)
        except GivenUpError as failure:
            if isinstance(OSError(failure.number, ""), FileNotFoundError):
                return False
            raise
        return True

    return _run(look())


def remove_objects(urls: list[str], access: str) -> None:
    """Removes objects, if they are there. Raises OSError."""

    async def remove() -> None:
        for url in urls:
            location = locate(url)
            store = writing_store(location, access)
            try:
                await obstore().delete_async(store.native, location.key)
            except Exception as error:
                if failures.judge(error) is not Verdict.MISSING:
                    raise _failed(f"Removing '{url}'", error, store, "") from None

    _run(remove())


def _run(work: Coroutine[Any, Any, Answer]) -> Answer:
    try:
        return use_client().run(work)
    except GivenUpError as failure:
        raise OSError(failure.number, failure.text) from None


async def _upload_all(files: dict[str, str], access: str) -> None:
    some = asyncio.Semaphore(_OBJECTS_AT_ONCE)
    parts = max(_PARTS_AT_ONCE // _OBJECTS_AT_ONCE, _PARTS_AT_ONCE // max(len(files), 1))

    async def upload(url: str, path: str) -> None:
        async with some:
            await _upload(url, path, access, parts)

    tasks = [asyncio.ensure_future(upload(url, path)) for url, path in files.items()]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _upload(url: str, path: str, access: str, parts: int) -> None:
    location = locate(url)
    store = writing_store(location, access)
    size = max(_PART_BYTES, -(-os.path.getsize(path) // _MAX_PARTS))
    try:
        await obstore().put_async(
            store.native, location.key, Path(path), chunk_size=size, max_concurrency=parts
        )
    except Exception as error:
        nothing = "Nothing appeared under that name."
        raise _failed(f"Writing '{url}'", error, store, nothing) from None


async def _replace(url: str, access: str, data: bytes, version: dict[str, Any] | None) -> bool:
    location = locate(url)
    store = writing_store(location, access)
    put = obstore().put_async
    try:
        try:
            mode = "create" if version is None else version or "overwrite"
            await put(store.native, location.key, data, mode=mode)
        except Exception as error:
            if type(error).__name__ in ("PreconditionError", "AlreadyExistsError"):
                return False
            if failures.status_of(error) != 501 and type(error).__name__ != "NotSupportedError":
                raise
            await put(store.native, location.key, data)  # such a storage knows no conditions
    except Exception as error:
        raise _failed(f"Writing '{url}'", error, store, "") from None
    return True


async def _read_whole(url: str, access: str) -> tuple[bytes, dict[str, Any] | None]:
    location = locate(url)

    async def attempt(store: Store) -> tuple[bytes, dict[str, Any] | None]:
        try:
            result = await obstore().get_async(store.native, location.key)
        except Exception as error:
            if failures.judge(error) is Verdict.MISSING:
                return b"", None
            raise
        version = {name: result.meta.get(name) for name in ("e_tag", "version")}
        known = {name: value for name, value in version.items() if value}
        return bytes(await result.bytes_async()), known

    return await answers.persist(location, access, f"Reading '{url}'", url, attempt)


def _failed(what: str, error: BaseException, store: Store, then: str) -> GivenUpError:
    verdict = failures.judge(error)
    cause = failures.in_words(error, store.secrets)
    advice = ""
    if verdict is Verdict.RENEW:
        advice = " Check the credentials and what they allow, or pass storage={...}."
    elif verdict is Verdict.RETRY:
        advice = " Ask again later, or allow more with storage={'retries': ...}."
    text = f"{what} failed: {cause}. {then}".rstrip() + advice
    return GivenUpError(failures.UNREADABLE, failures.errno_of(error, verdict), text)
