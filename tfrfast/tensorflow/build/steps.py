"""The steps of an iteration, and their files: all files, or this process's own.

To shard by file, TensorFlow puts a shard() before a flat_map whose function reads files. One such
flat_map here passes on 0, 1, 2, ... From the first two numbers that sharding leaves, this process
finds its own files, and counts their steps when the iteration begins. Without sharding, the steps
come in pieces, which tf.data service may split among workers.

One vector tells the ops what to read: the order's key, the first file and the stride of files, the
edition of the source, the first step and the end of steps. Each further tensor of a step would take
time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.build.functions import flat_map, serial_map, show_a_reader
from tfrfast.tensorflow.build.iteration_keys import ENDLESS, IterationKeys, key_of
from tfrfast.tensorflow.library import ops

# Files are given as a first file and a stride.
ALL_FILES = (0, 1)
# A plan's source is of the files that were open when the plan was made.
_EDITION = 0
_MAX_PIECE_STEPS = 64
# With few steps, pieces are smaller, so that about this many pieces remain.
_PIECES = 8
_COPIES = 4096


def piece_size(count: int, group: int) -> int:
    """Returns the number of steps of a piece: whole groups."""
    return max(1, min(_MAX_PIECE_STEPS // group, count // _PIECES // group)) * group


def pieces_of_steps(count: Any, size: Any) -> Any:
    """Returns the steps 0 to `count` - 1 in pieces: the beginning and end of each piece."""

    def piece(number: Any) -> Any:
        show_a_reader()
        return tf.data.Dataset.from_tensors(_bounds(number, count, size))

    return flat_map(tf.data.Dataset.range(-(-count // size)), piece)


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


def steps(pieces: Any, source: Any, sequence: Any, keys: IterationKeys, length: int = 1) -> Any:
    """Yields the steps of `pieces` or, once sharded, of this process's own files, `length` at a
    time.

    Each piece decides between the two once, so that a step costs little.
    """

    def own(numbers: Any, key: Any) -> Any:
        first, second = tf.unstack(numbers, num=2)
        stride = tf.where(_is_sharded(numbers), second - first, tf.constant(0, tf.int64))
        counted = ops.tfrfast_step_count(source, sequence, tf.stack([first, stride]))
        count, edition = tf.unstack(counted, num=2)
        size = tf.constant(_MAX_PIECE_STEPS, tf.int64)
        whose = tf.stack([tf.unstack(key, num=2)[0], first, stride, edition])
        return serial_map(
            tf.data.Dataset.range((count - 1) // size + 1),
            lambda number: (whose, _bounds(number, count, size)),
        )

    def cut(whose: Any, bounds: Any) -> Any:
        begin, end = tf.unstack(bounds, num=2)
        begins = tf.range(begin, end, length)
        numbers = tf.stack([begins, tf.minimum(begins + length, end)], axis=1)
        copies = _copies(whose, tf.size(begins, tf.int64))
        return tf.data.Dataset.from_tensor_slices(tf.concat([copies, numbers], axis=1))

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
