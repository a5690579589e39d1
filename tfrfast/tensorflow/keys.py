"""What tells the orders of iterations apart: a key for each, the same in each run."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.functions import as_it_stands
from tfrfast.tensorflow.library import private_session
from tfrfast.tensorflow.seeds import DEFAULT_GLOBAL_SEED

ENDLESS = 2**63 - 1
# TensorFlow takes an op's seed modulo this.
_SEEDS_OF_OPS = 2**31 - 1
# Seeds the keys of iterations where what they are keys of has a seed of its own.
_ITERATIONS = 1


@dataclass(frozen=True)
class Keys:
    """A key for each iteration."""

    seed: int
    known: bool = False  # the key is the seed
    renewed: bool = False  # another one for each iteration

    def drawn(self) -> Any:
        """A dataset of one number, of which each dataset that this gives draws its own.

        tf.data service does not split it: all workers are given the number. A checkpoint of the
        iterator holds it, and how many iterations there were. `Dataset.random` would give others
        after `tf.random.set_seed`, which one process may call and another not.
        """
        variant = tf.raw_ops.RandomDatasetV2(
            seed=tf.constant(DEFAULT_GLOBAL_SEED, tf.int64),
            seed2=tf.constant(self.seed % _SEEDS_OF_OPS, tf.int64),
            seed_generator=tf.raw_ops.DummySeedGenerator(),
            rerandomize_each_iteration=self.renewed,
            output_types=[tf.int64],
            output_shapes=[[]],
        )
        return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64)).take(1)


@as_it_stands
def for_ever(value: Any, count: Any = ENDLESS) -> Any:
    """What repeat() would do, whose symbolic checkpoints grow with each repetition."""
    return tf.data.Dataset.range(count).map(as_it_stands(lambda _: value))


def zero_then_keys() -> Any:
    """0 for every step of the first iteration, a key of its own for every other iteration."""
    first = _first_key()

    @as_it_stands
    def repeated(key: Any) -> Any:
        return for_ever(tf.where(tf.equal(key, first), tf.constant(0, tf.int64), key))

    # Only a repeat() is known to have no end.
    return _iterations().flat_map(repeated).repeat()


def _iterations() -> Any:
    return Keys(_ITERATIONS, renewed=True).drawn()


@functools.cache
def _first_key() -> int:
    """The key of a first iteration: how it follows from the seed is TensorFlow's to know."""
    with private_session() as session:
        keys = tf.compat.v1.data.make_initializable_iterator(_iterations())
        session.run(keys.initializer)
        return int(session.run(keys.get_next()))


def as_int64(number: int) -> int:
    """The int64 with the bits of an unsigned `number`."""
    return number - 2**64 if number >= 2**63 else number
