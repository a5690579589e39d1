"""Objects that appear under their names whole, or not at all; and copies of objects."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import itertools
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import wait
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from tfrfast.storage.remote import answers, failures
from tfrfast.storage.remote.client import use_client
from tfrfast.storage.remote.failures import GivenUpError, Verdict
from tfrfast.storage.remote.library import obstore
from tfrfast.storage.remote.parts_under_way import FIRST, PartsUnderWay, Piece
from tfrfast.storage.remote.stores import Store, writing_store
from tfrfast.storage.remote.urls import Location, locate

Answer = TypeVar("Answer")
Version = dict[str, Any]  # the storage's version of an object

#: The size of a part of an upload, unless the object would have too many parts.
PART_BYTES = 8 << 20
_MAX_PARTS = 9_000
#: The number of parts that are in memory and on their way at the same time.
PARTS_AT_ONCE = 16
_OBJECTS_AT_ONCE = 16
_LOOK_S = 0.1
#: The longest time in which a failed or interrupted upload may remove its parts.
_PATIENCE_S = 10.0
#: Larger objects are replaced in parts.
_MAX_PUT_BYTES = 64 << 20
#: The number of reads of an object that other processes keep replacing.
_DOWNLOADS = 10


def check_writable(url: str) -> Location:
    """Returns the place of a writable object. Raises ValueError for a server without multipart
    uploads.
    """
    location = locate(url)
    if location.scheme == "hf":
        raise ValueError(
            f"{url!r} is read, and not written: a dataset on the Hub changes by commits. Write to "
            "a folder, and upload it with `hf upload`."
        )
    if not location.is_in_bucket:
        raise ValueError(
            f"{url!r} is read, and not written: a server has no uploads that are complete or "
            "nothing. Write to s3://, gs:// or az://, or to a folder."
        )
    return location


def upload_files(files: dict[str, str], access: str) -> None:
    """Uploads files, by their URLs. Each object appears when complete. Raises OSError.

    After a failure, complete objects remain, and the parts of other objects are removed, if the
    removal takes a few seconds.
    """
    job = _Job(files, access)
    uploading = use_client().start(job.run())
    try:
        while not uploading.done():
            wait([uploading], _LOOK_S)
    except BaseException:
        job.give_up()
        wait([uploading], _PATIENCE_S)
        uploading.cancel()
        raise
    try:
        uploading.result()
    except GivenUpError as failure:
        raise OSError(failure.number, failure.text) from None


def replace_by_file(url: str, access: str, path: str, version: Version | None) -> bool:
    """Uploads a file, if the object is still in that version (None: the object did not exist).

    Returns False for another version. A storage without versions replaces any version. Raises
    OSError.
    """
    return _run(_replace(url, access, path, version))


def download(url: str, access: str, path: str) -> Version | None:
    """Makes `path` a copy of an object. Returns its version; None, without a file, if the object
    does not exist.

    The version is empty if the storage names no version. Raises OSError.
    """
    with open(path, "wb") as file:
        version = _run(_download(url, access, file))
    if version is None:
        os.unlink(path)
    return version


def fetch(url: str, access: str, max_bytes: int) -> bytes | None:
    """Returns the first `max_bytes` of an object; None if it does not exist. Raises OSError."""
    copy = io.BytesIO()
    version = _run(_download(url, access, copy, max_bytes))
    return None if version is None else copy.getvalue()


def is_there(url: str, access: str) -> bool:
    """True if an object of that name exists. Raises OSError."""

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
    """Removes the objects that exist. Raises OSError."""

    async def remove() -> None:
        for url in urls:
            location = locate(url)
            store = writing_store(location, access)
            try:
                await obstore().delete_async(store.native, location.key)
            except Exception as error:
                if failures.judge(error) is not Verdict.MISSING:
                    raise failed_upload(f"Removing '{url}'", error, store, "") from None

    _run(remove())


def _run(work: Coroutine[Any, Any, Answer]) -> Answer:
    try:
        return use_client().run(work)
    except GivenUpError as failure:
        raise OSError(failure.number, failure.text) from None


class _Job:
    """Simultaneous uploads of files, until an upload fails."""

    def __init__(self, files: dict[str, str], access: str) -> None:
        self._files = files
        self._access = access
        self._way = PartsUnderWay(PARTS_AT_ONCE)
        self._is_given_up = False

    def give_up(self) -> None:
        self._is_given_up = True

    async def run(self) -> None:
        rest = iter(self._files.items())
        works = [asyncio.ensure_future(self._work_off(rest)) for _ in range(_OBJECTS_AT_ONCE)]
        try:
            await asyncio.gather(*works)
        except Exception:
            self.give_up()  # the other uploads then remove their parts
            await asyncio.wait(works, timeout=_PATIENCE_S)
            raise
        finally:
            for each in works:
                each.cancel()

    async def _work_off(self, rest: Iterator[tuple[str, str]]) -> None:
        for url, path in rest:
            if self._is_given_up:
                return
            await self._upload(url, path)

    async def _upload(self, url: str, path: str) -> None:
        location = locate(url)
        size, part_bytes = os.path.getsize(path), _part_bytes(path)
        store = writing_store(location, self._access, FIRST * part_bytes)
        ending = Ending(url, self._access, size)
        pieces = self._parts(path, part_bytes, size, ending)
        await put_whole(
            store, pieces, ending, part_bytes, lambda: self._is_given_up, size > part_bytes
        )

    async def _parts(
        self, path: str, part_bytes: int, size: int, ending: Ending
    ) -> AsyncIterator[Piece]:
        with open(path, "rb") as file:
            for at in range(0, max(size, 1), part_bytes):
                await self._way.space(lambda: self._is_given_up)
                if at + part_bytes >= size > part_bytes:
                    await ending.begin()
                piece: Piece = np.fromfile(file, np.uint8, part_bytes)
                self._way.hold(piece)
                yield piece
                del piece  # its memory is free when it has been sent


async def put_whole(
    store: Store,
    pieces: AsyncIterator[Piece],
    ending: Ending,
    part_bytes: int,
    is_given_up: Callable[[], bool],
    in_parts: bool = True,
) -> bool:
    """Uploads pieces as one object. Returns whether the object appeared: False only for an upload
    that was given up. Raises GivenUpError.
    """
    try:
        await obstore().put_async(
            store.native,
            locate(ending.url).key,
            pieces,
            use_multipart=in_parts,
            chunk_size=part_bytes,
            max_concurrency=PARTS_AT_ONCE,
        )
    except Exception as error:
        if await ending.has_come():
            return True
        if is_given_up():
            return False
        nothing = "Nothing appeared under that name."
        raise failed_upload(f"Writing '{ending.url}'", error, store, nothing) from None
    return True


class Ending:
    """Tells whether an upload has made its object appear, though the answer was lost."""

    def __init__(self, url: str, access: str, size: int = 0) -> None:
        self.url = url
        self._access = access
        self.size = size
        self._before: Any = None
        self._has_begun = False

    async def begin(self) -> None:
        """Examines the current object. From now on, the new object may appear."""
        with contextlib.suppress(GivenUpError):
            self._before = await self._look()
            self._has_begun = True

    async def has_come(self) -> bool:
        """True if a new object of that size has appeared."""
        if not self._has_begun:
            return False
        try:
            now = await self._look()
        except GivenUpError:
            return False
        return now is not None and now != self._before and now[0] == self.size

    async def _look(self) -> Any:
        meta = await _head(self.url, self._access)
        if meta is None:
            return None
        return tuple(meta.get(name) for name in ("size", "e_tag", "version", "last_modified"))


def _part_bytes(path: str) -> int:
    return max(PART_BYTES, -(-os.path.getsize(path) // _MAX_PARTS))


async def _replace(url: str, access: str, path: str, version: Version | None) -> bool:
    location = locate(url)
    store = writing_store(location, access, os.path.getsize(path))
    if os.path.getsize(path) > _MAX_PUT_BYTES:
        return await _replace_in_parts(url, access, path, version)
    # The storage refuses such a request if the object has changed.
    put = functools.partial(obstore().put_async, store.native, location.key, use_multipart=False)
    try:
        try:
            mode = "create" if version is None else version or "overwrite"
            await put(Path(path), mode=mode)
        except Exception as error:
            if type(error).__name__ in ("PreconditionError", "AlreadyExistsError"):
                return False
            if failures.status_of(error) != 501 and type(error).__name__ != "NotSupportedError":
                raise
            await put(Path(path))  # this storage knows no conditions
    except Exception as error:
        raise failed_upload(f"Writing '{url}'", error, store, "") from None
    return True


async def _replace_in_parts(url: str, access: str, path: str, version: Version | None) -> bool:
    """Parts take no condition, so the object is examined as late as possible, before the parts are
    joined.
    """
    location = locate(url)
    size = _part_bytes(path)
    store = writing_store(location, access, FIRST * size)
    is_another = False

    async def parts() -> AsyncIterator[bytes]:
        nonlocal is_another
        with open(path, "rb") as file:
            while part := file.read(size):
                yield part
        is_another = version != {} and await _version_now(url, access) != version
        if is_another:
            raise InterruptedError  # the error removes the parts

    try:
        await obstore().put_async(
            store.native,
            location.key,
            parts(),
            use_multipart=True,
            chunk_size=size,
            max_concurrency=FIRST,
        )
    except Exception as error:
        if is_another:
            return False
        raise failed_upload(f"Writing '{url}'", error, store, "") from None
    return True


async def _version_now(url: str, access: str) -> Version | None:
    meta = await _head(url, access)
    return None if meta is None else _version_of(meta)


def _version_of(meta: Any) -> Version:
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name)}


async def _head(url: str, access: str) -> Any:
    """Returns the storage's facts about an object; None if it does not exist."""
    location = locate(url)

    async def attempt(store: Store) -> Any:
        try:
            return await obstore().head_async(store.native, location.key)
        except Exception as error:
            if failures.judge(error) is Verdict.MISSING:
                return None
            raise

    return await answers.persist(location, access, f"Asking for '{url}'", url, attempt)


async def _download(
    url: str, access: str, file: BinaryIO, max_bytes: int = sys.maxsize
) -> Version | None:
    for attempt in itertools.count(1):
        meta = await _head(url, access)
        if meta is None:
            return None
        facts = answers.Facts.of(meta)
        try:
            file.truncate(0)
            end = min(facts.size, max_bytes)
            rest = iter(range(0, end, PART_BYTES))
            await answers.all_of(
                _fetch(url, access, facts, rest, end, file) for _ in range(PARTS_AT_ONCE)
            )
            break
        except GivenUpError as failure:
            if failure.code != failures.REPLACED or attempt == _DOWNLOADS:
                raise
    return _version_of(meta)


async def _fetch(
    url: str, access: str, facts: answers.Facts, offsets: Iterator[int], end: int, file: BinaryIO
) -> None:
    for at in offsets:
        count = min(PART_BYTES, end - at)

        def put(done: int, chunk: Any, at: int = at) -> None:
            file.seek(at + done)
            file.write(chunk)

        await answers.read(url, access, facts.encode(), at, count, put)


def failed_upload(what: str, error: BaseException, store: Store, then: str) -> GivenUpError:
    """Returns the failure in words: the attempt, the cause, and the result."""
    verdict = failures.judge(error)
    cause = failures.in_words(error, store.secrets)
    advice = ""
    if verdict is Verdict.RENEW:
        advice = " Check the credentials and their permissions, or pass storage={...}."
    elif verdict is Verdict.RETRY:
        advice = failures.advice_to_retry(error)
    text = f"{what} failed: {cause}. {then}".rstrip() + advice
    return GivenUpError(failures.UNREADABLE, failures.errno_of(error, verdict), text)
