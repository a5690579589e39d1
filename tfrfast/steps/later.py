"""A step later in the episode, such as a goal."""

from __future__ import annotations

from dataclasses import dataclass

from tfrfast.base.arguments import integer, seed_number

__all__ = ["FARTHEST", "Later"]

FARTHEST = 1 << 30


@dataclass(frozen=True)
class Later:
    """Of a feature, the values of one later step of the episode, drawn for each step.

        windows = {"goal/image": tfr.Later("steps/image", seed=7)}

    A step's Example then has a further feature `goal/image`. `goal/image/valid` is 1 if there is
    such a step, and 0 if the episode's last step stands for one beyond the end. The draw depends on
    the seed and the step's number among all steps of the files, and on nothing else. So a step is
    the same in each epoch and process, and features with one seed are of one later step.
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
        if not isinstance(self.of, str):
            raise TypeError(f"of must be the name of a feature, not {self.of!r}.")
        seed_number(self.seed)
        least = integer("min_steps", self.min_steps, 0, FARTHEST)
        if self.max_steps is not None:
            integer("max_steps", self.max_steps, least, FARTHEST)
