"""One of several features, such as a camera, drawn for each step."""

from __future__ import annotations

from tfrfast.base.arguments import seed_number

__all__ = ["OneOf"]


class OneOf:
    """One of several features of a step, drawn anew for each step and epoch.

        windows = {
            "image": tfr.OneOf("steps/exterior_image_1", "steps/exterior_image_2"),
            "prompt": tfr.OneOf("steps/language_1", "steps/language_2", "steps/language_3"),
        }

    A step's Example then has the feature `image` in place of the two, and only the drawn one is
    read. The names are those of features of the steps, or of further features such as a `Later`.
    They are of one kind, and have the same window or none. The draw depends on the seed, the epoch
    of the Loader and the step's number among all steps of the files. Where there is no epoch, as in
    `steps[i]` and scans, it is 0. Choices with the same seed between as many names draw alike, such
    as an image and a depth of one camera; another seed draws others.
    """

    def __init__(self, *names: str, seed: int = 0) -> None:
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"OneOf takes names of features, not {name!r}.")
        if len(names) < 2 or len(set(names)) < len(names):
            raise ValueError("OneOf draws one of two or more different features: give their names.")
        seed_number(seed)
        self.names = names
        """The names of the features."""
        self.seed = seed
        """Another seed draws others."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneOf) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((self.names, self.seed))

    def __repr__(self) -> str:
        return f"OneOf({', '.join(map(repr, self.names))}, seed={self.seed})"
