"""Objects that appear under their names whole, or not at all, from files or growing shards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, wait
from typing import Any

import numpy as np

from tfrfast import _native
from tfrfast.storage.remote.client import use_client
from tfrfast.storage.remote.failures import GivenUpError
from tfrfast.storage.remote.library import obstore
from tfrfast.storage.remote.objects import failed_upload, head
from tfrfast.storage.remote.pace import FIRST_PARTS, PartsUnderWay, Piece
from tfrfast.storage.remote.stores import Store, writing_store
from tfrfast.storage.remote.urls import locate

#: The size of a part of an upload, unless the object would have too many parts.
PART_BYTES = 8 << 20
_MAX_PARTS = 9_999
#: The number of parts that are in memory and on their way at the same time.
PARTS_AT_ONCE = 16
#: Complete parts on the disk, besides an unfinished part of each object.
_PARTS_ON_DISK = 16
#: A single object gets larger parts, because storages limit their number.
_MOST_PIECES = 8
_OBJECTS_AT_ONCE = 16
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
    way = PartsUnderWay(PARTS_AT_ONCE)
    rest = iter(files.items())

    async def work_off() -> None:
        for url, path in rest:
            if given_up.is_set():
                return
            await _upload_file(url, path, access, way, given_up.is_set)

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


async def _upload_file(
    url: str, path: str, access: str, way: PartsUnderWay, is_given_up: Callable[[], bool]
) -> None:
    size = os.path.getsize(path)
    part_bytes = max(PART_BYTES, -(-size // _MAX_PARTS))
    ending = _Ending(url, access, size)

    async def pieces() -> AsyncIterator[Piece]:
        with open(path, "rb") as file:
            for at in range(0, max(size, 1), part_bytes):
                await way.space(is_given_up)
                if at + part_bytes >= size:
                    await ending.begin()
                piece: Piece = np.fromfile(file, np.uint8, part_bytes)
                way.hold(piece)
                yield piece
                del piece  # its memory is free when it has been sent

    store = writing_store(locate(url), access, FIRST_PARTS * part_bytes)
    await _put_whole(store, pieces(), ending, part_bytes, is_given_up, size > part_bytes)


async def _put_whole(
    store: Store,
    pieces: AsyncIterator[Piece],
    ending: _Ending,
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
        has_come = await ending.has_come()
        if has_come:
            return True
        if is_given_up():
            return False
        then = "Nothing appeared under that name."
        if has_come is None:
            then = "Whether it appeared under that name is not known: look before you repeat it."
        raise failed_upload(f"Writing '{ending.url}'", error, store, then) from None
    return True


class _Ending:
    """Tells whether an upload has made its object appear, though the answer was lost."""

    def __init__(self, url: str, access: str, size: int = 0) -> None:
        self.url = url
        self._access = access
        self.size = size
        self._before: Any = None
        self._has_begun = False
        self._is_compared = False

    async def begin(self) -> None:
        """Examines the current object. From now on, the new object may appear."""
        self._has_begun = True
        with contextlib.suppress(GivenUpError):
            self._before = await self._look()
            self._is_compared = True

    async def has_come(self) -> bool | None:
        """True if a new object of that size has appeared, None if nobody knows."""
        if not self._has_begun:
            return False
        try:
            now = await self._look()
        except GivenUpError:
            return None
        if now is None or now[0] != self.size:
            return False
        return now != self._before if self._is_compared else None

    async def _look(self) -> Any:
        meta = await head(self.url, self._access)
        if meta is None:
            return None
        return tuple(meta.get(name) for name in ("size", "e_tag", "version", "last_modified"))


class StreamedUploads:
    """Sends the parts that writers complete, and removes them from the disk.

    No object appears before `complete`. The caller handles an object of one part, whose file stays
    under its path, and calls `begin_giving_up` if it forgets these uploads.
    """

    def __init__(self, folder_url: str, access: str, num_objects: int) -> None:
        pieces = max(1, _MOST_PIECES // num_objects)
        self.parts = _native.OutgoingParts(PART_BYTES, _MAX_PARTS * pieces, _PARTS_ON_DISK)
        self._folder_url = folder_url
        self._access = access
        self._part_bytes = pieces * PART_BYTES
        # A part is filled while another part is sent, even if all objects have unfinished parts.
        least = pieces + max(pieces, num_objects * (pieces - 1)) if pieces > 1 else 1
        self._way = PartsUnderWay(PARTS_AT_ONCE, least)
        self._store: Store | None = None
        self._uploads: dict[str, _Upload] = {}
        self._failure: OSError | None = None
        self._is_all = threading.Event()
        self._given_up = threading.Event()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._send, name="tfrfast-upload", daemon=True)
        self._thread.start()

    def await_sent(self) -> list[str]:
        """Waits until all written parts are on their way.

        Returns the URLs of the objects that will appear. Raises OSError if sending has failed.
        """
        self._is_all.set()
        while self._thread.is_alive():
            self._thread.join(_LOOK_S)
        if self._failure is not None:
            raise OSError(self._failure.errno, self._failure.strerror)
        return list(self._uploads)

    def complete(self) -> None:
        """Makes the objects appear. Raises OSError, with the number of missing objects.

        After an interruption or an error, `give_up` handles the other objects.
        """
        waiting = list(self._uploads.values())
        for first in range(0, len(waiting), _OBJECTS_AT_ONCE):
            some = waiting[first : first + _OBJECTS_AT_ONCE]
            for each in some:
                each.let_appear()
            # Ctrl-C ends the wait, and not the upload, whose parts would otherwise stay.
            while not all(each.is_over for each in some):
                wait([each.running for each in some], _LOOK_S)
            if self._failure is not None:
                break
        missing = [each.url for each in waiting if not each.has_appeared]
        if missing:
            error = self._failure or OSError(5, f"Writing '{missing[0]}' failed.")
            raise OSError(
                error.errno,
                f"{error.strerror} {len(waiting) - len(missing)} of {len(waiting)} objects "
                f"appeared before that, and '{missing[0]}' did not.",
            )

    @property
    def num_appeared(self) -> int:
        """The number of objects that have appeared."""
        return sum(each.has_appeared for each in self._uploads.values())

    def give_up(self) -> None:
        """Removes all sent parts, if the removal takes a few seconds.

        Objects whose last parts are on their way appear, if they take no longer. No other object
        appears.
        """
        if os.getpid() != self._process:
            return
        self.begin_giving_up()
        until = time.monotonic() + _PATIENCE_S
        self._thread.join(_PATIENCE_S)
        uploads = self._uploads.values()
        wait([each.running for each in uploads], max(0.0, until - time.monotonic()))
        for each in uploads:
            each.stop_appearing()

    def begin_giving_up(self) -> None:
        """Does not wait. Does nothing in a forked child, which has no uploads."""
        if os.getpid() != self._process:
            return
        self._given_up.set()
        self._is_all.set()
        self.parts.fail("This writer was given up.", 5)
        for upload in list(self._uploads.values()):
            upload.give_up()

    def _send(self) -> None:
        """Passes complete parts to the client's thread, until the last part."""
        try:
            while True:
                is_over = self._is_all.is_set()
                part = self.parts.take(round(1000 * _LOOK_S))
                if part is not None:
                    self._send_part(*part)
                elif is_over:
                    return
        except Exception as error:
            number = (error.errno or 5) if isinstance(error, OSError) else 5
            self._fail(OSError(number, f"Uploading to '{self._folder_url}' failed: {error}."))

    def _send_part(self, path: str, number: int, file: str, is_last: bool) -> None:
        if number == 0 and is_last:
            return  # an object of one part
        upload = self._upload_to(f"{self._folder_url}/{os.path.basename(path)}")
        if is_last:
            upload.end(file)
            return
        while not (self._given_up.is_set() or self._failure is not None):
            if self._way.take_space(_LOOK_S):
                piece = np.fromfile(file, np.uint8)
                self._way.hold(piece)
                upload.put(piece)
                break
        os.unlink(file)

    def _upload_to(self, url: str) -> _Upload:
        if (upload := self._uploads.get(url)) is None:
            if self._store is None:
                at_once = self._way.allowed * PART_BYTES
                self._store = writing_store(locate(url), self._access, at_once)
            upload = _Upload(url, self._access, self._store, self._part_bytes, self._way)
            self._uploads[url] = upload
            upload.running.add_done_callback(self._on_done)
            if self._given_up.is_set():  # the upload was given up just now
                upload.give_up()
        return upload

    def _on_done(self, running: Future[None]) -> None:
        if running.cancelled() or self._given_up.is_set():
            return
        if (error := running.exception()) is not None:
            self._fail(
                error
                if isinstance(error, OSError)
                else OSError(5, f"Uploading ended with {type(error).__name__}.")
            )

    def _fail(self, error: OSError) -> None:
        self._failure = self._failure or error
        self.parts.fail(str(error.strerror), error.errno or 5)


class _Upload:
    """An object whose parts come one by one.

    The last part stays on the disk, because in memory it would stay until the object is complete,
    once for each shard.
    """

    def __init__(
        self, url: str, access: str, store: Store, part_bytes: int, way: PartsUnderWay
    ) -> None:
        self.url = url
        self._ending = _Ending(url, access)
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
            self.has_appeared = await _put_whole(
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
