"""One request: attempts until the answer holds the requested bytes."""

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

from tfrfast.storage.remote import failures
from tfrfast.storage.remote.failures import BadAnswerError, GivenUpError, OtherVersionError, Verdict
from tfrfast.storage.remote.library import obstore
from tfrfast.storage.remote.options import secrets_for
from tfrfast.storage.remote.pace import Pace, pace_of
from tfrfast.storage.remote.silence import Silence
from tfrfast.storage.remote.stores import Store, renew, store_for
from tfrfast.storage.remote.urls import ObjectName, locate

Answer = TypeVar("Answer")
#: Takes bytes, and the number of bytes before them.
Put = Callable[[int, Any], object]

_FIRST_BACKOFF_S = 0.1
_LAST_BACKOFF_S = 5.0
# Wrong credentials stay wrong; expired credentials are read again.
_MAX_RENEWALS = 2
_STUCK_S = 10.0
#: A larger answer is passed on in pieces of at least this size, so that a piece is kept if the rest
#: fails.
_CHUNK_BYTES = 256 << 10
_SLOW_CHUNK_BYTES = 16 << 10
_LEAST_BYTES_PER_S = 1 << 10
#: A part of the longest allowed silence. A faster answer is not passed on in pieces.
_QUICK = 0.05
#: A server that gives less in an attempt is not asked forever.
_PROGRESS_BYTES = 16 << 10
# Answers of servers that only know GET.
_NO_HEAD = (403, 405, 501)
_NO_SUCH_RANGE = 416
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Facts(NamedTuple):
    """A storage's facts about an object."""

    size: int
    modified_s: int  # since 1970; 0 if unknown
    etag: str  # empty without a tag that tells every change

    def encode(self) -> str:
        return json.dumps(self)

    @classmethod
    def decode(cls, text: str) -> Facts:
        return cls(*json.loads(text))

    @classmethod
    def of(cls, meta: Any) -> Facts:
        etag = meta["e_tag"] or ""
        # A weak tag stays the same if the storage finds a change irrelevant.
        strong = "" if etag.startswith(("W/", "w/")) else etag
        modified = meta["last_modified"]
        return cls(int(meta["size"]), max(0, int(modified.timestamp())), strong)

    def words(self) -> tuple[int, int, int]:
        digest = hashlib.blake2b(self.etag.strip('"').encode(), digest_size=24).digest()
        first, second, third = struct.unpack("<3Q", digest)
        return first, second, third


async def examine(url: str, access: str) -> Facts:
    """Returns an object's current facts. Raises GivenUpError."""
    location = _located(url)

    async def attempt(store: Store) -> Facts:
        try:
            return Facts.of(await obstore().head_async(store.native, location.key))
        except Exception as error:
            says_no_size = failures.says_no_size(error)
            if location.is_in_bucket or not (says_no_size or failures.status_of(error) in _NO_HEAD):
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


async def read(url: str, access: str, version: str, offset: int, count: int, put: Put) -> None:
    """Passes the bytes of a range of the object in that version to `put`, in order.

    Bytes before a failure are kept, and only the rest is requested again. Raises GivenUpError.
    """
    location = _located(url)
    reading = _Reading(location.key, Facts.decode(version), offset, count, pace_of(location.root))
    what = f"Reading bytes {offset} to {offset + count - 1} of '{url}'"

    async def attempt(store: Store) -> None:
        await reading.go_on(store, put)

    await persist(location, access, what, url, attempt, limits_time=False, reading=reading)


class _Reading:
    """A range of an object, with `done` received bytes."""

    def __init__(self, key: str, expected: Facts, offset: int, count: int, pace: Pace) -> None:
        self._key = key
        self._expected = expected
        self._offset = offset
        self._count = count
        self._pace = pace
        self.done = 0
        self.waited_s = 0.0  # seconds of waiting for its turn
        self._condition: dict[str, Any] = {}
        if expected.etag:
            self._condition["if_match"] = expected.etag
        elif expected.modified_s:
            since = _EPOCH + timedelta(seconds=expected.modified_s)
            self._condition["if_unmodified_since"] = since

    async def go_on(self, store: Store, put: Put) -> None:
        """Requests the missing bytes, in one request or, at a slow pace, in several."""
        while self.done < self._count:
            asked, had = time.monotonic(), self.done
            began = await self._pace.begin()
            self.waited_s += began - asked
            patience = _Patience(store.timeout + _STUCK_S)
            try:
                await self._request(store, put, patience)
            except BaseException as error:
                failure = asyncio.TimeoutError() if patience.is_over else error
                if failures.timed_out(failure):
                    self._pace.timed_out(began)
                raise failure from None
            finally:
                patience.end()
                self._pace.end()
            self._pace.answered(self.done - had, time.monotonic() - began)

    async def _request(self, store: Store, put: Put, patience: _Patience) -> None:
        first = self._offset + self.done
        wanted = min(self._count - self.done, self._pace.request_bytes)
        options = {"range": (first, first + wanted), **self._condition}
        result = await obstore().get_async(store.native, self._key, options=options)
        patience.heard()
        now, expected = Facts.of(result.meta), self._expected
        same_time = bool(expected.etag) or now.modified_s == expected.modified_s
        same_tag = now.etag.strip('"') == expected.etag.strip('"')
        if now.size != expected.size or not same_tag or not same_time:
            raise OtherVersionError()
        begin, end = result.range
        if begin != first or end > first + wanted:
            raise BadAnswerError(f"the answer had bytes {begin} to {end - 1} of the object")
        chunk_bytes = _SLOW_CHUNK_BYTES if self._pace.is_slow else _CHUNK_BYTES
        # Pieces would only slow a quick answer.
        if wanted <= chunk_bytes or self._pace.expected_s(wanted) < store.timeout * _QUICK:
            self._take(await result.bytes_async(), first + wanted, put)
        else:
            chunks = result.stream(min_chunk_size=chunk_bytes)
            async for chunk in chunks:
                patience.heard()
                self._take(chunk, first + wanted, put)
        if (came := self._offset + self.done - first) != wanted:
            raise BadAnswerError(f"the answer had {came} bytes instead of {wanted}")

    def _take(self, chunk: Any, end: int, put: Put) -> None:
        at, count = self.done, len(chunk)
        if self._offset + at + count > end:
            raise BadAnswerError("the answer had more bytes than were requested")
        if count:
            put(at, chunk)
            self.done += count


class _Patience:
    """Cancels this task after a long silence.

    The library has timeouts of its own. This timeout is for a stuck library.
    """

    def __init__(self, limit_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        # The last bytes of a chunk may come one by one.
        self._limit_s = limit_s + _CHUNK_BYTES / _LEAST_BYTES_PER_S
        self.is_over = False
        self.heard()
        self._timer = self._loop.call_later(self._limit_s, self._look)

    def heard(self) -> None:
        self._heard_s = self._loop.time()

    def end(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        rest = self._heard_s + self._limit_s - self._loop.time()
        if rest > 0:
            self._timer = self._loop.call_later(rest, self._look)
        elif self._task is not None:
            self.is_over = True
            self._task.cancel()


async def persist(
    location: ObjectName,
    access: str,
    what: str,
    url: str,
    attempt: Callable[[Store], Awaitable[Answer]],
    *,
    limits_time: bool = True,
    reading: _Reading | None = None,
) -> Answer:
    """Returns the result of `attempt`, with retries as long as they make sense. Raises
    GivenUpError.

    `what` names the attempted act, and begins the message of a failure. `limits_time` is for an
    attempt of one request that does not limit its own time. After progress of `reading`, attempts
    are counted from 0 again.
    """
    with Silence(location.root) as silence:
        began = time.monotonic()
        attempts = renewals = had = 0
        while True:
            store = _opened(location, access)
            silence.asks(store.endpoint, store.retry_seconds)
            attempts += 1
            try:
                answering = attempt(store)
                if limits_time:
                    answering = asyncio.wait_for(answering, store.timeout + _STUCK_S)
                answer = await answering
                silence.heard()
                return answer
            except Exception as error:
                if reading is not None:
                    began += reading.waited_s
                    reading.waited_s = 0.0
                    if reading.done >= had + _PROGRESS_BYTES:
                        began, attempts, had = time.monotonic(), 1, reading.done
                elif attempts == 1 and not limits_time:  # a listing may fail after minutes
                    began = time.monotonic()
                verdict = failures.judge(error)
                if verdict is Verdict.RETRY and not failures.status_of(error):
                    silence.failed(failures.reason(error, store.secrets))
                else:
                    silence.heard()
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


def _located(url: str) -> ObjectName:
    """Names in graphs come here unchecked."""
    try:
        return locate(url)
    except ValueError as error:
        raise GivenUpError(failures.MEANINGLESS, 0, str(error)) from None


def _opened(location: ObjectName, access: str) -> Store:
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
        "read the new object."
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
    advice = failures.advice(error, verdict)
    if verdict is Verdict.RENEW and url.startswith("hf://"):
        advice = (
            " The Hub gives this answer if the dataset does not exist or is not public: check "
            "the name, and log in, set HF_TOKEN or pass storage={'token': ...}."
        )
    return GivenUpError(
        failures.UNREADABLE,
        number,
        f"{what} failed. It was tried {times}; the last cause: {cause}.{advice}",
    )
