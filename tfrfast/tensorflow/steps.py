"""The steps of an iteration, and the files that they read: all files, or this process's own.

To shard by file, TensorFlow puts a shard() before a flat_map whose function reads files. One such
flat_map here passes on 0, 1, 2, ... The first two numbers that sharding leaves tell this process
which files are its own, and their steps are counted when the iteration begins. Without sharding,
the steps come in pieces, which tf.data service may split among workers.

The ops are told what to read by one vector: the order's key, the first of the files and their
stride, the first step and the one after the last. Each further tensor of a step would take time.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.functions import built, flat_map, serial_map, show_a_reader
from tfrfast.tensorflow.keys import DRAWN, ENDLESS, Keys, key_of
from tfrfast.tensorflow.library import ops

# Files are given as the first one and a stride.
ALL_FILES = (0, 1)
_MAX_PIECE_STEPS = 64
# If there are few steps, pieces are smaller, so that there are still about this many.
_PIECES = 8
_COPIES = 4096


def pieces_of_steps(count: int, group: int) -> Any:
    """The steps 0 to `count` - 1 in pieces of whole groups: where each begins and ends."""
    size = max(1, min(_MAX_PIECE_STEPS // group, count // _PIECES // group)) * group
    pieces = tf.data.Dataset.range(-(-count // size))
    return flat_map(pieces, _piece, tf.constant(count, tf.int64), tf.constant(size, tf.int64))


def _piece(number: Any, count: Any, size: Any) -> Any:
    show_a_reader()
    return tf.data.Dataset.from_tensors(_bounds(number, count, size))


def _bounds(number: Any, count: Any, size: Any) -> Any:
    begin = number * size
    return tf.stack([begin, begin + tf.minimum(count - begin, size)])


def pieces_of_files(source: Any, sequence: Any, files: Any) -> Any:
    """The blocks of a source in file order, as far as the sequence needs them."""
    return flat_map(files, _blocks_of_file, source, sequence)


def _blocks_of_file(file: Any, source: Any, sequence: Any) -> Any:
    show_a_reader()
    begin, end = ops.tfrfast_blocks_of_file(source, sequence, file)
    return tf.data.Dataset.from_tensors(tf.ensure_shape(tf.stack([begin, end]), [2]))


def steps_of_all(pieces: Any) -> Any:
    """Each step of `pieces`, which TensorFlow does not shard by file, without a key."""
    of_all = tf.constant([0, *ALL_FILES], tf.int64)
    return flat_map(pieces, _cut_up, of_all, tf.constant(1, tf.int64))


def _cut_up(bounds: Any, whose: Any, length: Any) -> Any:
    return _cut(whose, bounds, length)


def steps(pieces: Any, source: Any, sequence: Any, keys: Keys, length: int = 1) -> Any:
    """The steps of `pieces` or, once sharded, of this process's own files, `length` at a time.

    Which of the two is decided once for each piece, so that a step costs little.
    """
    drawn = (keys.drawn(), keys.drawn())  # each is iterated on its own
    return built(
        _steps,
        *(each._variant_tensor for each in (*drawn, pieces)),
        source,
        sequence,
        tf.constant(keys.shown, tf.int64),
        tf.constant(keys.known),
        tf.constant(length, tf.int64),
    )


def _steps(
    drawn: Any,
    drawn_again: Any,
    pieces: Any,
    source: Any,
    sequence: Any,
    seed: Any,
    is_known: Any,
    length: Any,
) -> Any:
    left, left_again = (
        _numbers_left(tf.data.experimental.from_variant(each, DRAWN), seed, is_known)
        for each in (drawn, drawn_again)
    )
    bounds = tf.data.experimental.from_variant(pieces, tf.TensorSpec([2], tf.int64))
    # Pieces come second in zip: a sharded process that has no piece must not ask for one.
    everything = tf.data.Dataset.zip((flat_map(left, _unless_sharded), bounds))
    own = flat_map(left_again, _if_sharded, source, sequence)
    return flat_map(everything.concatenate(own), _cut, length)


def _cut(whose: Any, bounds: Any, length: Any) -> Any:
    begin, end = tf.unstack(bounds)
    begins = tf.range(begin, end, length)
    ends = tf.minimum(begins + length, end)
    numbers = tf.stack([begins, ends], axis=1)
    return tf.data.Dataset.from_tensor_slices(
        tf.concat([_copies(whose, tf.size(begins)), numbers], axis=1)
    )


def _copies(vector: Any, count: Any) -> Any:
    """Rows for from_tensor_slices. Starting a map() would take milliseconds."""
    return tf.broadcast_to(vector, [count, 3])


def _numbers_left(drawn: Any, seed: Any, is_known: Any) -> Any:
    """The first two of 0, 1, 2, ... that sharding leaves to this process, and the key twice."""
    numbers = flat_map(drawn, _count, seed, is_known)
    return flat_map(numbers, _pass_on).take(2).batch(2, drop_remainder=True)


def _count(drawn: Any, seed: Any, is_known: Any) -> Any:
    unknown = tf.bitwise.bitwise_xor(key_of(drawn), seed)
    key = tf.data.Dataset.from_tensors(tf.where(is_known, seed, unknown)).repeat()
    return tf.data.Dataset.zip((tf.data.Dataset.range(ENDLESS), key))


def _pass_on(number: Any, key: Any) -> Any:
    show_a_reader()
    return tf.data.Dataset.from_tensors((number, key))


def _unless_sharded(numbers: Any, key: Any) -> Any:
    of_all = tf.stack([tf.unstack(key)[0], *ALL_FILES])
    # Many copies: a symbolic checkpoint grows with each repetition.
    every = tf.data.Dataset.from_tensor_slices(_copies(of_all, _COPIES)).repeat()
    return every.take(tf.where(_is_sharded(numbers), tf.constant(0, tf.int64), -1))


def _if_sharded(numbers: Any, key: Any, source: Any, sequence: Any) -> Any:
    first, second = tf.unstack(numbers)  # indexing would take five ops
    stride = tf.where(_is_sharded(numbers), second - first, 0)  # 0: no files
    files = tf.stack([first, stride])
    count = tf.ensure_shape(ops.tfrfast_step_count(source, sequence, files), [])
    size = tf.constant(_MAX_PIECE_STEPS, tf.int64)
    pieces = tf.data.Dataset.range((count - 1) // size + 1)
    whose = tf.stack([tf.unstack(key)[0], first, stride])
    return serial_map(pieces, _own_piece, whose, count, size)


def _own_piece(number: Any, whose: Any, count: Any, size: Any) -> Any:
    return whose, _bounds(number, count, size)


def _is_sharded(numbers: Any) -> Any:
    return tf.reduce_any(tf.not_equal(numbers, ALL_FILES))
