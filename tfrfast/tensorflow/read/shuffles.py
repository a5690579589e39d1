"""The user's shuffles: the seed of each, and the reader that shuffles."""

from __future__ import annotations

import secrets
import weakref
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.nodes import static_integer
from tfrfast.tensorflow.sequence import SeededOrder

# TensorFlow's partner of a seed without a global seed.
DEFAULT_GLOBAL_SEED = 87654321
_SWITCH = "TFRFAST_ACCELERATE=0"

_NOTED = "_tfrfast_order"
_SHUFFLES = {"shuffle_and_repeat", "shuffle"}

_drawn: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_planned: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def note_order(shuffle: Any, order: SeededOrder) -> None:
    """Notes the requested order, which TensorFlow's own arguments cannot hold."""
    vars(shuffle)[_NOTED] = order


def noted_order(shuffle: Any) -> SeededOrder | None:
    """Returns the order that was requested from tfrfast by name."""
    noted: SeededOrder | None = vars(shuffle).get(_NOTED)
    return noted


def order_of(shuffle: Any) -> SeededOrder | None:
    """Returns the order of a shuffle; None if its seed is known only in the graph.

    All datasets that are derived from the same shuffle have the same seed.
    """
    if noted := noted_order(shuffle):
        return noted
    first = static_integer(nodes.attribute(shuffle, "seed"))
    second = static_integer(nodes.attribute(shuffle, "seed2"))
    if first is None or second is None:
        return None
    reshuffles = not is_kept(shuffle)
    if first == second == 0:
        drawn = _drawn.setdefault(shuffle, secrets.randbits(63))
        return SeededOrder(drawn, reshuffles, seeded=False)
    seed = second % 2**64 if first == DEFAULT_GLOBAL_SEED else _mixed(first, second)
    return SeededOrder(seed, reshuffles)


def is_kept(shuffle: Any) -> bool:
    """True if each iteration has the same order, so that parts of it are disjoint."""
    return nodes.attribute(shuffle, "reshuffle_each_iteration") is False


def reshuffled(dataset: Any) -> set[Any]:
    """Returns the shuffles in a dataset that give each iteration another order."""
    found, left = set[Any](), [dataset]
    while left:
        each = left.pop()
        if each not in found:
            found.add(each)
            left += nodes.inputs(each)
    return {each for each in found if nodes.method_of(each) in _SHUFFLES and not is_kept(each)}


def decide(shuffles: list[Any], planned: bool) -> bool:
    """True if a dataset after these shuffles is planned. All such datasets follow the decision
    about the first.

    Parts of an order must not come from two readers. Raises ValueError if TensorFlow must read a
    part after another part was planned.
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


def draw_seed(seed: int | None) -> int:
    """Returns the user's seed, or the seed of `tf.random.set_seed`, or a random seed; 64 bits."""
    global_seed, own_seed = tf.compat.v1.random.get_seed(None if seed is None else seed % 2**31)
    if seed is not None and global_seed in (None, DEFAULT_GLOBAL_SEED):
        return seed % 2**64
    if global_seed is None:
        return secrets.randbits(63)
    return _mixed(int(global_seed), int(own_seed if seed is None else seed))


def _mixed(global_seed: int, own: int) -> int:
    """Returns the seed from an op's own seed and the seed of `tf.random.set_seed`."""
    return (global_seed * 0x9E3779B97F4A7C15 + own) % 2**64
