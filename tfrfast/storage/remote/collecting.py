"""A watch on the garbage collector, which may run in the request thread.

A finaliser that waits for a request would wait there forever. An abandoned tf.data iterator has
such a finaliser, which waits for the reads of the iterator's threads.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

# If another thread has looked this many times, and the collection still runs, it is waiting.
_LOOKS = 10
_BETWEEN_LOOKS_S = 0.1


class CollectionWatch:
    """Calls `on_stuck`, in a thread of its own, when a collection in `thread` does not end."""

    def __init__(self, thread: threading.Thread, on_stuck: Callable[[], None]) -> None:
        self._watched = thread.ident
        self._on_stuck = on_stuck
        # True at the beginning of a collection, False at its end, None at the end of the watch. A
        # finaliser may put an entry at any time.
        self._events: SimpleQueue[bool | None] = SimpleQueue()
        gc.callbacks.append(self._note)
        self._thread = threading.Thread(target=self._run, name="tfrfast-watch", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Ends the watch. Call it also in a forked child, which lacks the watching thread."""
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
