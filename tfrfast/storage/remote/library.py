"""obstore, which makes the requests, with threads that are not Python's.

A forked child lacks these threads, so it loads a copy of the library. A thread that takes the GIL
while Python ends is made to exit, inside code that cannot be unwound, and the whole program aborts.
So the event loop knows which calls the threads still have to make.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextvars import Context
from typing import Any

#: The call that obstore makes when a future is done, to check for cancellation.
_CALLBACK = "PyDoneCallback"
#: The time from a thread's last call into Python until it has released the GIL: microseconds, but
#: on a busy machine the thread waits for a processor.
_LAST_STEPS_S = 0.03
#: After this time the GIL is released.
_LONG_AGO_S = 5.0
_BETWEEN_LOOKS_S = 0.002

#: True if this process was forked from a process that had used obstore, whose threads a child
#: lacks.
_is_inherited = False
_loaded: Any = None

INSTALL = "pip install obstore"


def obstore() -> Any:
    """Returns the native module of obstore that works in this process.

    Raises ModuleNotFoundError with the command that installs it.
    """
    global _loaded, _is_inherited
    if _loaded is None:
        try:
            module: Any = importlib.import_module("obstore._obstore")
        except ModuleNotFoundError as error:
            if error.name not in ("obstore", "obstore._obstore"):
                raise
            raise ModuleNotFoundError(
                f"Reading s3://, gs://, az://, hf:// and https:// needs obstore: {INSTALL}",
                name="obstore",
            ) from None
        _loaded = _own_copy(module) if _is_inherited else module
        _is_inherited = False
    return _loaded


def renew_in_child() -> None:
    """Called in a forked child, where calls of the parent's library would wait forever."""
    global _loaded, _is_inherited
    _is_inherited = _is_inherited or _loaded is not None or "obstore._obstore" in sys.modules
    _loaded = None


def _own_copy(module: Any) -> Any:
    """Loads the same library from a copy of its file, with threads and connections of its own."""
    descriptor, path = tempfile.mkstemp(suffix=os.path.basename(module.__file__))
    try:
        with open(module.__file__, "rb") as source, os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(source, copy)
        # The copy may register itself as a module in the place of the parent's.
        before = {name: each for name, each in sys.modules.items() if name.startswith("obstore")}
        spec = importlib.util.spec_from_file_location("obstore._obstore", path)
        assert spec is not None
        assert spec.loader is not None
        own = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(own)
        sys.modules.update(before)
        return own
    except (OSError, ImportError) as error:
        raise RuntimeError(
            "This process was forked from a process that had read from a network, and cannot load "
            f"a copy of obstore ({error}). Start it with multiprocessing's 'spawn' or 'forkserver'."
        ) from error
    finally:
        os.unlink(path)


class ClientLoop(asyncio.SelectorEventLoop):
    """Each future of obstore is due until a thread of obstore has handed in the result, or has seen
    the cancellation.
    """

    def __init__(self) -> None:
        super().__init__()
        self._due: set[Any] = set()
        self._last_heard = -_LONG_AGO_S

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(self)

    def expect(self, future: Any) -> None:
        self._due.add(future)

    def heard_of(self, future: Any) -> None:
        self._due.discard(future)
        self._last_heard = time.monotonic()

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        try:
            return super().call_soon_threadsafe(callback, *args, context=context)
        finally:
            # obstore passes the future as the first argument.
            if args and isinstance(args[0], _Future):
                self.heard_of(args[0])

    def wait_until_silent(self, patience_s: float) -> bool:
        """Waits until no thread of obstore will call Python again. False if one may."""
        until = time.monotonic() + patience_s
        while self._due and time.monotonic() < until:
            time.sleep(_BETWEEN_LOOKS_S)
        if time.monotonic() - self._last_heard < _LONG_AGO_S:
            time.sleep(_LAST_STEPS_S)
        return not self._due


class _Future(asyncio.Future):  # type: ignore[type-arg]
    def __init__(self, loop: ClientLoop) -> None:
        super().__init__(loop=loop)
        self._client_loop = loop
        self._home = threading.get_ident()

    def add_done_callback(
        self, callback: Callable[[Any], object], *, context: Context | None = None
    ) -> None:
        if type(callback).__name__ == _CALLBACK:
            self._client_loop.expect(self)
        super().add_done_callback(callback, context=context)

    def cancelled(self) -> bool:
        is_cancelled = super().cancelled()
        if is_cancelled and threading.get_ident() != self._home:
            self._client_loop.heard_of(self)
        return is_cancelled
