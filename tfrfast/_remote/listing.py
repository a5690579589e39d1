"""Globs of objects: one listing of a bucket's folder finds the names and what is known of them."""

from __future__ import annotations

import asyncio
import errno
import fnmatch
import re
from collections.abc import Coroutine
from typing import Any, TypeVar

from tfrfast._remote import answers, failures
from tfrfast._remote.client import expect_to_open, use_client
from tfrfast._remote.library import obstore
from tfrfast._remote.urls import Location, locate

Answer = TypeVar("Answer")

_MAGIC = re.compile(r"[*?[]")
_LOOKS_AT_ONCE = 64


def find_objects(pattern: str, access: str) -> list[str]:
    """The URLs of the objects that match, in no order. Raises FileNotFoundError, OSError."""
    location = locate(pattern)
    if not location.has_folders:
        raise ValueError(
            f"{pattern!r} is a pattern, and a server has no listing to look it up in. Pass a list "
            "of URLs."
        )
    if _MAGIC.search(location.bucket):
        raise ValueError(f"{pattern!r} has a pattern for a bucket. Name one bucket.")
    matches = re.compile(_translate(location.key)).fullmatch

    async def find() -> dict[str, answers.Facts]:
        listed = {meta["path"]: meta for meta in await _list(location, access)}
        if location.key in listed:  # taken literally, as on a disk
            chosen = [location.key]
        else:
            chosen = [key for key in listed if matches(key) and not _is_index(key)]
        found = {f"{location.root}/{key}": answers.Facts.of(listed[key]) for key in chosen}
        # A listing of one folder has marks of folders apart.
        empty = [url for url, facts in found.items() if facts.size == 0 and not _is_flat(location)]
        folders = await _folders(empty, access)
        return {url: facts for url, facts in found.items() if url not in folders}

    found = _run(find(), pattern)
    if location.scheme == "s3":
        # Elsewhere a listing writes version tags in another way than an answer does.
        expect_to_open({url: facts for url, facts in found.items() if facts.etag}, access)
    return list(found)


def find_folders(url: str, access: str) -> list[str]:
    """The URLs of the folders in the folder of an object, in order. Raises OSError."""
    location = locate(url)
    folder = location.key.rpartition("/")[0]

    async def attempt(store: Any) -> list[str]:
        listed = await obstore().list_with_delimiter_async(store.native, folder or None)
        return sorted(listed["common_prefixes"])

    what = f"Listing '{location.root}/{folder}'"
    listing = answers.persist(location, access, what, location.root, attempt, limits_time=False)
    found = _run(listing, url)
    return [f"{location.root}/{each}" for each in found]


def _run(work: Coroutine[Any, Any, Answer], name: str) -> Answer:
    try:
        return use_client().run(work)
    except failures.GivenUpError as failure:
        if failure.code == failures.MEANINGLESS:  # as where an object is opened
            raise ValueError(failure.text) from None
        raise OSError(failure.number, failure.text, name) from None


def _is_index(key: str) -> bool:
    folder, _, name = key.rpartition("/")
    return folder.endswith(".tfrfast") and (name.endswith(".index") or name == "index")


def _beginning(location: Location) -> str:
    """What stands before the first magic character."""
    return _MAGIC.split(location.key, maxsplit=1)[0]


def _is_flat(location: Location) -> bool:
    """Whether the pattern stays in one folder."""
    rest = location.key[len(_beginning(location)) :]
    return "/" not in rest and not location.key.endswith("**")


async def _list(location: Location, access: str) -> list[Any]:
    folder = _beginning(location).rpartition("/")[0]

    async def attempt(store: Any) -> list[Any]:
        if _is_flat(location):
            listed = await obstore().list_with_delimiter_async(store.native, folder or None)
            return list(listed["objects"])
        metas: list[Any] = []
        async for chunk in obstore().list(store.native, folder or None, chunk_size=1000):
            metas.extend(chunk)
        return metas

    what = f"Listing '{location.root}/{folder}'"
    # It takes a request for each thousand objects.
    return await answers.persist(location, access, what, location.root, attempt, limits_time=False)


async def _folders(urls: list[str], access: str) -> set[str]:
    """Those of marks of folders, which are empty objects. Listings leave out their last slash."""
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
    """A glob as a regular expression: `*` stays within a folder, `**` does not."""
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
