"""Objects that are uploaded in parts during writing."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import AsyncIterator
from concurrent.futures import Future, wait

import numpy as np

from tfrfast import _native
from tfrfast.storage.remote.client import use_client
from tfrfast.storage.remote.failures import GivenUpError
from tfrfast.storage.remote.parts_under_way import PartsUnderWay, Piece
from tfrfast.storage.remote.stores import Store, writing_store
from tfrfast.storage.remote.uploads import PART_BYTES, PARTS_AT_ONCE, Ending, put_whole
from tfrfast.storage.remote.urls import locate

#: Complete parts on the disk, besides an unfinished part of each object.
_PARTS_ON_DISK = 16
_MAX_PARTS = 9_999
#: A single object gets larger parts, because storages limit their number.
_MOST_PIECES = 8
_COMPLETED_AT_ONCE = 16
_LOOK_MS = 100
_PATIENCE_S = 10.0


class StreamedUploads:
    """Sends the parts that writers complete, and removes them from the disk.

    No object appears before `complete`. The caller handles an object of one part, whose file stays
    under its path. `urls` maps files to objects of one bucket.
    """

    def __init__(self, folder_url: str, access: str, num_objects: int) -> None:
        pieces = max(1, _MOST_PIECES // num_objects)
        self.parts = _native.OutgoingParts(PART_BYTES, _MAX_PARTS * pieces, _PARTS_ON_DISK)
        self._state = _State(access, pieces * PART_BYTES, self.parts)
        self._thread = threading.Thread(
            target=_send,
            args=(self.parts, self._state, folder_url),
            name="tfrfast-upload",
            daemon=True,
        )
        # The thread refers to the state, and not to this object.
        self._giving_up = weakref.finalize(self, self._state.give_up)
        self._giving_up.atexit = False
        self._thread.start()

    def await_sent(self) -> list[str]:
        """Waits until all written parts are on their way.

        Returns the URLs of the objects that will appear. Raises OSError if sending has failed.
        """
        self._state.no_more.set()
        while self._thread.is_alive():
            self._thread.join(_LOOK_MS / 1000)
        self._state.raise_failure()
        return list(self._state.uploads)

    def complete(self) -> None:
        """Makes the objects appear. Raises OSError, with the number of missing objects.

        After an interruption, `give_up` handles the other objects.
        """
        self._giving_up.detach()
        self._state.complete()

    @property
    def num_appeared(self) -> int:
        """The number of objects that have appeared."""
        return sum(each.has_appeared for each in self._state.uploads.values())

    def give_up(self) -> None:
        """Removes all sent parts, if the removal takes a few seconds.

        Objects whose last parts are on their way appear, if they take no longer. No other object
        appears.
        """
        self._giving_up.detach()
        if not self._state.give_up():
            return
        until = time.monotonic() + _PATIENCE_S
        self._thread.join(_PATIENCE_S)
        uploads = self._state.uploads.values()
        wait([each.running for each in uploads], max(0.0, until - time.monotonic()))
        for each in uploads:
            each.stop_appearing()


class _State:
    """The shared state of the thread that reads parts and the client's thread."""

    def __init__(self, access: str, part_bytes: int, parts: _native.OutgoingParts) -> None:
        self._access = access
        self._part_bytes = part_bytes
        self._parts = parts
        self._process = os.getpid()
        self._store: Store | None = None
        self.no_more = threading.Event()
        self.is_given_up = threading.Event()
        self.uploads: dict[str, _Upload] = {}
        pieces = part_bytes // PART_BYTES
        # One part is filled while another part is sent.
        self.way = PartsUnderWay(PARTS_AT_ONCE, 2 * pieces if pieces > 1 else 1)
        self._failure: OSError | None = None

    def put(self, url: str, piece: Piece) -> None:
        self._upload(url).put(piece)

    def end(self, url: str, file: str) -> None:
        self._upload(url).end(file)

    def _upload(self, url: str) -> _Upload:
        if (upload := self.uploads.get(url)) is None:
            if self._store is None:
                at_once = self.way.allowed * PART_BYTES
                self._store = writing_store(locate(url), self._access, at_once)
            upload = _Upload(url, self._access, self._store, self._part_bytes, self.way)
            self.uploads[url] = upload
            upload.running.add_done_callback(self._on_done)
            if self.is_given_up.is_set():  # the upload was given up just now
                upload.give_up()
        return upload

    def _on_done(self, running: Future[None]) -> None:
        if running.cancelled() or self.is_given_up.is_set():
            return
        if (error := running.exception()) is not None:
            self.fail(
                error
                if isinstance(error, OSError)
                else OSError(5, f"Uploading ended with {type(error).__name__}.")
            )

    def fail(self, error: OSError) -> None:
        if self._failure is None:
            self._failure = error
        self._parts.fail(str(error.strerror), error.errno or 5)

    def has_failed(self) -> bool:
        return self._failure is not None

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise OSError(self._failure.errno, self._failure.strerror)

    def complete(self) -> None:
        waiting = list(self.uploads.values())
        for first in range(0, len(waiting), _COMPLETED_AT_ONCE):
            some = waiting[first : first + _COMPLETED_AT_ONCE]
            for each in some:
                each.let_appear()
            # Ctrl-C ends the wait, and not the upload, whose parts would otherwise stay.
            while not all(each.is_over for each in some):
                wait([each.running for each in some], _LOOK_MS / 1000)
            if self._failure is not None:
                break
        missing = [each.url for each in waiting if not each.has_appeared]
        if missing:
            self.give_up()
            error = self._failure or OSError(5, f"Writing '{missing[0]}' failed.")
            raise OSError(
                error.errno,
                f"{error.strerror} {len(waiting) - len(missing)} of {len(waiting)} objects "
                f"appeared before that, and '{missing[0]}' did not.",
            )

    def give_up(self) -> bool:
        """Does not wait. False in a forked child, which has no uploads."""
        if os.getpid() != self._process:
            return False
        self.is_given_up.set()
        self.no_more.set()
        self._parts.fail("This writer was given up.", 5)
        for upload in list(self.uploads.values()):
            upload.give_up()
        return True


class _Upload:
    """An object whose parts come one by one.

    The last part stays on the disk, because in memory it would stay until the object is complete,
    once for each shard.
    """

    def __init__(
        self, url: str, access: str, store: Store, part_bytes: int, way: PartsUnderWay
    ) -> None:
        self.url = url
        self._ending = Ending(url, access)
        self._store = store
        self._way = way
        self._part_bytes = part_bytes
        self._client = use_client()  # may have replaced the client of an earlier object
        self._pieces: asyncio.Queue[Piece | None] = asyncio.Queue()
        self._last_file = ""
        self._may_complete = asyncio.Event()
        self._is_given_up = False
        self._is_appearing = False
        self.has_appeared = False
        self.running = self._client.start(self._run())

    def put(self, piece: Piece) -> None:
        self._client.call_soon(self._pieces.put_nowait, piece)

    def end(self, last_file: str) -> None:
        self._last_file = last_file
        self._client.call_soon(self._pieces.put_nowait, None)

    @property
    def is_over(self) -> bool:
        return self.running.done() or not self._client.has_thread

    def let_appear(self) -> None:
        self._client.call_soon(self._may_complete.set)

    async def _run(self) -> None:
        try:
            self.has_appeared = await put_whole(
                self._store,
                self._all_pieces(),
                self._ending,
                self._part_bytes,
                lambda: self._is_given_up,
            )
        except GivenUpError as failure:
            raise OSError(failure.number, failure.text) from None

    async def _all_pieces(self) -> AsyncIterator[Piece]:
        while (piece := await self._pieces.get()) is not None and not self._is_given_up:
            self._ending.size += len(piece)
            yield piece
            del piece  # the memory is free after sending
        if not self._is_given_up:
            await self._may_complete.wait()
            await self._ending.begin()
        await self._way.space(lambda: self._is_given_up)  # without space, the parts are removed
        self._is_appearing = True  # from here on, the parts cannot be removed
        last: Piece = np.fromfile(self._last_file, np.uint8)
        self._way.hold(last)
        self._ending.size += len(last)
        yield last

    def give_up(self) -> None:
        self._is_given_up = True
        self._client.call_soon(self._pieces.put_nowait, None)
        self._client.call_soon(self._may_complete.set)

    def stop_appearing(self) -> None:
        """Cuts off an object that would otherwise appear at any time. Its parts stay."""
        if self._is_appearing:
            self.running.cancel()


def _send(parts: _native.OutgoingParts, state: _State, folder_url: str) -> None:
    """Passes complete parts to the client's thread, until the last part."""
    try:
        while True:
            is_over = state.no_more.is_set()
            part = parts.take(_LOOK_MS)
            if part is None:
                if is_over:
                    return
                continue
            path, number, file, is_last = part
            if number == 0 and is_last:
                continue  # an object of one part
            url = f"{folder_url}/{os.path.basename(path)}"
            if is_last:
                state.end(url, file)
                continue
            if _await_space(state):
                piece = np.fromfile(file, np.uint8)
                state.way.hold(piece)
                state.put(url, piece)
                del piece
            os.unlink(file)
    except Exception as error:
        number = (error.errno or 5) if isinstance(error, OSError) else 5
        state.fail(OSError(number, f"Uploading to '{folder_url}' failed: {error}."))


def _await_space(state: _State) -> bool:
    """Waits for space. False if no more parts have to be sent."""
    while not (state.is_given_up.is_set() or state.has_failed()):
        if state.way.take_space(_LOOK_MS / 1000):
            return True
    return False
