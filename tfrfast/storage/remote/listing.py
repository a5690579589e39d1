"""Globs of objects: one listing of a bucket's folder finds names and facts."""

from __future__ import annotations

import asyncio
import errno
import fnmatch
import re
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

from tfrfast.storage.remote import answers, failures, hub, named_apart
from tfrfast.storage.remote.client import expect_to_open, use_client
from tfrfast.storage.remote.failures import EndlessListingError
from tfrfast.storage.remote.library import obstore
from tfrfast.storage.remote.stores import Store
from tfrfast.storage.remote.urls import Location, locate

Answer = TypeVar("Answer")

_MAGIC = re.compile(r"[*?[]")
_LOOKS_AT_ONCE = 64
#: Bounds of names and time for the listing of a hostile server.
_MAX_LISTED = 10_000_000
_TIMES_RETRY_SECONDS = 5


def find_objects(pattern: str, access: str) -> list[str]:
    """Returns the URLs of the matching objects, in no order. Raises FileNotFoundError, OSError."""
    location = locate(pattern)
    if not location.has_folders:
        raise ValueError(
            f"{pattern!r} is a pattern, and a server has no listing to look it up in. Pass a list "
            "of URLs."
        )
    if _MAGIC.search(location.bucket):
        raise ValueError(f"{pattern!r} has a pattern for a bucket. Name one bucket.")
    matches = re.compile(_translate(location.key)).fullmatch

    unusable: list[str] = []

    async def find() -> dict[str, answers.Facts]:
        def is_wanted(key: str) -> bool:
            return key == location.key or (matches(key) is not None and not _is_index(key))

        listed = {meta["path"]: meta for meta in await _list(location, access, is_wanted, unusable)}
        # A name is taken literally, as on a disk.
        chosen = [location.key] if location.key in listed else list(listed)
        found = {f"{location.root}/{key}": answers.Facts.of(listed[key]) for key in chosen}
        # A listing of one folder has marks of folders apart. The Hub has no marks.
        may_mark = location.is_in_bucket and not _is_flat(location)
        empty = [url for url, facts in found.items() if facts.size == 0 and may_mark]
        folders = await _folders(empty, access)
        return {url: facts for url, facts in found.items() if url not in folders}

    found = _run(find(), pattern)
    if unusable:
        warnings.warn(
            f"{len(unusable)} objects beside {pattern!r} are left out, as no request can name "
            f"them: {unusable[0]!r}{', for example' if len(unusable) > 1 else ''}.",
            UserWarning,
            stacklevel=2,
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
            entries = await _in_time(_entries(store, location, access, folder, True), limit_s)
            return sorted(each["path"] for each in entries if each["type"] == "directory")
        listing = obstore().list_with_delimiter_async(store.native, folder or None)
        return sorted((await _in_time(listing, limit_s))["common_prefixes"])

    what = f"Listing '{location.root}/{folder}'"
    listing = answers.persist(location, access, what, location.root, attempt, limits_time=False)
    found = _run(listing, url)
    return [f"{location.root}/{each}" for each in found]


def _run(work: Coroutine[Any, Any, Answer], name: str) -> Answer:
    try:
        return use_client().run(work)
    except failures.GivenUpError as failure:
        if failure.code == failures.MEANINGLESS:  # as in opening an object
            raise ValueError(failure.text) from None
        raise OSError(failure.number, failure.text, name) from None


def _is_index(key: str) -> bool:
    folder, _, name = key.rpartition("/")
    return folder.endswith(".tfrfast") and name == "index"


def _beginning(location: Location) -> str:
    """Returns the text before the first magic character."""
    return _MAGIC.split(location.key, maxsplit=1)[0]


def _is_flat(location: Location) -> bool:
    """True if the pattern stays in one folder."""
    rest = location.key[len(_beginning(location)) :]
    return "/" not in rest and not location.key.endswith("**")


async def _list(
    location: Location, access: str, is_wanted: Callable[[str], bool], unusable: list[str]
) -> list[Any]:
    folder = _beginning(location).rpartition("/")[0]

    def wanted(listed: Iterable[Any]) -> list[Any]:
        unusable.clear()
        metas = []
        for meta in _up_to_limit(listed):
            if not named_apart.is_usable(meta["path"]):
                unusable.append(f"{location.root}/{meta['path']}")
            elif is_wanted(meta["path"]):
                metas.append(meta)
        return metas

    async def attempt(store: Store) -> list[Any]:
        if location.scheme == "hf":
            limit_s = _TIMES_RETRY_SECONDS * store.retry_seconds
            listing = _entries(store, location, access, folder, _is_flat(location))
            entries = await _in_time(listing, limit_s)
            return wanted(hub.meta_of(each) for each in entries if each["type"] == "file")
        try:
            return await _list_once(store, location, folder, is_wanted)
        except Exception as error:
            can_tell = location.scheme == "s3" and named_apart.has_boto3()
            if type(error).__name__ != "InvalidPathError" or not can_tell:
                raise

        flat = _is_flat(location)
        return await asyncio.to_thread(
            lambda: wanted(named_apart.objects_by_boto3(location, access, folder, flat))
        )

    what = f"Listing '{location.root}/{folder}'"
    return await answers.persist(location, access, what, location.root, attempt, limits_time=False)


async def _list_once(
    store: Store, location: Location, folder: str, is_wanted: Callable[[str], bool]
) -> list[Any]:
    # A listing takes a request for each thousand objects, and all requests together are one call.
    limit_s = _TIMES_RETRY_SECONDS * store.retry_seconds
    if _is_flat(location):
        listing = obstore().list_with_delimiter_async(store.native, folder or None)
        listed = await _in_time(listing, limit_s)
        return [meta for meta in listed["objects"] if is_wanted(meta["path"])]
    metas: list[Any] = []
    num_listed = 0
    chunks = aiter(obstore().list(store.native, folder or None, chunk_size=1000))
    while (chunk := await _in_time(anext(chunks, None), limit_s)) is not None:
        num_listed += len(chunk)
        if num_listed > _MAX_LISTED:
            raise EndlessListingError(f"it has more than {_MAX_LISTED:,} objects")
        metas.extend(meta for meta in chunk if is_wanted(meta["path"]))
    return metas


async def _entries(
    store: Store, location: Location, access: str, folder: str, is_flat: bool
) -> list[dict[str, Any]]:
    """Yields the Hub's listing of a folder of a dataset."""
    found: list[dict[str, Any]] = []
    async for each in hub.listed(location, access, folder, is_flat, store.timeout):
        if len(found) == _MAX_LISTED:
            raise EndlessListingError(f"it has more than {_MAX_LISTED:,} objects")
        found.append(each)
    return found


def _up_to_limit(listed: Iterable[Any]) -> Iterator[Any]:
    for number, meta in enumerate(listed):
        if number == _MAX_LISTED:
            raise EndlessListingError(f"it has more than {_MAX_LISTED:,} objects")
        yield meta


async def _in_time(listing: Awaitable[Answer], limit_s: float) -> Answer:
    try:
        return await asyncio.wait_for(listing, limit_s)
    except asyncio.TimeoutError:
        raise EndlessListingError(
            f"it did not end in {limit_s:g} s. List the shards yourself, or allow more with "
            "storage={'retry_seconds': ...}"
        ) from None


async def _folders(urls: list[str], access: str) -> set[str]:
    """Returns the names of marks of folders, which are empty objects. Listings leave out their last
    slash.
    """
    found = set()
    for first in range(0, len(urls), _LOOKS_AT_ONCE):
        some = urls[first : first + _LOOKS_AT_ONCE]
        looked = await asyncio.gather(
            *(answers.examine(url, access) for url in some), return_exceptions=True
        )
        for url, each in zip(some, looked, strict=True):
            if isinstance(each, failures.GivenUpError) and each.number == errno.ENOENT:
                found.add(url)
    return found


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
