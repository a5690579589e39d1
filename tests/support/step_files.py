"""Episodes whose steps are numbered through all episodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tfrfast as tfr

FEATURES = {
    "steps/n": tfr.FixedLen((), "int64"),
    "steps/a": tfr.FixedLen((4, 2), "float32"),
    "steps/image": tfr.FixedLen((), "bytes"),
}
LENGTHS = (30, 1, 0, 69)


def image_of(number: int) -> bytes:
    return b"%d." % number * 40


def write_episodes(path: Path, lengths: Sequence[int] = LENGTHS, first: int = 0) -> str:
    with tfr.Writer(str(path)) as writer:
        for count in lengths:
            numbers = np.arange(first, first + count)
            made: dict[str, Any] = {
                "steps/n": numbers,
                "steps/a": np.repeat(numbers, 2).astype(np.float32),
                "steps/image": [image_of(each) for each in numbers],
                "id": [7],
            }
            writer.write(tfr.encode_example({k: v for k, v in made.items() if len(v)}))
            first += count
    return str(path)


def open_steps(path: Path, lengths: Sequence[int] = LENGTHS, first: int = 0) -> tfr.Steps:
    """Writes episodes, and opens their steps with the actions of the next three steps."""
    name = write_episodes(path, lengths, first)
    return tfr.Steps(name, along="steps/", windows={"steps/a": tfr.Window(after=3)})


def numbers_in(batch: Any) -> list[int]:
    """Returns the numbers of a batch's steps. Checks that the other columns fit the numbers."""
    numbers = [int(each) for each in batch["steps/n"]]
    actions = [np.asarray(each, object).reshape(-1)[0] for each in batch["steps/a"]]
    assert [float(np.ravel(each)[0]) for each in actions] == numbers
    assert [bytes(each) for each in batch["steps/image"]] == [image_of(n) for n in numbers]
    return numbers
