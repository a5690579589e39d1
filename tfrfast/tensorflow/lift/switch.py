"""The switch of lifting for a process."""

from __future__ import annotations

import os

_VARIABLE = "TFRFAST_LIFT_PARSING"
_WORDS = {"": "", "1": "", "0": f"{_VARIABLE} is 0"}


def why_unlifted() -> str:
    """Returns why the environment lets no parse be lifted; "" if it does."""
    word = os.environ.get(_VARIABLE, "")
    if word not in _WORDS:
        raise ValueError(f'{_VARIABLE} is {word!r}, but must be "0" or "1".')
    return _WORDS[word]
