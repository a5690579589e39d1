"""Reports the treatment of each dataset at the end of the program, on request."""

from __future__ import annotations

import atexit
import os
import sys
from types import FrameType
from typing import Any

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.explaining import text_of

_SWITCH = "TFRFAST_EXPLAIN"
_PLACE = "_tfrfast_built_at"
_NOT_THE_USERS = ("tensorflow", "tfrfast", "keras", "importlib", "contextlib", "functools")
_told: dict[str, str] = {}
_begun = False


def begin() -> None:
    """Lets datasets keep the line that built them from now on, if a report is requested."""
    global _begun
    if _begun or os.environ.get(_SWITCH) != "1":
        return
    _begun = True
    plain = internals.Dataset.__init__

    def note_line(self: Any, *arguments: Any, **named: Any) -> None:
        vars(self)[_PLACE] = _users_line()
        plain(self, *arguments, **named)

    internals.Dataset.__init__ = note_line
    atexit.register(_tell)


def note(dataset: Any, faster: Any, why_not: str) -> None:
    """Notes a dataset's treatment before its iteration. `faster` is None without acceleration."""
    if not _begun:
        return
    place = vars(dataset).get(_PLACE, "a dataset")
    text = f"  TensorFlow's: {why_not or 'nothing is gained'}\n" if faster is None else ""
    try:
        text += text_of(dataset if faster is None else faster)
    except Exception as error:  # a failing report must not end the program
        text += f"  not explained: {error}"
    _told.setdefault(place, text)


def _users_line() -> str:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in _NOT_THE_USERS:
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "a dataset"


def _tell() -> None:
    lines = [f"{place}\n{text}" for place, text in _told.items()]
    if lines and sys.stderr is not None:
        print("tfrfast: the treatment of each dataset", *lines, sep="\n", file=sys.stderr)
