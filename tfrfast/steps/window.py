"""The steps around a step that its Example holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfrfast.base.arguments import integer
from tfrfast.base.refused_arguments import refuse_wrong_fields

__all__ = ["Window"]

_FARTHEST = 1 << 20


@dataclass(frozen=True)
class Window:
    """A feature's values of the steps around a step, in the order of the episode.

        windows = {"steps/action": tfr.Window(after=15), "steps/image": tfr.Window(before=1)}

    A step's Example then holds 16 actions and two images, and the features `steps/action/valid` and
    `steps/image/valid`: 1 for each real step and 0 for each step beyond an end of the episode.
    """

    before: int = 0
    """The number of earlier steps."""
    after: int = 0
    """The number of later steps."""
    stride: int = 1
    """The distance of neighbouring steps of the window."""
    pad: Literal["repeat", "zeros"] | None = "repeat"
    """The substitute for steps beyond the ends: "repeat" takes the first or last step, "zeros"
    takes zeros or empty byte strings. None leaves out steps whose window passes an end, and does
    not count them.
    """

    def __post_init__(self) -> None:
        refuse_wrong_fields(self)
        for name, least in (("before", 0), ("after", 0), ("stride", 1)):
            integer(name, getattr(self, name), least, _FARTHEST)
