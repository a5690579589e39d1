"""The steps of an iteration, and the files that each is about: all of them, or this process's.

TensorFlow shards by file by putting a shard() in front of a flat_map whose function reads files.
One of those here passes on 0, 1, 2, ..., and from the first two that are left this process learns
which files are its own: their steps are counted when the iteration begins. Where nothing was
sharded the steps come in pieces, which tf.data service may split among workers.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast._tensorflow.functions import as_it_stands, flat_map, show_a_reader
from tfrfast._tensorflow.keys import ENDLESS, Keys, for_ever
from tfrfast._tensorflow.library import ops

# Files are told by the first one and a stride.
ALL_FILES = (0, 1)
_MOST_PIECE_STEPS = 64
# Where there are few steps, pieces are smaller, so that there are about so many.
_PIECES = 32


def pieces_of_steps(count: int) -> Any:
    """0 to `count` - 1."""
    size = max(1, min(_MOST_PIECE_STEPS, count // _PIECES))
    pieces = tf.data.Dataset.range(-(-count // size))
    return flat_map(pieces, _piece, tf.constant(count, tf.int64), tf.constant(size, tf.int64))


def _piece(number: Any, count: Any, size: Any) -> Any:
    show_a_reader()
    begin = number * size
    return tf.data.Dataset.range(begin, begin + tf.minimum(count - begin, size))


def pieces_of_files(source: Any, files: Any) -> Any:
    """The blocks of a source that streams, which are counted file by file."""
    return flat_map(files, _blocks_of_file, source)


def _blocks_of_file(file: Any, source: Any) -> Any:
    show_a_reader()
    begin, end = ops.tfrfast_blocks_of_file(source, file)
    return tf.data.Dataset.range(tf.ensure_shape(begin, []), tf.ensure_shape(end, []))


def steps(pieces: Any, source: Any, sequence: Any, keys: Keys) -> Any:
    """((key, files), step) of each step: of all `pieces` or, once sharded, of this process's."""
    # Pieces come second: where there are fewer than processes, none may be asked for.
    everything = tf.data.Dataset.zip((flat_map(_numbers_left(keys), _unless_sharded), pieces))
    own = flat_map(_numbers_left(keys), _if_sharded, source, sequence)
    return everything.concatenate(own)


def _numbers_left(keys: Keys) -> Any:
    """The first two of 0, 1, 2, ... that sharding leaves to this process, and the key twice."""
    numbers = flat_map(
        keys.drawn(), _count, tf.constant(keys.seed, tf.int64), tf.constant(keys.known)
    )
    return flat_map(numbers, _pass_on).take(2).batch(2, drop_remainder=True)


def _count(drawn: Any, seed: Any, is_known: Any) -> Any:
    key = tf.data.Dataset.from_tensors(tf.where(is_known, seed, drawn)).repeat()
    return tf.data.Dataset.zip((tf.data.Dataset.range(ENDLESS), key))


def _pass_on(number: Any, key: Any) -> Any:
    show_a_reader()
    return tf.data.Dataset.from_tensors((number, key))


def _unless_sharded(numbers: Any, key: Any) -> Any:
    count = tf.where(_is_sharded(numbers), tf.constant(0, tf.int64), ENDLESS)
    return for_ever((key[0], tf.constant(ALL_FILES, tf.int64)), count)


def _if_sharded(numbers: Any, key: Any, source: Any, sequence: Any) -> Any:
    stride = tf.where(_is_sharded(numbers), numbers[1] - numbers[0], 0)  # 0: no files
    files = tf.stack([numbers[0], stride])
    count = tf.ensure_shape(ops.tfrfast_step_count(source, sequence, files), [])
    return tf.data.Dataset.range(count).map(as_it_stands(lambda step: ((key[0], files), step)))


def _is_sharded(numbers: Any) -> Any:
    return tf.reduce_any(tf.not_equal(numbers, ALL_FILES))
