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

from tfrfast.tensorflow.bodies import Body, Written
from tfrfast.tensorflow.functions import built, flat_map
from tfrfast.tensorflow.keys import DRAWN, ENDLESS, WEIGHTS, Keys
from tfrfast.tensorflow.messages import Value

# Files are given as the first one and a stride.
ALL_FILES = (0, 1)
# What pieces are known by: their first step, and the one after the last.
_BOUNDS = tf.TensorSpec([2], tf.int64)
_MAX_PIECE_STEPS = 64
# If there are few steps, pieces are smaller, so that there are still about this many.
_PIECES = 8
_COPIES = 4096


def pieces_of_steps(count: int, group: int) -> Any:
    """The steps 0 to `count` - 1 in pieces of whole groups: where each begins and ends."""
    size = max(1, min(_MAX_PIECE_STEPS // group, count // _PIECES // group)) * group
    pieces = tf.data.Dataset.range(-(-count // size))
    return flat_map(pieces, _piece, tf.constant(count, tf.int64), tf.constant(size, tf.int64))


@Written
def _piece(body: Body, number: Value, count: Value, size: Value) -> Value:
    body.show_a_reader()
    return body.from_tensors(_bounds(body, number, count, size))


def _bounds(body: Body, number: Value, count: Value, size: Value) -> Value:
    begin = body.op("Mul", number, size)
    left = body.op("Sub", count, begin)
    end = body.op("AddV2", begin, body.op("Minimum", left, size))
    return body.op("Pack", [begin, end]).shaped(2)


def pieces_of_files(source: Any, sequence: Any, files: Any) -> Any:
    """The blocks of a source in file order, as far as the sequence needs them."""
    return flat_map(files, _blocks_of_file, source, sequence)


@Written
def _blocks_of_file(body: Body, file: Value, source: Value, sequence: Value) -> Value:
    body.show_a_reader()
    bounds = body.op("TfrfastBlocksOfFile", source, sequence, file)
    return body.from_tensors(body.op("Pack", bounds).shaped(2))


def steps_of_all(pieces: Any) -> Any:
    """Each step of `pieces`, which TensorFlow does not shard by file, without a key."""
    of_all = tf.constant([0, *ALL_FILES], tf.int64)
    return flat_map(pieces, _cut_up, of_all, tf.constant(1, tf.int64))


@Written
def _cut_up(body: Body, bounds: Value, whose: Value, length: Value) -> Value:
    return _steps_between(body, whose, bounds, length)


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
        tf.constant(keys.first, tf.int64),
        tf.constant(not keys.is_drawn),
        tf.constant(length, tf.int64),
    )


@Written
def _steps(
    body: Body,
    drawn: Value,
    drawn_again: Value,
    pieces: Value,
    source: Value,
    sequence: Value,
    seed: Value,
    first: Value,
    is_known: Value,
    length: Value,
) -> Value:
    left, left_again = (
        _numbers_left(body, body.elements(each, DRAWN), seed, first, is_known)
        for each in (drawn, drawn_again)
    )
    bounds = body.elements(pieces, _BOUNDS)
    # Pieces come second in zip: a sharded process that has no piece must not ask for one.
    everything = body.zip(body.flat_map(left, _unless_sharded), bounds)
    own = body.flat_map(left_again, _if_sharded, source, sequence)
    return body.flat_map(body.concatenate(everything, own), _cut, length)


@Written
def _cut(body: Body, whose: Value, bounds: Value, length: Value) -> Value:
    return _steps_between(body, whose, bounds, length)


def _steps_between(body: Body, whose: Value, bounds: Value, length: Value) -> Value:
    begin, end = body.op("Unpack", bounds, num=2)
    begins = body.op("Range", begin, end, length).shaped(None)
    ends = body.op("Minimum", body.op("AddV2", begins, length), end)
    numbers = body.op("Pack", [begins, ends], axis=1)
    whose = _copies(body, whose, body.op("Size", begins, out_type=tf.int64))
    steps = body.op("ConcatV2", [whose, numbers], body.constant(1))
    return body.from_tensor_slices(steps.shaped(None, 5))


def _copies(body: Body, vector: Value, count: Value) -> Value:
    """Rows for from_tensor_slices(). Starting a map() would take milliseconds."""
    shape = body.op("Pack", [count, body.constant(3)])
    return body.op("BroadcastTo", vector, shape).shaped(None, 3)


def _numbers_left(body: Body, drawn: Value, seed: Value, first: Value, is_known: Value) -> Value:
    """The first two of 0, 1, 2, ... that sharding leaves to this process, and the key twice."""
    numbers = body.flat_map(body.flat_map(drawn, _count, seed, first, is_known), _pass_on)
    two = body.take(numbers, body.constant(2))
    return body.batch(two, 2, drop_remainder=True, spec=(_BOUNDS, _BOUNDS))


@Written
def _count(body: Body, drawn: Value, seed: Value, first: Value, is_known: Value) -> Value:
    weighted = body.op("Mul", drawn, body.constant(WEIGHTS))
    drawn_key = body.op("Sum", weighted, body.constant(0, tf.int32))
    is_seed = body.op("LogicalOr", is_known, body.op("Equal", drawn_key, first))
    key = body.op("SelectV2", is_seed, seed, body.op("BitwiseXor", drawn_key, seed)).shaped()
    numbers = body.range(body.constant(ENDLESS))
    return body.zip(numbers, body.repeat(body.from_tensors(key)))


@Written
def _pass_on(body: Body, number: Value, key: Value) -> Value:
    body.show_a_reader()
    return body.from_tensors(number, key)


@Written
def _unless_sharded(body: Body, numbers: Value, key: Value) -> Value:
    first_key, _ = body.op("Unpack", key, num=2)
    of_all = body.op("Pack", [first_key, *map(body.constant, ALL_FILES)])
    # Many copies: a symbolic checkpoint grows with each repetition.
    copies = _copies(body, of_all, body.constant(_COPIES))
    every = body.repeat(body.from_tensor_slices(copies))
    is_sharded = _is_sharded(body, numbers)
    count = body.op("SelectV2", is_sharded, body.constant(0), body.constant(-1))
    return body.take(every, count)


@Written
def _if_sharded(body: Body, numbers: Value, key: Value, source: Value, sequence: Value) -> Value:
    first, second = body.op("Unpack", numbers, num=2)
    first_key, _ = body.op("Unpack", key, num=2)
    stride = body.op(
        "SelectV2",
        _is_sharded(body, numbers),
        body.op("Sub", second, first),
        body.constant(0),  # no files
    )
    files = body.op("Pack", [first, stride])
    count = body.op("TfrfastStepCount", source, sequence, files).shaped()
    size, one = body.constant(_MAX_PIECE_STEPS), body.constant(1)
    whole = body.op("FloorDiv", body.op("Sub", count, one), size)
    pieces = body.range(body.op("AddV2", whole, one))
    whose = body.op("Pack", [first_key, first, stride]).shaped(3)
    return body.map(pieces, _own_piece, whose, count, size)


@Written
def _own_piece(
    body: Body, number: Value, whose: Value, count: Value, size: Value
) -> tuple[Value, ...]:
    return whose, _bounds(body, number, count, size)


def _is_sharded(body: Body, numbers: Value) -> Value:
    differs = body.op("NotEqual", numbers, body.constant(ALL_FILES))
    return body.op("Any", differs, body.constant(0, tf.int32))
