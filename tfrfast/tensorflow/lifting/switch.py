"""Whether the parse may be taken out of map functions: for one dataset, and for the process."""

from __future__ import annotations

import os
from typing import Any

_VARIABLE = "TFRFAST_LIFT_PARSING"
_WORDS = {"": True, "1": True, "0": False}


def lifts_parsing(asked: Any) -> bool:
    """What is asked of a dataset or, if that is None, what the environment says."""
    if asked is None:
        word = os.environ.get(_VARIABLE, "")
        if word not in _WORDS:
            raise ValueError(f'{_VARIABLE} is {word!r}, but must be "0" or "1".')
        return _WORDS[word]
    if not isinstance(asked, bool):
        raise ValueError(f"lift_parsing is {asked!r}, but must be True, False or None.")
    return asked
