"""The statistics of numbers, in the forms that programs read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrfast.base.sizes import counted

__all__ = ["NumberStats", "Statistics"]

_SHOWN = 24

#: A feature, or features whose numbers follow one another, by the name in a program's file.
Named = Mapping[str, str | Sequence[str]]


class NumberStats(NamedTuple):
    """The statistics of a feature: arrays of its shape, or single values if rows have no shape."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    """The standard deviation: the square root of the mean square of the distances from the mean."""
    min: NDArray[np.float64]
    max: NDArray[np.float64]
    num_values: NDArray[np.int64]
    """The number of values without NaN. NaN counts in none of the statistics."""
    quantiles: NDArray[np.float64] | None = None
    """A row for each quantile, or None if none were asked for."""

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={_short(value)}" for name, value in self._asdict().items() if value is not None
        )
        return f"NumberStats({shown})"


class Statistics(dict[str, NumberStats]):
    """The statistics of each numeric feature, by the feature's name.

    stats = tfr.statistics(steps, quantiles=(0.01, 0.99))
    low, high = stats["steps/action"].quantiles
    stats.to_openpi({"state": "steps/state", "actions": "steps/action"}, "norm_stats.json")
    """

    def __init__(
        self,
        stats: Mapping[str, NumberStats],
        num_records: int,
        num_episodes: int,
        quantiles: Sequence[float] = (),
        sources: Mapping[str, Statistics] | None = None,
    ) -> None:
        super().__init__(stats)
        self.num_records = num_records
        """The number of records that were read, which are steps for Steps."""
        self.num_episodes = num_episodes
        """The number of episodes that the steps are of; of other records, their number."""
        self.quantiles = tuple(quantiles)
        """The quantiles that were asked for, in the order of `NumberStats.quantiles`."""
        self.sources = dict(sources or {})
        """The statistics of each source of a Mixture, by name."""

    def to_openpi(
        self, features: Named | None = None, path: str | os.PathLike[str] | None = None
    ) -> dict[str, Any]:
        """Returns the content of openpi's `norm_stats.json`, and writes it to `path`.

        `features` maps each name in the file to a feature, or to a list of features whose numbers
        follow one another. The default is all features, by the last part of their names.
        """
        norms = {
            name: {
                "mean": numbers["mean"],
                "std": numbers["std"],
                "q01": numbers.get("q01"),
                "q99": numbers.get("q99"),
            }
            for name, numbers in self._numbers(features).items()
        }
        return _written({"norm_stats": norms}, path)

    def to_openvla(
        self,
        features: Named | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        mask: Mapping[str, Sequence[bool]] | None = None,
    ) -> dict[str, Any]:
        """Returns the content of OpenVLA's `dataset_statistics.json`, and writes it to `path`.

        `features` is as for `to_openpi`. `mask` says by name in the file which dimensions are
        normalised. For a Mixture, there is an entry for each source.
        """
        if self.sources:
            each = {name: one.to_openvla(features, mask=mask) for name, one in self.sources.items()}
            return _written(each, path)
        content: dict[str, Any] = dict(self._numbers(features))
        for name, bools in (mask or {}).items():
            if name not in content:
                raise ValueError(f"mask names {name!r}, and the file has {', '.join(content)}.")
            count, given = len(content[name]["mean"]), np.asarray(bools)
            if given.shape != (count,) or given.dtype != np.bool_:
                raise ValueError(
                    f"mask[{name!r}] is {bools!r}, and takes True or False for each of {count} "
                    "numbers."
                )
            content[name] = {**content[name], "mask": given.tolist()}
        content["num_transitions"] = self.num_records
        content["num_trajectories"] = self.num_episodes
        return _written(content, path)

    def _numbers(self, features: Named | None) -> dict[str, dict[str, Any]]:
        if features is None:
            features = {}
            for name in self:
                last = name.rpartition("/")[2]
                other = features.setdefault(last, name)
                if other != name:
                    raise ValueError(
                        f"Both {other!r} and {name!r} would be called {last!r} in the file. Give "
                        f"each a name: features={{'state': {other!r}, 'actions': {name!r}}}."
                    )
        return {name: self._joined(of) for name, of in features.items()}

    def _joined(self, names: str | Sequence[str]) -> dict[str, Any]:
        """Returns the numbers of features end to end."""
        names = [names] if isinstance(names, str) else list(names)
        for name in names:
            if name not in self:
                raise KeyError(f"There are no statistics of {name!r}, only of {', '.join(self)}.")
        parts = {each: [getattr(self[name], each) for name in names] for each in _PARTS}
        for at, quantile in enumerate(self.quantiles):
            rows = [self[name].quantiles for name in names]
            parts[_quantile_name(quantile)] = [row[at] for row in rows if row is not None]
        return {
            each: np.concatenate([np.ravel(array) for array in arrays]).tolist()
            for each, arrays in parts.items()
        }

    def __repr__(self) -> str:
        records = f"{counted(self.num_records, 'records')} of {self.num_episodes:,} episodes"
        lines = [f"Statistics of {records}:"]
        for name, stats in list(self.items())[:_SHOWN]:
            lines.append(f"  {name} {np.shape(stats.mean)}")
            for part in (*_PARTS, "quantiles"):
                if (value := getattr(stats, part)) is not None and len(self) <= _SHOWN // 6:
                    lines.append(f"    {part} {_short(value)}")
        if len(self) > _SHOWN:
            lines.append(f"  and {len(self) - _SHOWN} more")
        if self.sources:
            lines.append(f"Each of {', '.join(self.sources)} has its own in .sources.")
        return "\n".join(lines)


def _quantile_name(quantile: float) -> str:
    percent = round(100 * quantile)
    return f"q{percent:02}" if quantile == percent / 100 else f"q{quantile}"


_PARTS = ("mean", "std", "min", "max")


def _short(numbers: Any) -> str:
    text = np.array2string(np.asarray(numbers), precision=4, threshold=16, edgeitems=3)
    return " ".join(text.split())


def _written(content: dict[str, Any], path: str | os.PathLike[str] | None) -> dict[str, Any]:
    if path is None:
        return content
    path = os.fspath(path)
    try:
        text = json.dumps(content, indent=2, allow_nan=False)
    except ValueError:
        raise ValueError(
            f"{path!r} is not written: some statistics are NaN or infinite, and JSON has neither. "
            "Leave features without finite numbers out with features=."
        ) from None
    temporary = f"{path}.{os.getpid()}.new"  # other processes may read the file or write it, too
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)
    return content
