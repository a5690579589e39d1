"""Keys of iterations. A key gives an iteration an order of its own, the same in each run."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.build.functions import flat_map, serial_map
from tfrfast.tensorflow.library import private_session
from tfrfast.tensorflow.read.shuffles import DEFAULT_GLOBAL_SEED

ENDLESS = 2**63 - 1
# TensorFlow takes an op's seed modulo this.
_SEEDS_OF_OPS = 2**31 - 1
# Seeds the draw if the user has given a seed, which the keys depend on as well.
_DRAWN = 1
# A key that no order stands for.
_NEVER = -1
# An order of this many numbers identifies an iteration. Each number is one of the next two, so
# there are 2 ** 44 orders. Checkpoints hold the shuffle's buffer, so the buffer is small.
_NUMBERS, _BUFFER = 45, 2
# Different factors, so that two orders hardly ever have the same sum. No sum is above 2 ** 63.
WEIGHTS = tuple(0x9E3779B9 * (number + 1) % 2**25 for number in range(_NUMBERS))


@dataclass(frozen=True)
class IterationKeys:
    """A key for each iteration."""

    seed: Any  # an integer, or a tensor
    renewed: bool = False  # True if each iteration has another key
    # True if the user has given a seed, which is the key of the first iteration.
    seeded: bool = True

    def drawn(self) -> Any:
        """Returns a dataset of one vector: numbers in a random order, which each such dataset draws
        for itself.

        tf.data service does not split the dataset: all workers get the same order. A checkpoint of
        the iterator holds the order, and the number of past iterations. Fingerprints of datasets
        depend neither on the seed of TensorFlow's shuffle, nor on the time of its making.
        """
        shuffled = self._shuffled(_numbers().take(_NUMBERS))
        return shuffled.batch(_NUMBERS, drop_remainder=True)

    def known(self) -> Any:
        """Returns a dataset of one number, in place of drawn() if the key is not drawn."""
        return _numbers().take(1)

    @property
    def is_drawn(self) -> bool:
        """True if the key depends on the draw. Otherwise the key is the seed in each iteration."""
        return self.renewed or not self.seeded

    @property
    def first(self) -> int:
        """Returns the number of an iteration's drawn order if that iteration's key is the seed."""
        return _first_key() if self.seeded and self.renewed else _NEVER

    def _shuffled(self, numbers: Any) -> Any:
        # Not tf.data's shuffle(), which TensorFlow would move when it shards by file.
        variant = tf.raw_ops.ShuffleAndRepeatDatasetV2(
            input_dataset=internals.variant_of(numbers),
            buffer_size=tf.constant(_BUFFER, tf.int64),
            seed=tf.constant(DEFAULT_GLOBAL_SEED, tf.int64),
            seed2=tf.convert_to_tensor(
                _DRAWN if self.seeded else self.seed % _SEEDS_OF_OPS, tf.int64
            ),
            count=tf.constant(1, tf.int64),
            seed_generator=tf.raw_ops.DummySeedGenerator(),
            reshuffle_each_iteration=self.renewed,
            output_types=[tf.int64],
            output_shapes=[[]],
        )
        return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64))

    @property
    def shown(self) -> Any:
        """The part of the seed that the dataset's fingerprint depends on."""
        return self.seed if self.seeded else 0


def _numbers() -> Any:
    """Returns the same numbers for all, without end, so that tf.data service does not split the
    dataset.
    """
    variant = tf.raw_ops.RandomDataset(
        seed=tf.constant(DEFAULT_GLOBAL_SEED, tf.int64),
        seed2=tf.constant(0, tf.int64),
        output_types=[tf.int64],
        output_shapes=[[]],
    )
    return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64))


def key_of(drawn: Any) -> Any:
    """Returns the key that an order stands for."""
    return tf.reduce_sum(drawn * tf.constant(WEIGHTS, tf.int64))


def zero_then_keys(after: tuple[int, ...]) -> Any:
    """Yields for each step 0 in the first iteration, and the iteration's key in later ones, and the
    numbers `after` it.
    """

    def zero_or_key(drawn: Any) -> Any:
        key = key_of(drawn)
        first = tf.constant(_first_key(), tf.int64)
        own = tf.where(tf.equal(key, first), tf.constant(0, tf.int64), key)
        value = tf.stack([own, *after])
        # Symbolic checkpoints would grow with each repetition of a repeat().
        return serial_map(tf.data.Dataset.range(ENDLESS), lambda _: value)

    # TensorFlow recognises only repeat() as endless.
    return flat_map(_iterations(), zero_or_key).repeat()


def _iterations() -> Any:
    return IterationKeys(0, renewed=True).drawn()


@functools.cache
def _first_key() -> int:
    """Returns the key of a first iteration, which only TensorFlow can compute from the seed."""
    with private_session() as session:
        keys = tf.compat.v1.data.make_initializable_iterator(_iterations())
        session.run(keys.initializer)
        return int(session.run(key_of(keys.get_next())))


def as_int64(number: int) -> int:
    """Returns the int64 with the bits of an unsigned `number`."""
    return number - 2**64 if number >= 2**63 else number
