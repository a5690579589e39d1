"""What the user's shuffles decide: a seed each, and whose reading they are part of."""

from __future__ import annotations

import secrets
import weakref
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.seeds import DEFAULT_GLOBAL_SEED

_SWITCH = "TFRFAST_ACCELERATE=0"
# Mixes a global seed with an op's seed.
_ODD = 0x9E3779B97F4A7C15

_drawn: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_planned: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def seed_of(shuffle: Any) -> tuple[int, bool]:
    """The seed of a shuffle's order, and whether the user chose it.

    All datasets that are derived from one shuffle have one seed.
    """
    first, second = (int(nodes.attribute(shuffle, name)) for name in ("seed", "seed2"))
    if first == second == 0:
        return _drawn.setdefault(shuffle, secrets.randbits(63)), False
    if first == DEFAULT_GLOBAL_SEED:
        return second % 2**64, True
    return (first * _ODD + second) % 2**64, True


def is_kept(shuffle: Any) -> bool:
    """Whether each iteration has the same order, so that parts of it are disjoint."""
    return nodes.attribute(shuffle, "reshuffle_each_iteration") is False


def decide(shuffles: list[Any], planned: bool) -> bool:
    """Whether datasets after these shuffles are planned, as the first of them was.

    Parts of one order must not come from two: raises ValueError where a part has to stay
    TensorFlow's after another one was planned.
    """
    for shuffle in filter(is_kept, shuffles):
        if _planned.setdefault(shuffle, planned) == planned:
            continue
        if planned:
            return False
        raise tf.errors.FailedPreconditionError(
            None,
            None,
            "A dataset made of one shuffle(reshuffle_each_iteration=False) is read by tfrfast, and "
            "another one made of the same shuffle cannot be, so that the two would not be parts of "
            f"one order. Set {_SWITCH} to have TensorFlow read both.",
        )
    return planned
