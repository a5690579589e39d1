"""The steps of an iteration, and their files: all files, or this process's own.

To shard by file, TensorFlow puts a shard() before a flat_map whose function reads files. One such
flat_map here passes on 0, 1, 2, ... From the first two numbers that sharding leaves, this process
finds its own files, and counts their steps when the iteration begins. Without sharding, the steps
come in pieces, which tf.data service may split among workers.

One vector tells the ops what to read: the order's key, the first file and the stride of files, the
first step and the end of steps. Each further tensor of a step would take time.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.functions import Body, flat_map, serial_map, show_a_reader
from tfrfast.tensorflow.iteration_keys import ENDLESS, IterationKeys, key_of
from tfrfast.tensorflow.library import ops

# Files are given as a first file and a stride.
ALL_FILES = (0, 1)
_MAX_PIECE_STEPS = 64
# With few steps, pieces are smaller, so that about this many pieces remain.
_PIECES = 8
_COPIES = 4096


def piece_size(count: int, group: int) -> int:
    """Returns the number of steps of a piece: whole groups."""
    return max(1, min(_MAX_PIECE_STEPS // group, count // _PIECES // group)) * group


def pieces_of_steps(count: Any, size: Any) -> Any:
    """Returns the steps 0 to `count` - 1 in pieces: the beginning and end of each piece."""
    return flat_map(tf.data.Dataset.range(-(-count // size)), _piece, count, size)


def _piece(number: Any, count: Any, size: Any) -> Any:
    show_a_reader()
    return tf.data.Dataset.from_tensors(_bounds(number, count, size))


def _bounds(number: Any, count: Any, size: Any) -> Any:
    """Returns the first step and the end of a piece."""
    begin = number * size
    return tf.stack([begin, begin + tf.minimum(count - begin, size)])


def pieces_here(pieces: Any, own: Body, *others: Any) -> Any:
    """Yields `pieces`, two tensors each, of all files or, once sharded, the elements of the dataset
    own(first, stride, *others) of this process's files.
    """
    numbers = _numbers_left(IterationKeys(0))
    # Pieces come second in zip, so that a sharded process does not request one.
    every = tf.data.Dataset.zip((flat_map(numbers, _unless_sharded), flat_map(pieces, _in_view)))
    of_share = flat_map(flat_map(numbers, _share), own, *others)
    return every.concatenate(serial_map(of_share, _without_key))


def _in_view(one: Any, other: Any) -> Any:
    show_a_reader()
    return tf.data.Dataset.from_tensors((one, other))


def _without_key(one: Any, other: Any) -> Any:
    return tf.zeros([3], tf.int64), (one, other)


def _share(numbers: Any, _: Any) -> Any:
    first, second = tf.unstack(numbers, num=2)
    own = tf.data.Dataset.from_tensors(tf.stack([first, second - first]))
    return own.take(tf.cast(_is_sharded(numbers), tf.int64))


def endless(vector: Any) -> Any:
    """Yields a vector without end, which tf.data service does not split."""
    return flat_map(IterationKeys(0).known(), _repeated, vector)


def _repeated(_: Any, vector: Any) -> Any:
    # Many copies: a symbolic checkpoint grows with each repetition.
    rows = tf.broadcast_to(vector, tf.stack([_COPIES, tf.size(vector)]))
    rows.set_shape([None, vector.shape[0]])
    return tf.data.Dataset.from_tensor_slices(rows).repeat()


def steps(pieces: Any, source: Any, sequence: Any, keys: IterationKeys, length: int = 1) -> Any:
    """Yields the steps of `pieces` or, once sharded, of this process's own files, `length` at a
    time.

    Each piece decides between the two once, so that a step costs little.
    """
    # Pieces come second in zip, so that a sharded process without a piece does not request one.
    everything = tf.data.Dataset.zip((flat_map(_numbers_left(keys), _unless_sharded), pieces))
    own = flat_map(_numbers_left(keys), _if_sharded, source, sequence)
    return flat_map(everything.concatenate(own), _cut, tf.constant(length, tf.int64))


def _cut(whose: Any, bounds: Any, length: Any) -> Any:
    return _steps_between(whose, bounds, length)


def _steps_between(whose: Any, bounds: Any, length: Any) -> Any:
    begin, end = tf.unstack(bounds, num=2)
    begins = tf.range(begin, end, length)
    numbers = tf.stack([begins, tf.minimum(begins + length, end)], axis=1)
    whose = _copies(whose, tf.size(begins, tf.int64))
    return tf.data.Dataset.from_tensor_slices(tf.concat([whose, numbers], axis=1))


def _copies(vector: Any, count: Any) -> Any:
    """Returns rows for from_tensor_slices(). Starting a map() would take milliseconds."""
    rows = tf.broadcast_to(vector, tf.stack([count, 3]))
    rows.set_shape([None, 3])
    return rows


def _numbers_left(keys: IterationKeys) -> Any:
    """Yields the first two of 0, 1, 2, ... that sharding leaves here, and the key twice."""
    seed = tf.convert_to_tensor(keys.shown, tf.int64)
    if keys.is_drawn:
        first = tf.constant(keys.first, tf.int64)
        numbers = flat_map(keys.drawn(), _count_with_drawn, seed, first)
    else:
        numbers = flat_map(keys.known(), _count_with_known, seed)
    # Not take(2).batch(2): checkpoints that hold an order of 16 numbers must not fit.
    return flat_map(numbers, _pass_on).batch(2, drop_remainder=True).take(1)


def _count_with_drawn(drawn: Any, seed: Any, first: Any) -> Any:
    key = key_of(drawn)
    return _count(tf.where(tf.equal(key, first), seed, tf.bitwise.bitwise_xor(key, seed)))


def _count_with_known(_: Any, seed: Any) -> Any:
    return _count(seed)


def _count(key: Any) -> Any:
    keys = tf.data.Dataset.from_tensors(key).repeat()
    return tf.data.Dataset.zip((tf.data.Dataset.range(ENDLESS), keys))


def _pass_on(number: Any, key: Any) -> Any:
    show_a_reader()
    return tf.data.Dataset.from_tensors((number, key))


def _unless_sharded(numbers: Any, key: Any) -> Any:
    first_key, _ = tf.unstack(key, num=2)
    # Many copies: a symbolic checkpoint grows with each repetition.
    copies = _copies(tf.stack([first_key, *ALL_FILES]), tf.constant(_COPIES, tf.int64))
    every = tf.data.Dataset.from_tensor_slices(copies).repeat()
    none, all_of_them = tf.constant(0, tf.int64), tf.constant(-1, tf.int64)
    return every.take(tf.where(_is_sharded(numbers), none, all_of_them))


def _if_sharded(numbers: Any, key: Any, source: Any, sequence: Any) -> Any:
    first, second = tf.unstack(numbers, num=2)
    first_key, _ = tf.unstack(key, num=2)
    no_files = tf.constant(0, tf.int64)
    stride = tf.where(_is_sharded(numbers), second - first, no_files)
    count = ops.tfrfast_step_count(source, sequence, tf.stack([first, stride]))
    count.set_shape([])
    size = tf.constant(_MAX_PIECE_STEPS, tf.int64)
    pieces = tf.data.Dataset.range((count - 1) // size + 1)
    return serial_map(pieces, _own_piece, tf.stack([first_key, first, stride]), count, size)


def _own_piece(number: Any, whose: Any, count: Any, size: Any) -> tuple[Any, Any]:
    return whose, _bounds(number, count, size)


def _is_sharded(numbers: Any) -> Any:
    return tf.reduce_any(tf.not_equal(numbers, tf.constant(ALL_FILES, tf.int64)))
