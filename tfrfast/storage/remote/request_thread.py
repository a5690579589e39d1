"""The thread that makes requests for the core. The core waits without running Python."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from ctypes import byref
from typing import Any, TypeVar

import numpy as np

from tfrfast.storage.remote import answers, failures, interrupts
from tfrfast.storage.remote.collecting import CollectionWatch
from tfrfast.storage.remote.library import ClientLoop
from tfrfast.storage.remote.table import ClientFacts, ClientRequest, ClientTable

Answer = TypeVar("Answer")

#: The number of simultaneous requests of the whole process.
_MAX_RUNNING = 128
_PATIENCE_S = 0.1
_DEATH_S = 5.0
# A generous limit for busy machines. A thread that still runs when Python ends would abort the
# process.
_EXIT_S = 10.0
_SILENCE_S = 2.0
# If a library has not returned this long after Ctrl-C, it is assumed to wait for requests.
_INTERRUPT_S = 0.3
# The library's requests then fail for this long, because the library may have to end other waits.
_INTERRUPTION_S = 1.0
_INTERRUPTED = b"Ctrl-C ended the wait for it."
_ENDED = "the thread that makes requests has ended, because the program is ending."
_DIED = "the thread that makes requests has died. Start the program again."


class Client:
    """A thread with an event loop, which serves the exchanges of all libraries with the core.

    If the thread is stuck in a garbage collection, another thread calls `replace` with this client.
    """

    def __init__(self, replace: Callable[[Client], None]) -> None:
        self._loop = ClientLoop()
        self._served: dict[int, ClientTable] = {}
        self._running: dict[tuple[int, int], asyncio.Task[None]] = {}
        self._interruptible: set[int] = set()
        self._signals: int | None = None
        self._is_ending = False
        self._is_given_up = False
        self._thread = threading.Thread(target=self._run, name="tfrfast-remote", daemon=True)
        self._thread.start()
        self._watch = CollectionWatch(self._thread, lambda: replace(self))

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and not (self._is_ending or self._is_given_up)

    @property
    def has_thread(self) -> bool:
        return self._thread.is_alive()

    def wait_for_death(self) -> None:
        """Waits for the thread's end. An ending thread would end its successor's exchanges."""
        if self._thread is not threading.current_thread():
            self._thread.join(_DEATH_S)

    def serve(self, address: int) -> None:
        """Serves the exchange of the table from now on. Does not wait."""
        if address in self._served:
            return
        table = ClientTable.from_address(address)
        descriptor = table.begin()
        if descriptor < 0:
            raise OSError("A pipe could not be made. Raise the limit of open files (`ulimit -n`).")
        self._served[address] = table
        self._loop.call_soon_threadsafe(self._listen, descriptor, address)
        if not self._thread.is_alive():  # the thread has just ended
            self._end_serving()

    def end_at_interrupts(self, address: int, descriptor: int) -> None:
        """Fails the requests of that table if the main thread waits for a request at Ctrl-C."""
        self._interruptible.add(address)
        if self._signals != descriptor:
            self._signals = descriptor
            self.call_soon(self._loop.add_reader, descriptor, self._on_signal, descriptor)

    def _on_signal(self, descriptor: int) -> None:
        if interrupts.is_raised(descriptor):
            self._loop.call_later(_INTERRUPT_S, self._interrupt, interrupts.place_of_main_thread())

    def _interrupt(self, place: tuple[int, int] | None) -> None:
        if place is None or place != interrupts.place_of_main_thread():
            return  # the thread knows already
        self._refuse_until(self._loop.time() + _INTERRUPTION_S, place)

    def _refuse_until(self, end: float, place: tuple[int, int] | None) -> None:
        if self._loop.time() > end and place != interrupts.place_of_main_thread():
            return
        for address, number in list(self._running):
            if address in self._interruptible and address in self._served:
                self._served[address].fail(number, failures.UNREADABLE, errno.EINTR, _INTERRUPTED)
                self._running[address, number].cancel()
        self._loop.call_later(_PATIENCE_S, self._refuse_until, end, place)

    def _listen(self, descriptor: int, address: int) -> None:
        if not self._is_ending:  # a child that ends at once has closed the loop
            with contextlib.suppress(OSError):
                self._loop.add_reader(descriptor, self._on_ready, address)

    def give_up(self) -> None:
        """Leaves all open requests to a successor, and ends when possible."""
        self._is_given_up = True
        self._served = {}  # the thread may be iterating over the old dict
        if self._signals is not None:
            self.call_soon(self._loop.remove_reader, self._signals)
        self._loop.call_soon_threadsafe(self._end_when_idle)

    def _end_when_idle(self) -> None:
        if asyncio.all_tasks(self._loop):
            self._loop.call_later(_PATIENCE_S, self._end_when_idle)
        else:
            self._loop.stop()

    def forget(self) -> None:
        """Called in a forked child, which has none of the parent's threads."""
        self._watch.end()

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Runs `work` in the client's thread and waits for the result. Ctrl-C ends both.

        Raises OSError for a failed request, and ValueError for one without a meaning.
        """
        future = self.start(work)
        try:
            while True:
                with contextlib.suppress(FutureTimeoutError):  # not TimeoutError in Python 3.10
                    return future.result(_PATIENCE_S)
                if future.done():
                    return future.result()
                if not self._thread.is_alive():
                    raise RuntimeError(f"Requests cannot be made: {_DIED}")
        except failures.GivenUpError as failure:
            raise failure.for_users() from None
        except BaseException:
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, Answer]) -> Future[Answer]:
        """Runs `work` in the client's thread, and does not wait."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> None:
        """Calls a function in the client's thread, unless the thread is ending."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def end(self) -> None:
        """Ends all requests, their waits, and the thread."""
        self._is_ending = True
        for table in list(self._served.values()):
            table.end(_ENDED.encode())
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._watch.end()
        self._watch.wait_for_end(_EXIT_S)
        self._thread.join(_EXIT_S)
        self._loop.wait_until_silent(_SILENCE_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._end_serving()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
        finally:
            self._end_serving()
            self._watch.end()

    def _end_serving(self) -> None:
        """Ends all waits for the thread after its end for any reason."""
        why = _ENDED if self._is_ending else _DIED
        self._is_ending = True
        for table in list(self._served.values()):
            table.end(why.encode())
        self._served.clear()

    def _on_ready(self, address: int) -> None:
        if (table := self._served.get(address)) is None:
            return
        table.acknowledge()
        while number := table.take_abandoned():
            if (task := self._running.get((address, number))) is not None:
                task.cancel()
        self._take(address)

    def _take(self, address: int) -> None:
        if (table := self._served.get(address)) is None:
            return
        request = ClientRequest()
        while (
            not self._is_given_up
            and len(self._running) < _MAX_RUNNING
            and table.take(byref(request))
        ):
            key = (address, request.number)
            # The next take() overwrites the request.
            names = (os.fsdecode(request.url), request.access.decode(), request.version.decode())
            answering = _answer(table, request.number, *names, request.offset, request.bytes)
            self._running[key] = task = self._loop.create_task(answering)
            task.add_done_callback(lambda each, key=key: self._on_done(key, each))  # type: ignore[misc]

    def _on_done(self, key: tuple[int, int], task: asyncio.Task[None]) -> None:
        del self._running[key]
        address, number = key
        if task.cancelled() and address in self._served:
            # A task that was cancelled before its beginning has reported nothing. The core keeps
            # the task's memory.
            self._served[address].fail(number, failures.UNREADABLE, errno.ECANCELED, b"Cancelled.")
        if not self._is_ending:
            for address in list(self._served):
                self._take(address)


async def _answer(
    table: ClientTable,
    number: int,
    url: str,
    access: str,
    version: str,
    offset: int,
    count: int,
) -> None:
    try:
        if count:

            def put(at: int, chunk: Any) -> None:
                array = np.frombuffer(chunk, np.uint8)
                table.receive(number, at, array.__array_interface__["data"][0], len(array))

            await answers.read(url, access, version, offset, count, put)
        else:
            facts = await answers.examine(url, access)
            table.finish_facts(number, byref(in_the_table(facts)), facts.encode().encode())
    except failures.GivenUpError as failure:
        table.fail(number, failure.code, failure.number, failure.text.encode())
    except BaseException as error:
        # A thread waits, so any error is reported. Its text may hold secrets, so it is not shown.
        what = f"Reading '{url}' ended with {type(error).__name__}."
        table.fail(number, failures.UNREADABLE, 5, what.encode())
        if not isinstance(error, Exception):
            raise


def in_the_table(facts: answers.Facts) -> ClientFacts:
    found = ClientFacts(facts.size, facts.modified_s * 1_000_000_000)
    found.version[:] = facts.words()
    found.version_lasts = bool(facts.etag)
    return found
