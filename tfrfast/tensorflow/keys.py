"""Keys, one for each iteration, which give it an order of its own, the same in each run."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.functions import flat_map, serial_map
from tfrfast.tensorflow.library import private_session
from tfrfast.tensorflow.seeds import DEFAULT_GLOBAL_SEED

ENDLESS = 2**63 - 1
# TensorFlow takes an op's seed modulo this.
_SEEDS_OF_OPS = 2**31 - 1
# Seeds the keys of iterations of a Loader, whose plan has a seed of its own.
_ITERATIONS = 1


@dataclass(frozen=True)
class Keys:
    """A key for each iteration."""

    seed: int
    known: bool = False  # the key is the seed itself
    renewed: bool = False  # each iteration has another key

    def drawn(self) -> Any:
        """A dataset of one number, which each dataset made here draws for itself.

        tf.data service does not split it: all workers get the same number. A checkpoint of the
        iterator holds the number, and how many iterations there have been. `Dataset.random` would
        give other numbers after `tf.random.set_seed`, which not every process may have called.
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


def for_ever(value: Any) -> Any:
    """Like repeat(), but symbolic checkpoints do not grow with each repetition."""
    return serial_map(tf.data.Dataset.range(ENDLESS), _second, value)


def _second(_: Any, value: Any) -> Any:
    return value


def zero_then_keys() -> Any:
    """For each step 0 in the first iteration, and that iteration's key in every other one."""
    # TensorFlow knows only of repeat() that it has no end.
    first = tf.constant(_first_key(), tf.int64)
    return flat_map(_iterations(), _zero_or_key, first).repeat()


def _zero_or_key(key: Any, first: Any) -> Any:
    return for_ever(tf.where(tf.equal(key, first), tf.constant(0, tf.int64), key))


def _iterations() -> Any:
    return Keys(_ITERATIONS, renewed=True).drawn()


@functools.cache
def _first_key() -> int:
    """The key of a first iteration. Only TensorFlow knows how it follows from the seed."""
    with private_session() as session:
        keys = tf.compat.v1.data.make_initializable_iterator(_iterations())
        session.run(keys.initializer)
        return int(session.run(keys.get_next()))


def as_int64(number: int) -> int:
    """The int64 with the bits of an unsigned `number`."""
    return number - 2**64 if number >= 2**63 else number
