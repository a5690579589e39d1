"""The steps of an iteration, and their files: all files, or this process's own.

To shard by file, TensorFlow puts a shard() before a flat_map whose function reads files. One such
flat_map here passes on 0, 1, 2, ... From the first two numbers that sharding leaves, this process
finds its own files, and counts their steps when the iteration begins. Without sharding, the steps
come in pieces, which tf.data service may split among workers.

One vector tells the ops what to read: the order's key, the first file and the stride of files, the
edition of the source, the first step and the end of steps. Each further tensor of a step would take
time. A key gives an iteration an order of its own, the same in each run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.build.functions import flat_map, serial_map, show_a_reader
from tfrfast.tensorflow.library import ops, private_session
from tfrfast.tensorflow.read.shuffles import DEFAULT_GLOBAL_SEED

# Files are given as a first file and a stride.
ALL_FILES = (0, 1)
# A plan's source is of the files that were open when the plan was made.
_EDITION = 0
_MAX_PIECE_STEPS = 64
# With few steps, pieces are smaller, so that about this many pieces remain.
_PIECES = 8
_COPIES = 4096

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


def piece_size(count: int, group: int) -> int:
    """Returns the number of steps of a piece: whole groups."""
    return max(1, min(_MAX_PIECE_STEPS // group, count // _PIECES // group)) * group


def _bounds(number: Any, count: Any, size: Any) -> Any:
    """Returns the first step and the end of a piece."""
    begin = number * size
    return tf.stack([begin, begin + tf.minimum(count - begin, size)])


def pieces_here(pieces: Any, own: Callable[[Any], Any]) -> Any:
    """Yields `pieces`, two tensors each, of all files or, once sharded, the elements of the dataset
    own([first, stride]) of this process's files.
    """

    def in_view(one: Any, other: Any) -> Any:
        show_a_reader()
        return tf.data.Dataset.from_tensors((one, other))

    def share(numbers: Any, _: Any) -> Any:
        first, second = tf.unstack(numbers, num=2)
        files = tf.data.Dataset.from_tensors(tf.stack([first, second - first]))
        return files.take(tf.cast(_is_sharded(numbers), tf.int64))

    numbers = _numbers_left(IterationKeys(0))
    # Pieces come second in zip, so that a sharded process does not request one.
    every = tf.data.Dataset.zip((flat_map(numbers, _unless_sharded), flat_map(pieces, in_view)))
    of_share = flat_map(flat_map(numbers, share), own)
    without_key = serial_map(of_share, lambda *piece: (tf.zeros([4], tf.int64), piece))
    return every.concatenate(without_key)


def endless(vector: Any) -> Any:
    """Yields a vector without end, which tf.data service does not split."""

    # Many copies: a symbolic checkpoint grows with each repetition.
    def repeated(_: Any) -> Any:
        rows = _copies(vector, tf.constant(_COPIES, tf.int64))
        return tf.data.Dataset.from_tensor_slices(rows).repeat()

    return flat_map(IterationKeys(0).known(), repeated)


def steps(
    renewed: bool,
    seeded: bool,
    length: int,
    count: Any,
    size: Any,
    seed: Any,
    source: Any,
    sequence: Any,
) -> Any:
    """Yields the steps 0 to `count` - 1 of a sequence, in pieces of `size` steps, or, once sharded,
    the steps of this process's own files. Each element is `length` steps.

    Each piece decides between the two once, so that a step costs little.
    """

    def piece(number: Any) -> Any:
        show_a_reader()
        return tf.data.Dataset.from_tensors(_bounds(number, count, size))

    def own(numbers: Any, key: Any) -> Any:
        first, second = tf.unstack(numbers, num=2)
        stride = tf.where(_is_sharded(numbers), second - first, tf.constant(0, tf.int64))
        counted = ops.tfrfast_step_count(source, sequence, tf.stack([first, stride]))
        own_count, edition = tf.unstack(counted, num=2)
        whole = tf.constant(_MAX_PIECE_STEPS, tf.int64)
        whose = tf.stack([tf.unstack(key, num=2)[0], first, stride, edition])
        return serial_map(
            tf.data.Dataset.range((own_count - 1) // whole + 1),
            lambda number: (whose, _bounds(number, own_count, whole)),
        )

    def cut(whose: Any, bounds: Any) -> Any:
        begin, end = tf.unstack(bounds, num=2)
        begins = tf.range(begin, end, length)
        numbers = tf.stack([begins, tf.minimum(begins + length, end)], axis=1)
        copies = _copies(whose, tf.size(begins, tf.int64))
        return tf.data.Dataset.from_tensor_slices(tf.concat([copies, numbers], axis=1))

    pieces = flat_map(tf.data.Dataset.range(-(-count // size)), piece)
    keys = IterationKeys(seed, renewed, seeded)
    # Pieces come second in zip, so that a sharded process without a piece does not request one.
    everything = tf.data.Dataset.zip((flat_map(_numbers_left(keys), _unless_sharded), pieces))
    return flat_map(everything.concatenate(flat_map(_numbers_left(keys), own)), cut)


def _copies(vector: Any, count: Any) -> Any:
    """Returns rows for from_tensor_slices(). Starting a map() would take milliseconds."""
    rows = tf.broadcast_to(vector, tf.stack([count, tf.size(vector, tf.int64)]))
    rows.set_shape([None, vector.shape[0]])
    return rows


def _numbers_left(keys: IterationKeys) -> Any:
    """Yields the first two of 0, 1, 2, ... that sharding leaves here, and the key twice."""
    seed = tf.convert_to_tensor(keys.shown, tf.int64)

    def count(drawn: Any) -> Any:
        key = seed
        if keys.is_drawn:
            key = key_of(drawn)
            first = tf.constant(keys.first, tf.int64)
            key = tf.where(tf.equal(key, first), seed, tf.bitwise.bitwise_xor(key, seed))
        again = tf.data.Dataset.from_tensors(key).repeat()
        return tf.data.Dataset.zip((tf.data.Dataset.range(ENDLESS), again))

    def pass_on(number: Any, key: Any) -> Any:
        show_a_reader()
        return tf.data.Dataset.from_tensors((number, key))

    numbers = flat_map(keys.drawn() if keys.is_drawn else keys.known(), count)
    # Not take(2).batch(2): checkpoints that hold an order of 16 numbers must not fit.
    return flat_map(numbers, pass_on).batch(2, drop_remainder=True).take(1)


def _unless_sharded(numbers: Any, key: Any) -> Any:
    first_key, _ = tf.unstack(key, num=2)
    # Many copies: a symbolic checkpoint grows with each repetition.
    copies = _copies(tf.stack([first_key, *ALL_FILES, _EDITION]), tf.constant(_COPIES, tf.int64))
    every = tf.data.Dataset.from_tensor_slices(copies).repeat()
    none, all_of_them = tf.constant(0, tf.int64), tf.constant(-1, tf.int64)
    return every.take(tf.where(_is_sharded(numbers), none, all_of_them))


def _is_sharded(numbers: Any) -> Any:
    return tf.reduce_any(tf.not_equal(numbers, tf.constant(ALL_FILES, tf.int64)))
