"""Which steps around one its Example holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfrfast.base.arguments import integer

__all__ = ["Window"]

_FARTHEST = 1 << 20


@dataclass(frozen=True)
class Window:
    """Of a feature, the values of steps around a step, in the order of the episode.

        windows = {"steps/action": tfr.Window(after=15), "steps/image": tfr.Window(before=1)}

    A step's Example then holds 16 actions and two images, and the features
    `steps/action/valid` and `steps/image/valid`: 1 for each real step and 0 for each that stands
    for one beyond an end of the episode.
    """

    before: int = 0
    """How many earlier steps."""
    after: int = 0
    """How many later ones."""
    stride: int = 1
    """How many steps each is from the next."""
    pad: Literal["repeat", "zeros"] | None = "repeat"
    """What stands for steps beyond the ends: the first or last step, zeros (empty byte strings), or
    with None nothing: steps that would need them are left out and not counted."""

    def __post_init__(self) -> None:
        for name, least in (("before", 0), ("after", 0), ("stride", 1)):
            integer(name, getattr(self, name), least, _FARTHEST)
        if self.pad not in ("repeat", "zeros", None):
            raise ValueError(f'pad must be "repeat", "zeros" or None, not {self.pad!r}.')
