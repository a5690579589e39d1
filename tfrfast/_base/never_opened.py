"""What an object holds whose constructor raised: Python can still hold the object, in a traceback."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["NEVER_OPENED"]


class _NeverOpened:
    closed = True

    def __getattr__(self, _: str) -> NoReturn:
        raise ValueError("This object was never opened: its constructor raised.")

    def __call__(self, *_: object) -> NoReturn:
        raise ValueError("This object was never opened: its constructor raised.")


#: In place of a native object, or of one's function, until there is one.
NEVER_OPENED: Any = _NeverOpened()
