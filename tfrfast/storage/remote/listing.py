"""The current facts of objects: the matches of a glob, or the objects at given URLs."""

from __future__ import annotations

import asyncio
import errno
import fnmatch
import re
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

from tfrfast import _native
from tfrfast.base.warning import warn
from tfrfast.storage.remote import answers, hub
from tfrfast.storage.remote.answers import Facts
from tfrfast.storage.remote.client import expect_to_open, use_client
from tfrfast.storage.remote.failures import EndlessListingError, GivenUpError
from tfrfast.storage.remote.library import obstore
from tfrfast.storage.remote.stores import Store
from tfrfast.storage.remote.urls import ObjectName, is_usable, locate

Answer = TypeVar("Answer")

_MAGIC = re.compile(r"[*?[]")
_LOOKS_AT_ONCE = 64
#: Bounds of names and time for the listing of a hostile server.
_MAX_LISTED = 10_000_000
_TIMES_RETRY_SECONDS = 5


def find_objects(pattern: str, access: str) -> list[str]:
    """Returns the URLs of the matching objects, in no order. Raises FileNotFoundError, OSError."""
    location = locate(pattern)
    if _MAGIC.search(location.bucket):
        raise ValueError(f"{pattern!r} has a pattern for a bucket. Name one bucket.")
    matches = re.compile(_translate(location.key)).fullmatch

    unusable: list[str] = []

    async def find() -> dict[str, Facts]:
        def is_wanted(key: str) -> bool:
            return key == location.key or (matches(key) is not None and not _is_index(key))

        listed = {meta["path"]: meta for meta in await _list(location, access, is_wanted, unusable)}
        # A name is taken literally, as on a disk.
        chosen = [location.key] if location.key in listed else list(listed)
        found = {f"{location.root}/{key}": Facts.of(listed[key]) for key in chosen}
        # Only a recursive listing mixes marks of folders with objects. The Hub has no marks.
        may_mark = location.is_in_bucket and not _is_flat(location)
        empty = [url for url, facts in found.items() if facts.size == 0 and may_mark]
        # A mark of a folder is an empty object. Its last slash is missing in the listing.
        looked = await _examine_all(empty, access)
        return {
            url: each for url, each in found.items() if isinstance(looked.get(url, each), Facts)
        }

    found = _run(find(), pattern)
    if unusable:
        warn(
            f"{len(unusable)} objects beside {pattern!r} are left out, as no request can name "
            f"them: {unusable[0]!r}{', for example' if len(unusable) > 1 else ''}."
        )
    if location.scheme == "s3":
        # Listings of other storages write version tags differently than answers.
        expect_to_open({url: facts for url, facts in found.items() if facts.etag}, access)
    return list(found)


def find_folders(url: str, access: str) -> list[str]:
    """Returns the URLs of the folders in the folder of an object, in order. Raises OSError."""
    location = locate(url)
    folder = location.key.rpartition("/")[0]

    async def attempt(store: Store) -> list[str]:
        limit_s = _TIMES_RETRY_SECONDS * store.retry_seconds
        if location.scheme == "hf":
            entries = hub.listed(location, access, folder, True, store.timeout)
            listed = await _in_thread(entries, limit_s)
            return sorted(each["path"] for each in listed if each["type"] == "directory")
        listing = obstore().list_with_delimiter_async(store.native, folder or None)
        return sorted((await _in_time(listing, limit_s))["common_prefixes"])

    what = f"Listing '{location.root}/{folder}'"
    listing = answers.persist(location, access, what, location.root, attempt, limits_time=False)
    found = _run(listing, url)
    return [f"{location.root}/{each}" for each in found]


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
        for url, facts in use_client().run(_examine_all(unknown, access)).items():
            if isinstance(facts, GivenUpError):
                raise facts.for_users()
            found[url] = facts
    # An object without a lasting version is examined again at its opening.
    expect_to_open({url: facts for url, facts in found.items() if facts.etag}, access)
    return found


async def _examine_all(urls: list[str], access: str) -> dict[str, Facts | GivenUpError]:
    """Returns the facts of each object, or the error that the object does not exist. Raises any
    other GivenUpError.
    """
    found: dict[str, Facts | GivenUpError] = {}

    async def work_off(some: Iterator[str]) -> None:
        for url in some:
            try:
                found[url] = await answers.examine(url, access)
            except GivenUpError as failure:
                if failure.number != errno.ENOENT:
                    raise
                found[url] = failure

    rest = iter(urls)
    tasks = [asyncio.ensure_future(work_off(rest)) for _ in range(min(_LOOKS_AT_ONCE, len(urls)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    return found


def _run(work: Coroutine[Any, Any, Answer], name: str) -> Answer:
    try:
        return use_client().run(work)
    except OSError as error:
        error.filename = name
        raise


def _is_index(key: str) -> bool:
    folder, _, name = key.rpartition("/")
    return folder.endswith(".tfrfast") and name == "index"


def _beginning(location: ObjectName) -> str:
    """Returns the text before the first magic character."""
    return _MAGIC.split(location.key, maxsplit=1)[0]


def _is_flat(location: ObjectName) -> bool:
    """True if the pattern stays in one folder."""
    rest = location.key[len(_beginning(location)) :]
    return "/" not in rest and not location.key.endswith("**")


async def _list(
    location: ObjectName, access: str, is_wanted: Callable[[str], bool], unusable: list[str]
) -> list[Any]:
    """Returns the wanted objects' descriptions, and adds the URLs that no request can name."""
    folder = _beginning(location).rpartition("/")[0]
    is_flat = _is_flat(location)

    def wanted(listed: Iterable[Any]) -> Iterator[Any]:
        for meta in listed:
            if not is_usable(meta["path"]):
                unusable.append(f"{location.root}/{meta['path']}")
            elif is_wanted(meta["path"]):
                yield meta

    async def attempt(store: Store) -> list[Any]:
        unusable.clear()
        limit_s = _TIMES_RETRY_SECONDS * store.retry_seconds
        if location.scheme == "hf":
            entries = hub.listed(location, access, folder, is_flat, store.timeout)
            files = (hub.meta_of(each) for each in entries if each["type"] == "file")
            return await _in_thread(files, limit_s, wanted)
        return await _list_by_obstore(store, folder, is_flat, wanted, limit_s)

    what = f"Listing '{location.root}/{folder}'"
    return await answers.persist(location, access, what, location.root, attempt, limits_time=False)


async def _list_by_obstore(
    store: Store,
    folder: str,
    is_flat: bool,
    wanted: Callable[[Iterable[Any]], Iterator[Any]],
    limit_s: float,
) -> list[Any]:
    # A listing takes a request for each thousand objects, and all requests together are one call.
    if is_flat:
        listing = obstore().list_with_delimiter_async(store.native, folder or None)
        return list(wanted((await _in_time(listing, limit_s))["objects"]))
    metas: list[Any] = []
    num_listed = 0
    chunks = aiter(obstore().list(store.native, folder or None, chunk_size=1000))
    while (chunk := await _in_time(anext(chunks, None), limit_s)) is not None:
        num_listed += len(chunk)
        _check_number(num_listed)
        metas.extend(wanted(chunk))
    return metas


async def _in_thread(
    listed: Iterator[Any],
    limit_s: float,
    wanted: Callable[[Iterator[Any]], Iterable[Any]] = iter,
) -> list[Any]:
    """Takes a listing in a thread. The end of the program does not wait for the thread."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[list[Any]] = loop.create_future()
    until = time.monotonic() + limit_s

    def in_bounds() -> Iterator[Any]:
        for number, each in enumerate(listed, 1):
            _check_number(number)
            if time.monotonic() > until:
                raise _endless(limit_s)
            yield each

    def run() -> None:
        try:
            finish, result = done.set_result, list(wanted(in_bounds()))
        except BaseException as error:
            finish, result = done.set_exception, error  # type: ignore[assignment]
        loop.call_soon_threadsafe(lambda: done.done() or finish(result))

    threading.Thread(target=run, name="tfrfast-listing", daemon=True).start()
    return await _in_time(done, limit_s)


def _check_number(listed: int) -> None:
    if listed > _MAX_LISTED:
        raise EndlessListingError(f"it has more than {_MAX_LISTED:,} objects")


async def _in_time(listing: Awaitable[Answer], limit_s: float) -> Answer:
    task = asyncio.ensure_future(listing)
    try:
        await asyncio.wait({task}, timeout=limit_s)
        if task.done():
            return task.result()
    finally:
        task.cancel()
    raise _endless(limit_s)


def _endless(limit_s: float) -> EndlessListingError:
    return EndlessListingError(
        f"it did not end in {limit_s:g} s. List the shards yourself, or allow more with "
        "storage={'retry_seconds': ...}"
    )


def _translate(pattern: str) -> str:
    """Returns a glob as a regular expression: `*` stays within a folder, `**` does not."""
    segments = pattern.split("/")
    parts = []
    for number, segment in enumerate(segments):
        is_last = number == len(segments) - 1
        # As on a disk, stars leave out names that begin with a dot.
        if segment == "**":
            parts.append(r"(?:(?!\.)[^/]+/)*" + (r"(?!\.)[^/]+" if is_last else ""))
            continue
        hidden = "(?!\\.)" if segment[:1] in ("*", "?", "[") else ""
        parts.append(hidden + _translate_name(segment) + ("" if is_last else "/"))
    return "".join(parts)


def _translate_name(segment: str) -> str:
    parts = []
    at = 0
    while at < len(segment):
        char = segment[at]
        at += 1
        first = at + segment.startswith("!", at)
        end = segment.find("]", first + 1)
        if char == "*":
            parts.append("[^/]*")
        elif char == "?":
            parts.append("[^/]")
        elif char == "[" and end > 0:
            parts.append(fnmatch.translate(segment[at - 1 : end + 1])[:-2])
            at = end + 1
        else:
            parts.append(re.escape(char))
    return "".join(parts)
