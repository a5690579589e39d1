"""Chosen steps: by number, or by a function of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast.base.arguments import Int64Array
from tfrfast.base.progress import ProgressBar
from tfrfast.base.sizes import counted
from tfrfast.base.warning import warn
from tfrfast.columns.batch import Batch
from tfrfast.columns.rows import Rows, row_numbers
from tfrfast.errors import StaleIndexError
from tfrfast.example.parsing import parse_example
from tfrfast.features import Features, FixedLen, VarLen
from tfrfast.loading.planned_features import planned_features
from tfrfast.order import InOrder
from tfrfast.reader import Reader

__all__ = ["Chosen", "Only", "choose", "column_features"]

#: Numbers, a slice or a mask, or a function of a Batch that returns a mask of its rows.
Only = Rows | Callable[[Batch], Any]

#: Returns the same steps with only these features.
View = Callable[[Sequence[str]], Reader]

_STEPS_AT_ONCE = 1 << 13
_KINDS = {"string": "bytes", "float": "float32", "int64": "int64"}


class Chosen(NamedTuple):
    """A bit for each step of the steps with this fingerprint. Pickles of chosen steps hold it."""

    bits: bytes
    fingerprint: int


def choose(steps: Reader, view: View, only: Only | Chosen) -> Chosen:
    """Returns the choice among all steps. A function is called for all steps, in order."""
    fingerprint = steps._fingerprint
    if isinstance(only, Chosen):
        if only.fingerprint != fingerprint:
            raise StaleIndexError(
                f"Steps were chosen among other steps than these of {steps.shards[0].path!r}: "
                "since then, shards were changed, or this machine sees other files."
            )
        return only
    if callable(only):
        mask = _asked(steps, view, only)
    else:
        numbers = row_numbers(only, len(steps), "Step")
        mask = np.zeros(len(steps), np.bool_)
        mask[numbers] = True
        if np.count_nonzero(mask) != len(numbers):
            raise ValueError("only names a step twice. To weigh steps, give an order weights.")
    return Chosen(np.packbits(mask, bitorder="little").tobytes(), fingerprint)


def column_features(steps: Reader) -> Features:
    """Returns the features along the axis, as far as the step file knows them."""
    specs: dict[str, FixedLen | VarLen] = {}
    for name, kind, values, has_window, valid in _native.step_facts(steps._core)["columns"]:
        shape = ((valid,) if has_window else ()) + ((values,) if values != 1 else ())
        dtype = _KINDS[kind]
        specs[name] = FixedLen(shape, dtype) if values else VarLen(dtype)
        if valid:
            specs[f"{name}/valid"] = FixedLen((valid,) if has_window else (), "int64")
    return specs


class _LeftOut(BaseException):
    """Some of the rows are damaged."""

    def __init__(self, left: Int64Array) -> None:
        self.left = left


class _ColumnsOnDemand(Batch):
    """Columns that are read on demand, each separately."""

    def __init__(self, views: _Views, numbers: Int64Array) -> None:
        super().__init__({}, numbers, np.ones(len(numbers), np.bool_))
        self._views = views
        self.episodes, self.steps = views.places(numbers)

    def __missing__(self, name: str) -> Any:
        view, specs = self._views.of(name)
        records = view.read(self.indices)
        if len(records) != len(self.indices):
            raise _LeftOut(records.indices)
        self[name] = parse_example(records, specs)[name]
        return self[name]


class _Views:
    def __init__(self, steps: Reader, view: View) -> None:
        self._view = view
        self._known = steps._known_features()
        self._views: dict[str, tuple[Reader, Features]] = {}
        self._first_steps = _native.first_steps(steps._core)
        # Windows may leave out the first steps of each episode.
        self._left_out = _native.step_place(steps._core, 0)[1] if len(steps) else 0

    def places(self, numbers: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Returns the episode of each step, and the step's number in it."""
        episodes = np.searchsorted(self._first_steps, numbers, side="right") - 1
        return episodes, numbers - self._first_steps[episodes] + self._left_out

    def of(self, name: str) -> tuple[Reader, Features]:
        if name not in self._views:
            view = self._view([name])
            specs: Any = {name: self._known[name]} if name in self._known else None
            if specs is None:
                compiled = planned_features([name], view, InOrder())
                assert compiled is not None
                specs = compiled.specs
            self._views[name] = view, specs
        return self._views[name]


def _asked(steps: Reader, view: View, only: Callable[[Batch], Any]) -> npt.NDArray[np.bool_]:
    views, count = _Views(steps, view), len(steps)
    mask = np.zeros(count, np.bool_)
    with ProgressBar("Choosing steps", steps._options["progress"], "steps") as bar:
        for begin in range(0, count, _STEPS_AT_ONCE):
            numbers = np.arange(begin, min(begin + _STEPS_AT_ONCE, count))
            while len(numbers):
                try:
                    mask[numbers] = _mask(only(_ColumnsOnDemand(views, numbers)), len(numbers))
                    break
                except _LeftOut as damaged:
                    numbers = damaged.left
            bar.update(min(begin + _STEPS_AT_ONCE, count), count)
    if count and not mask.any():
        warn(f"only= keeps none of the {counted(count, 'steps')}.")
    return mask


def _mask(answer: Any, count: int) -> npt.NDArray[np.bool_]:
    mask = np.asarray(answer)
    if mask.dtype != np.bool_ or mask.shape != (count,):
        raise TypeError(
            f"only must return a mask, one bool for each of {count} steps, and returned "
            f"{type(answer).__name__} of {mask.dtype} with the shape {mask.shape}."
        )
    return mask
