"""Ranges of steps to keep, by the name of their episode."""

from __future__ import annotations

import json
import os
import reprlib
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
    if isinstance(names, str):
        raise TypeError(f"names takes a list of features, not {names!r}.")
    path = "ranges"
    table: Any = ranges
    if not isinstance(ranges, Mapping):
        path = os.fspath(ranges)
        with open(path, encoding="utf-8") as file:
            try:
                table = json.load(file)
            except ValueError as error:
                raise ValueError(
                    f"{path!r} is no JSON file of ranges by episode: {error}."
                ) from None
    bounds = _bounds(path, table)

    def only(batch: Batch) -> npt.NDArray[np.bool_]:
        columns: list[Any] = [batch[name] for name in names]
        kept = np.zeros(len(batch.indices), np.bool_)
        starts = np.flatnonzero(np.diff(batch.episodes, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(kept)], strict=True):
            parts = [column[start] for column in columns]
            episode = separator.join(part.decode(errors="surrogateescape") for part in parts)
            for first, last in bounds.get(episode, ()):
                steps = batch.steps[start:end]
                kept[start:end] |= (steps >= first) & (steps < last)
        return kept

    return only


def _bounds(path: str, table: Any) -> dict[str, list[tuple[int, int]]]:
    """Returns the ranges of each episode. Raises ValueError for anything else."""
    if not isinstance(table, Mapping):
        raise ValueError(f"{path!r} holds ranges by episode, not {reprlib.repr(table)}.")
    bounds: dict[str, list[tuple[int, int]]] = {}
    for episode, ranges in table.items():
        bounds[episode] = []
        for each in ranges if _is_list(ranges) else [ranges]:
            pair = list(each) if _is_list(each) else []
            if len(pair) != 2 or not all(map(_is_step, pair)):
                raise ValueError(
                    f"{path!r}: episode {episode!r} has {reprlib.repr(each)} where a range stands: "
                    "[first, end], two integers."
                )
            bounds[episode].append((int(pair[0]), int(pair[1])))
    return bounds


def _is_list(given: Any) -> bool:
    return isinstance(given, list | tuple | np.ndarray)


def _is_step(given: Any) -> bool:
    return isinstance(given, int | np.integer) and not isinstance(given, bool)
