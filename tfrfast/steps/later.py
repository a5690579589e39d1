"""A step later in the episode, such as a goal."""

from __future__ import annotations

from dataclasses import dataclass

from tfrfast.base.arguments import integer, seed_number
from tfrfast.base.refused_arguments import refuse_wrong_fields

__all__ = ["FARTHEST", "Later"]

FARTHEST = 1 << 30


@dataclass(frozen=True)
class Later:
    """A feature's values at one later step of the episode, which is drawn for each step.

        windows = {"goal/image": tfr.Later("steps/image", seed=7)}

    A step's Example then has a further feature `goal/image`. `goal/image/valid` is 1 if the drawn
    step exists. It is 0 if the drawn step lies beyond the episode: then the episode's last step
    stands in. The draw depends only on the seed and on the step's number among all steps of the
    files. So a step is the same in each epoch and process, and features with the same seed come
    from the same later step.
    """

    of: str
    """The name of the feature."""
    seed: int
    """Another seed draws other steps."""
    min_steps: int = 1
    """The smallest distance in steps."""
    max_steps: int | None = None
    """The largest distance in steps; None reaches to the end of the episode."""

    def __post_init__(self) -> None:
        refuse_wrong_fields(self)
        seed_number(self.seed)
        least = integer("min_steps", self.min_steps, 0, FARTHEST)
        if self.max_steps is not None:
            integer("max_steps", self.max_steps, least, FARTHEST)
