"""The steps of an iteration, and the files that they read: all files, or this process's own.

To shard by file, TensorFlow puts a shard() before a flat_map whose function reads files. One such
flat_map here passes on 0, 1, 2, ... The first two numbers that sharding leaves tell this process
which files are its own, and their steps are counted when the iteration begins. Without sharding,
the steps come in pieces, which tf.data service may split among workers.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.functions import flat_map, serial_map, show_a_reader
from tfrfast.tensorflow.keys import ENDLESS, Keys, key_of
from tfrfast.tensorflow.library import ops

# Files are given as the first one and a stride.
ALL_FILES = (0, 1)
_MAX_PIECE_STEPS = 64
# If there are few steps, pieces are smaller, so that there are still about this many.
_PIECES = 32
_COPIES = 4096


def pieces_of_steps(count: int) -> Any:
    """The steps 0 to `count` - 1 in pieces: where each begins and ends."""
    size = max(1, min(_MAX_PIECE_STEPS, count // _PIECES))
    pieces = tf.data.Dataset.range(-(-count // size))
    return flat_map(pieces, _piece, tf.constant(count, tf.int64), tf.constant(size, tf.int64))


def _piece(number: Any, count: Any, size: Any) -> Any:
    show_a_reader()
    return tf.data.Dataset.from_tensors(_bounds(number, count, size))


def _bounds(number: Any, count: Any, size: Any) -> tuple[Any, Any]:
    begin = number * size
    return begin, begin + tf.minimum(count - begin, size)


def pieces_of_files(source: Any, sequence: Any, files: Any) -> Any:
    """The blocks of a source in file order, as far as the sequence needs them."""
    return flat_map(files, _blocks_of_file, source, sequence)


def _blocks_of_file(file: Any, source: Any, sequence: Any) -> Any:
    show_a_reader()
    begin, end = ops.tfrfast_blocks_of_file(source, sequence, file)
    return tf.data.Dataset.from_tensors((tf.ensure_shape(begin, []), tf.ensure_shape(end, [])))


def steps_of_pieces(pieces: Any) -> Any:
    """The numbers of all steps, without files or keys."""
    return flat_map(pieces, tf.data.Dataset.range)


def steps(pieces: Any, source: Any, sequence: Any, keys: Keys) -> Any:
    """((key, files), step) for each step of `pieces` or, once sharded, of this process's own files.

    Which of the two is decided once for each piece, so that a step costs little.
    """
    return flat_map(_pieces(pieces, source, sequence, keys), _steps_of_piece)


def runs(pieces: Any, source: Any, sequence: Any, length: int) -> Any:
    """(files, begin, end) of up to `length` steps at a time, where no key is needed."""
    own = _pieces(pieces, source, sequence, Keys(0, known=True))
    return flat_map(own, _runs_of_piece, tf.constant(length, tf.int64))


def _pieces(pieces: Any, source: Any, sequence: Any, keys: Keys) -> Any:
    """((key, files), (begin, end)) for each of the pieces."""
    # Pieces come second in zip: a sharded process that has no piece must not ask for one.
    everything = tf.data.Dataset.zip((flat_map(_numbers_left(keys), _unless_sharded), pieces))
    own = flat_map(_numbers_left(keys), _if_sharded, source, sequence)
    return everything.concatenate(own)


def _runs_of_piece(_: Any, files: Any, begin: Any, end: Any, length: Any) -> Any:
    begins = tf.range(begin, end, length)
    ends = tf.minimum(begins + length, end)
    return tf.data.Dataset.from_tensor_slices((_copies(files, tf.size(begins)), begins, ends))


def _steps_of_piece(key: Any, files: Any, begin: Any, end: Any) -> Any:
    numbers = tf.range(begin, end)
    return tf.data.Dataset.from_tensor_slices((_copies((key, files), tf.size(numbers)), numbers))


def _copies(values: Any, count: Any) -> Any:
    """Repeats each tensor for from_tensor_slices. Starting a map() would take milliseconds."""
    return tf.nest.map_structure(
        lambda value: tf.broadcast_to(value, tf.concat([[count], tf.shape(value)], axis=0)), values
    )


def _numbers_left(keys: Keys) -> Any:
    """The first two of 0, 1, 2, ... that sharding leaves to this process, and the key twice."""
    numbers = flat_map(
        keys.drawn(), _count, tf.constant(keys.shown, tf.int64), tf.constant(keys.known)
    )
    return flat_map(numbers, _pass_on).take(2).batch(2, drop_remainder=True)


def _count(drawn: Any, seed: Any, is_known: Any) -> Any:
    unknown = tf.bitwise.bitwise_xor(key_of(drawn), seed)
    key = tf.data.Dataset.from_tensors(tf.where(is_known, seed, unknown)).repeat()
    return tf.data.Dataset.zip((tf.data.Dataset.range(ENDLESS), key))


def _pass_on(number: Any, key: Any) -> Any:
    show_a_reader()
    return tf.data.Dataset.from_tensors((number, key))


def _unless_sharded(numbers: Any, key: Any) -> Any:
    of_all = (key[0], tf.constant(ALL_FILES, tf.int64))
    # Many copies: a symbolic checkpoint grows with each repetition.
    every = tf.data.Dataset.from_tensor_slices(_copies(of_all, _COPIES)).repeat()
    return every.take(tf.where(_is_sharded(numbers), tf.constant(0, tf.int64), -1))


def _if_sharded(numbers: Any, key: Any, source: Any, sequence: Any) -> Any:
    stride = tf.where(_is_sharded(numbers), numbers[1] - numbers[0], 0)  # 0: no files
    files = tf.stack([numbers[0], stride])
    count = tf.ensure_shape(ops.tfrfast_step_count(source, sequence, files), [])
    size = tf.constant(_MAX_PIECE_STEPS, tf.int64)
    pieces = tf.data.Dataset.range((count - 1) // size + 1)
    return serial_map(pieces, _own_piece, key[0], files, count, size)


def _own_piece(number: Any, key: Any, files: Any, count: Any, size: Any) -> Any:
    return (key, files), _bounds(number, count, size)


def _is_sharded(numbers: Any) -> Any:
    return tf.reduce_any(tf.not_equal(numbers, ALL_FILES))
