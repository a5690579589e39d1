"""Whether the parse may be taken out of map functions: for one dataset, and for the process."""

from __future__ import annotations

import os
from typing import Any, Literal

#: "exact": only where results have the same bits.
LiftParsing = bool | Literal["exact"]

_VARIABLE = "TFRFAST_LIFT_PARSING"
_WORDS: dict[str, LiftParsing] = {"": True, "1": True, "0": False, "exact": "exact"}


def lifts_parsing(asked: Any) -> LiftParsing:
    """What is asked of a dataset or, if that is None, what the environment says."""
    if asked is None:
        word = os.environ.get(_VARIABLE, "")
        if word not in _WORDS:
            raise ValueError(f'{_VARIABLE} is {word!r}, but must be "0", "1" or "exact".')
        return _WORDS[word]
    if not isinstance(asked, bool) and asked != "exact":
        raise ValueError(f'lift_parsing is {asked!r}, but must be True, False, "exact" or None.')
    known: LiftParsing = asked
    return known
