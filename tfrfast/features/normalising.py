"""Specs that normalise floats as they are decoded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tfrfast.base.refused_arguments import refuse_wrong_fields

__all__ = ["Bounds", "Line", "Scaled", "lines_of"]

#: A shift, a factor, a base, and the lowest and the highest result: see core/example/scaling.h.
Line = tuple[float, float, float, float, float]

_Numbers = npt.NDArray[np.float64]
# Shifts, divisors, factors, bases, and whether a dimension is constant.
_Lines = tuple[_Numbers, _Numbers, _Numbers, _Numbers, npt.NDArray[np.bool_]]
_KEPT: Line = (0.0, 1.0, 0.0, -math.inf, math.inf)
_ZERO: Line = (0.0, 0.0, 0.0, -math.inf, math.inf)


class _Normalising:
    """Keeps arrays as tuples, so that equal specs are equal."""

    def __post_init__(self) -> None:
        refuse_wrong_fields(self)
        for name in ("mean", "std", "low", "high", "mask", "constant"):
            value = getattr(self, name, None)
            if value is not None and (name != "constant" or not isinstance(value, str)):
                object.__setattr__(self, name, _tuples(_numbers(name, value)))


def _numbers(name: str, given: Any) -> Any:
    try:
        numbers = np.asarray(given)
    except (TypeError, ValueError, OverflowError):
        numbers = np.empty(0, object)
    if numbers.dtype.kind not in "biuf":
        raise TypeError(f"{name} takes a number for each dimension, not {given!r}.")
    return (numbers if numbers.dtype == np.bool_ else numbers.astype(np.float64)).tolist()


def _tuples(numbers: Any) -> Any:
    return tuple(map(_tuples, numbers)) if isinstance(numbers, list) else numbers


@dataclass(frozen=True)
class Scaled(_Normalising):
    """A float32 feature, normalised by mean and deviation: `(x - mean) / (std + epsilon)`.

    `spec` describes the feature: a FixedLen, a FixedLenSequence or a VarLen of "float32". Its shape
    ends in the shape of `mean` and `std`, so a window of 16 actions is normalised by the numbers of
    one action. Results are computed in double precision and rounded once to float32.

    `mask` is False for dimensions that stay as they are, such as grippers. A dimension whose
    deviation is 0 becomes 0, or with `constant="scaled"` what the formula gives. `constant` may
    also be a mask of the dimensions that become 0, whatever `mask` says. With `pad="zeros"`, the
    zeros that stand for steps beyond the ends of an episode stay zeros; Loaders and scans of Steps
    take this from the feature's window.

    >>> record = tfr.encode_example({"x": [1.0, 5.0]})
    >>> spec = tfr.Scaled(tfr.FixedLen((2,), "float32"), mean=[2.0, 3.0], std=[1.0, 4.0])
    >>> tfr.parse_example([record], {"x": spec})["x"].tolist()
    [[-1.0, 0.5]]
    """

    spec: Any
    mean: Any
    std: Any
    epsilon: float = 0.0
    mask: Any = None
    constant: Any = "zero"
    pad: Literal["repeat", "zeros"] | None = None

    def _line(self, shape: tuple[int, ...]) -> _Lines:
        mean, std = _like(shape, self.mean), _like(shape, self.std)
        return mean, std + self.epsilon, np.ones(shape), np.zeros(shape), _equal(std, 0)


@dataclass(frozen=True)
class Bounds(_Normalising):
    """A float32 feature, whose numbers from `low` to `high` become those from -1 to 1.

    The formula is `2 * (x - low) / (high - low + epsilon) - 1`, and with `clip=True` results beyond
    -1 and 1 become -1 and 1. The bounds may be quantiles of `tfr.statistics`. A dimension whose
    bounds are equal becomes 0, or with `constant="scaled"` what the formula gives. Everything else
    is as for `Scaled`.

    >>> record = tfr.encode_example({"x": [1.0, 5.0, 0.25]})
    >>> numbers = tfr.FixedLen((3,), "float32")
    >>> spec = tfr.Bounds(numbers, [0, 0, 0], [4, 4, 1], mask=[True, True, False], clip=True)
    >>> tfr.parse_example([record], {"x": spec})["x"].tolist()
    [[-0.5, 1.0, 0.25]]
    """

    spec: Any
    low: Any
    high: Any
    mask: Any = None
    clip: bool = False
    epsilon: float = 0.0
    constant: Any = "zero"
    pad: Literal["repeat", "zeros"] | None = None

    def _line(self, shape: tuple[int, ...]) -> _Lines:
        low, high = _like(shape, self.low), _like(shape, self.high)
        span, twos = high - low + self.epsilon, np.full(shape, 2.0)
        return low, span, twos, np.full(shape, -1.0), _equal(low, high)


def _equal(left: Any, right: Any) -> npt.NDArray[np.bool_]:
    return np.asarray(left == right)


def _like(shape: tuple[int, ...], numbers: Any) -> _Numbers:
    return np.broadcast_to(np.asarray(numbers, np.float64), shape)


def lines_of(name: str, spec: Scaled | Bounds) -> tuple[tuple[int, ...], tuple[Line, ...]]:
    """Returns the shape of the numbers, and the line of each dimension. Raises ValueError for
    numbers that do not fit.
    """
    given = (spec.mean, spec.std) if isinstance(spec, Scaled) else (spec.low, spec.high)
    try:
        shape = np.broadcast_shapes(*map(np.shape, given))
    except ValueError:
        shapes = " and ".join(str(np.shape(each)) for each in given)
        raise ValueError(
            f"Feature {name!r}: it is normalised by numbers of one shape, not {shapes}."
        ) from None
    if not spec.epsilon >= 0:
        raise ValueError(f"Feature {name!r}: epsilon is 0 or more, not {spec.epsilon}.")
    shift, divisor, factor, base, are_equal = spec._line(shape)
    zeros: npt.NDArray[np.bool_]
    kept = np.zeros(shape, np.bool_)
    if spec.mask is not None:
        kept = ~_mask(name, "mask", spec.mask, shape)
    clips = isinstance(spec, Bounds) and spec.clip
    low, high = (-1.0, 1.0) if clips else (-math.inf, math.inf)
    if isinstance(spec.constant, str):
        if spec.constant not in ("zero", "scaled"):
            raise ValueError(
                f'Feature {name!r}: constant is "zero", "scaled" or a mask, not {spec.constant!r}.'
            )
        zeros = are_equal & (spec.constant == "zero") & ~kept
    else:
        zeros = _mask(name, "constant", spec.constant, shape)
    used = ~(zeros | kept)
    if not np.isfinite([shift, divisor])[:, used].all():
        raise ValueError(f"Feature {name!r}: it is normalised by finite numbers alone.")
    with np.errstate(all="ignore"):
        slope = factor / divisor
    if not np.isfinite(slope)[used].all():
        raise ValueError(
            f"Feature {name!r}: a dimension would be divided by 0, or by nearly 0. Give an epsilon "
            'above 0, or constant="zero".'
        )

    def line(at: int) -> Line:
        if zeros.flat[at]:
            return _ZERO
        if kept.flat[at]:
            return _KEPT
        numbers = (float(shift.flat[at]), float(slope.flat[at]))
        return (*numbers, float(base.flat[at]), low, high)

    return shape, tuple(line(at) for at in range(math.prod(shape)))


def _mask(name: str, what: str, given: Any, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    mask = np.asarray(given)
    if mask.dtype != np.bool_:
        raise ValueError(
            f"Feature {name!r}: {what} has a bool for each dimension, True or False, not numbers."
        )
    if mask.shape not in ((), shape):
        raise ValueError(
            f"Feature {name!r}: {what} has a bool for each dimension, in the shape {shape}, not "
            f"{mask.shape}."
        )
    return np.broadcast_to(mask, shape)
