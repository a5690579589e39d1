"""What an object holds before it is open. If its constructor raises, a traceback may keep it."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["NEVER_OPENED"]


class _NeverOpened:
    closed = True

    def __getattr__(self, _: str) -> NoReturn:
        raise ValueError("This object was never opened: its constructor raised.")

    def __call__(self, *_: object) -> NoReturn:
        raise ValueError("This object was never opened: its constructor raised.")


#: Stands for a native object, or for a function of one, until there is one.
NEVER_OPENED: Any = _NeverOpened()
