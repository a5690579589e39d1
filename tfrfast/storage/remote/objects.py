"""Whole objects: downloads, conditional replacements, removals."""

from __future__ import annotations

import errno
import functools
import itertools
import os
from pathlib import Path
from typing import Any, BinaryIO

from tfrfast.storage.remote import answers, failures
from tfrfast.storage.remote.answers import Facts
from tfrfast.storage.remote.client import use_client
from tfrfast.storage.remote.failures import GivenUpError, Verdict
from tfrfast.storage.remote.library import obstore
from tfrfast.storage.remote.stores import Store, writing_store
from tfrfast.storage.remote.urls import locate

Version = dict[str, Any]  # the storage's version of an object

#: The largest object of one request on every storage.
_MAX_PUT_BYTES = 5000 << 20
#: The number of reads of an object that other processes keep replacing.
_DOWNLOADS = 10


def check_writable(url: str) -> None:
    """Raises ValueError for a server without multipart uploads."""
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


def replace_by_file(url: str, access: str, path: str, version: Version | None) -> bool:
    """Uploads a file, if the object is still in that version (None: the object did not exist).

    Returns False for another version. A storage without versions replaces any version. Raises
    OSError.
    """
    return use_client().run(_replace(url, access, path, version))


def download(url: str, access: str, path: str) -> Version | None:
    """Makes `path` a copy of an object. Returns its version; None, without a file, if the object
    does not exist.

    The version is empty if the storage names no version. Raises OSError.
    """
    with open(path, "wb") as file:
        version = use_client().run(_download(url, access, file))
    if version is None:
        os.unlink(path)
    return version


def is_there(url: str, access: str) -> bool:
    """True if an object of that name exists. Raises OSError."""
    return use_client().run(head(url, access)) is not None


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

    use_client().run(remove())


async def _replace(url: str, access: str, path: str, version: Version | None) -> bool:
    size = os.path.getsize(path)
    if size > _MAX_PUT_BYTES:
        raise GivenUpError(
            failures.UNREADABLE,
            errno.EFBIG,
            f"Writing '{url}' failed: it would have {size:,} bytes, and storages replace at most "
            f"{_MAX_PUT_BYTES:,} bytes in one request. Divide the shards among several folders.",
        )
    location = locate(url)
    store = writing_store(location, access, size)
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


async def head(url: str, access: str) -> Any:
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


async def _download(url: str, access: str, file: BinaryIO) -> Version | None:
    def put(at: int, chunk: Any) -> None:
        file.seek(at)
        file.write(chunk)

    for attempt in itertools.count(1):
        if (meta := await head(url, access)) is None:
            return None
        facts = Facts.of(meta)
        file.truncate(0)
        try:
            if facts.size:
                await answers.read(url, access, facts.encode(), 0, facts.size, put)
            break
        except GivenUpError as failure:
            if failure.code != failures.REPLACED or attempt == _DOWNLOADS:
                raise
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name)}


def failed_upload(what: str, error: BaseException, store: Store, then: str) -> GivenUpError:
    """Returns the failure in words: the attempt, the cause, and the result."""
    verdict = failures.judge(error)
    cause = failures.in_words(error, store.secrets)
    text = f"{what} failed: {cause}. {then}".rstrip() + failures.advice(error, verdict)
    return GivenUpError(failures.UNREADABLE, failures.errno_of(error, verdict), text)
