"""The switch of lifting: for a dataset, and for the process."""

from __future__ import annotations

import os
from typing import Any

_VARIABLE = "TFRFAST_LIFT_PARSING"
_WORDS = {"": True, "1": True, "0": False}


def lifts_parsing(asked: Any) -> bool:
    """Returns the dataset's setting or, if that is None, the environment's."""
    if asked is None:
        word = os.environ.get(_VARIABLE, "")
        if word not in _WORDS:
            raise ValueError(f'{_VARIABLE} is {word!r}, but must be "0" or "1".')
        return _WORDS[word]
    if not isinstance(asked, bool):
        raise ValueError(f"lift_parsing is {asked!r}, but must be True, False or None.")
    return asked
