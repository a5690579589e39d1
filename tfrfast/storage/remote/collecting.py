"""A watch on the garbage collector, which may run in the thread that makes requests.

A finaliser that waits for a request would wait there forever. A tf.data iterator that was abandoned
has such a one: it ends when its threads have finished what they are reading.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

# A collection that lets other threads run for so long, and does not end, is waiting.
_LOOKS = 10
_BETWEEN_LOOKS_S = 0.1


class CollectionWatch:
    """Calls `on_stuck`, in a thread of its own, when a collection in `thread` does not end."""

    def __init__(self, thread: threading.Thread, on_stuck: Callable[[], None]) -> None:
        self._watched = thread.ident
        self._on_stuck = on_stuck
        # When one begins and ends: True and False, and None when the watch ends. A finaliser may
        # put something in at any time.
        self._events: SimpleQueue[bool | None] = SimpleQueue()
        gc.callbacks.append(self._note)
        self._thread = threading.Thread(target=self._run, name="tfrfast-watch", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Ends the watch. Call it also in a forked child, which has no such thread."""
        with contextlib.suppress(ValueError):
            gc.callbacks.remove(self._note)
        self._events.put(None)

    def wait_for_end(self, timeout_s: float) -> None:
        if self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def _note(self, phase: str, _: dict[str, int]) -> None:
        if threading.get_ident() == self._watched:
            self._events.put(phase == "start")

    def _run(self) -> None:
        while (has_begun := self._events.get()) is not None:
            if has_begun and self._never_ends():
                self._on_stuck()

    def _never_ends(self) -> bool:
        for _ in range(_LOOKS):
            try:
                event = self._events.get(timeout=_BETWEEN_LOOKS_S)
            except Empty:
                continue
            if event is None:
                self._events.put(None)
            return False
        return True
