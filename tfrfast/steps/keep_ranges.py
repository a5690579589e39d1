"""Ranges of steps to keep, by the name of their episode."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.columns.batch import Batch

__all__ = ["keep_ranges"]

_DROID = ("episode_metadata/recording_folderpath", "episode_metadata/file_path")


@explains_arguments
def keep_ranges(
    ranges: str | os.PathLike[str] | Mapping[str, Sequence[Sequence[int]]],
    *,
    names: Sequence[str] = _DROID,
    separator: str = "--",
) -> Callable[[Batch], npt.NDArray[np.bool_]]:
    """Returns a function for `Steps(only=)` that keeps the steps in some ranges of their episode.

        only = tfr.keep_ranges("keep_ranges_1_0_1.json")
        steps = tfr.tfds("droid/1.0.1", split="train").steps(only=only)

    Episodes that the table does not name are left out, like all steps outside of its ranges.

    Args:
      ranges: ranges by episode, or a JSON file of them, as openpi has for idle frames:
        `{"episode": [[first, end], ...]}`. Steps count from 0 in their episode, and `end` is left
        out.
      names: the features that name an episode, by default those of DROID.
      separator: stands between the values of several features.
    """
    if isinstance(ranges, Mapping):
        table = dict(ranges)
    else:
        path = os.fspath(ranges)
        with open(path, encoding="utf-8") as file:
            try:
                table = json.load(file)
            except ValueError as error:
                raise ValueError(
                    f"{path!r} is no JSON file of ranges by episode: {error}."
                ) from None
    bounds = {episode: np.array(each, np.int64).reshape(-1, 2) for episode, each in table.items()}

    def only(batch: Batch) -> npt.NDArray[np.bool_]:
        columns: list[Any] = [batch[name] for name in names]
        kept = np.zeros(len(batch.indices), np.bool_)
        starts = np.flatnonzero(np.diff(batch.episodes, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(kept)], strict=True):
            parts = [column[start] for column in columns]
            episode = separator.join(part.decode() for part in parts)
            for first, last in bounds.get(episode, ()):
                steps = batch.steps[start:end]
                kept[start:end] |= (steps >= first) & (steps < last)
        return kept

    return only
