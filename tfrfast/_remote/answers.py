"""One request: attempts until the answer is what was asked for."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import struct
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple, TypeVar

from tfrfast._remote import failures
from tfrfast._remote.failures import BadAnswerError, GivenUpError, OtherVersionError, Verdict
from tfrfast._remote.library import obstore
from tfrfast._remote.options import secrets_for
from tfrfast._remote.stores import Store, renew, store_for
from tfrfast._remote.urls import Location, locate

Answer = TypeVar("Answer")

_FIRST_BACKOFF_S = 0.1
_LAST_BACKOFF_S = 5.0
# Credentials that are wrong stay wrong; those that have expired are read again.
_MAX_RENEWALS = 2
_STUCK_S = 10.0
# What servers say that answer GET alone.
_NO_HEAD = (403, 405, 501)
_NO_SUCH_RANGE = 416
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Facts(NamedTuple):
    """What a storage says about an object."""

    size: int
    modified_s: int  # since 1970; 0 if it is not known
    etag: str  # empty if there is none that tells every change

    def encode(self) -> str:
        return json.dumps(self)

    @classmethod
    def decode(cls, text: str) -> Facts:
        return cls(*json.loads(text))

    @classmethod
    def of(cls, meta: Any) -> Facts:
        etag = meta["e_tag"] or ""
        # A weak one stays the same where the storage finds that a change does not matter.
        strong = "" if etag.startswith(("W/", "w/")) else etag
        modified = meta["last_modified"]
        return cls(int(meta["size"]), max(0, int(modified.timestamp())), strong)

    def words(self) -> tuple[int, int, int]:
        digest = hashlib.blake2b(self.etag.strip('"').encode(), digest_size=24).digest()
        first, second, third = struct.unpack("<3Q", digest)
        return first, second, third


async def examine(url: str, access: str) -> Facts:
    """The facts of an object now. Raises GivenUpError."""
    location = _located(url)

    async def attempt(store: Store) -> Facts:
        try:
            return Facts.of(await obstore().head_async(store.native, location.key))
        except Exception as error:
            if location.has_folders or failures.status_of(error) not in _NO_HEAD:
                raise
        try:
            options = {"range": (0, 1)}
            result = await obstore().get_async(store.native, location.key, options=options)
        except Exception as error:
            if failures.status_of(error) == _NO_SUCH_RANGE:
                return Facts(0, 0, "")
            raise
        return Facts.of(result.meta)

    return await persist(location, access, f"Asking for '{url}'", url, attempt)


async def read(url: str, access: str, version: str, offset: int, count: int) -> Any:
    """The bytes of a range of the object in that version, as a buffer. Raises GivenUpError."""
    location = _located(url)
    expected = Facts.decode(version)
    options: dict[str, Any] = {"range": (offset, offset + count)}
    if expected.etag:
        options["if_match"] = expected.etag
    elif expected.modified_s:
        options["if_unmodified_since"] = _EPOCH + timedelta(seconds=expected.modified_s)

    async def attempt(store: Store) -> Any:
        result = await obstore().get_async(store.native, location.key, options=options)
        now = Facts.of(result.meta)
        same_time = bool(expected.etag) or now.modified_s == expected.modified_s
        same_tag = now.etag.strip('"') == expected.etag.strip('"')
        if now.size != expected.size or not same_tag or not same_time:
            raise OtherVersionError()
        body = await result.bytes_async()
        if len(body) != count or tuple(result.range) != (offset, offset + count):
            raise BadAnswerError(f"the answer had {len(body)} bytes instead of {count}")
        return body

    what = f"Reading bytes {offset} to {offset + count - 1} of '{url}'"
    return await persist(location, access, what, url, attempt)


async def persist(
    location: Location,
    access: str,
    what: str,
    url: str,
    attempt: Callable[[Store], Awaitable[Answer]],
    *,
    is_one_request: bool = True,
) -> Answer:
    """What `attempt` returns, tried again as long as that makes sense. Raises GivenUpError.

    `what` begins the message of a failure: what was tried.
    """
    began = time.monotonic()
    attempts = renewals = 0
    while True:
        store = _opened(location, access)
        attempts += 1
        try:
            # The library has timeouts of its own. This one is for a library that is stuck.
            limit = store.timeout + _STUCK_S if is_one_request else None
            return await asyncio.wait_for(attempt(store), limit)
        except Exception as error:
            verdict = failures.judge(error)
            took = time.monotonic() - began
            if verdict is Verdict.REPLACED:
                raise GivenUpError(failures.REPLACED, 0, _replaced(url)) from None
            if verdict is Verdict.RENEW:
                renew(location, access)
                renewals += 1
                goes_on = renewals <= min(_MAX_RENEWALS, store.retries)
            else:
                goes_on = verdict is Verdict.RETRY and attempts <= store.retries
            if not goes_on or took > store.retry_seconds:
                raise _given_up(what, url, error, verdict, attempts, took, store) from None
        await asyncio.sleep(_backoff(attempts))


def _located(url: str) -> Location:
    """Names that graphs hold come here unseen."""
    try:
        return locate(url)
    except ValueError as error:
        raise GivenUpError(failures.MEANINGLESS, 0, str(error)) from None


def _opened(location: Location, access: str) -> Store:
    try:
        return store_for(location, access)
    except Exception as error:
        cause = failures.in_words(error, map(str, secrets_for(access, location.root).values()))
        text = f"{location.root} cannot be reached: {cause}."
        raise GivenUpError(failures.MEANINGLESS, 0, text) from None


def _backoff(attempts: int) -> float:
    longest: float = min(_LAST_BACKOFF_S, _FIRST_BACKOFF_S * 2 ** (attempts - 1))
    return longest * random.uniform(0.5, 1.0)


def _replaced(url: str) -> str:
    return (
        f"'{url}' was replaced by another object while it was being read. Open a new reader to "
        "read what it holds now."
    )


def _given_up(
    what: str,
    url: str,
    error: BaseException,
    verdict: Verdict,
    attempts: int,
    took: float,
    store: Store,
) -> GivenUpError:
    number = failures.errno_of(error, verdict)
    if verdict is Verdict.MISSING:
        return GivenUpError(failures.UNREADABLE, number, f"There is no object '{url}'.")
    times = "once" if attempts == 1 else f"{attempts} times in {took:.1f} s"
    cause = failures.in_words(error, store.secrets)
    advice = ""
    if verdict is Verdict.RENEW:
        advice = " Check the credentials and what they allow, or pass storage={...}."
    elif verdict is Verdict.RETRY:
        advice = " Ask again later, or allow more with storage={'retries': ...}."
    return GivenUpError(
        failures.UNREADABLE,
        number,
        f"{what} failed. It was tried {times}; the last cause: {cause}.{advice}",
    )
