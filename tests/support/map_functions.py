"""Functions of records that parse: those whose parse is lifted out, and those whose parse is not."""

from __future__ import annotations

import collections
import functools
import os
from collections.abc import Callable
from typing import Any
from unittest import mock

import tensorflow as tf

import tfrfast as tfr
from random_functions import table

FEATURES: dict[str, Any] = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "label": tf.io.FixedLenFeature([], tf.int64),
    "dense": tf.io.FixedLenFeature([3], tf.float32),
    "name": tf.io.FixedLenFeature([], tf.string),
    "absent": tf.io.FixedLenFeature([2], tf.string, [b"one", b"two"]),
    "missing": tf.io.FixedLenFeature([], tf.float32, 0.5),
}
#: Features with any number of values. `dense` has three in each record.
VARIABLE: dict[str, Any] = {
    "id": FEATURES["id"],
    "name": FEATURES["name"],
    "words": tf.io.VarLenFeature(tf.string),
    "numbers": tf.io.VarLenFeature(tf.int64),
    "dense": tf.io.VarLenFeature(tf.float32),
    "weights": tf.io.FixedLenSequenceFeature([], tf.float32, True),
    "none": tf.io.FixedLenSequenceFeature([], tf.int64, True),
}
RAGGED: dict[str, Any] = {
    "divided": tf.io.RaggedFeature(
        tf.int64, "numbers", [tf.io.RaggedFeature.RowLengths("lengths")], row_splits_dtype=tf.int32
    ),
    "placed": tf.io.SparseFeature("positions", "marks", tf.int64, 10),
    "id": FEATURES["id"],
    "words": VARIABLE["words"],
}
Pair = collections.namedtuple("Pair", ["left", "right"])

Function = Callable[[Any], Any]
#: The functions of one map() or of two, and the first op that runs row by row: "" if none does, and
#: None if TensorFlow's version decides.
Lifted = tuple[Function | tuple[Function, Function], str | None]


def parse(record: Any) -> Any:
    return tf.io.parse_single_example(record, FEATURES)


def parsed_of(features: dict[str, Any], make: Function = lambda row: row) -> Function:
    return lambda record: make(tf.io.parse_single_example(record, features))


def of_lists(make: Function) -> Function:
    return parsed_of(VARIABLE, make)


def popped(record: Any) -> Any:
    parsed = parse(record)
    label = parsed.pop("label")
    return parsed, label


def computed(record: Any) -> Any:
    parsed = parse(record)
    label = tf.one_hot(parsed["label"], 2)
    return {
        "scaled": (parsed["dense"] - 0.5) / 0.25,
        "small": tf.cast(parsed["id"] * 3, tf.int32),
        "column": parsed["dense"][:, tf.newaxis],
        "length": tf.strings.length(parsed["name"]),
        "constant": tf.constant([1, 2]),
        "found": table().lookup(tf.strings.as_string(parsed["id"])),
        "again": Pair(parsed["name"], (parsed["name"], parsed["id"])),
    }, label


@tf.function
def doubled(x: Any) -> Any:
    return x + x, tf.one_hot(1, 3) + x


@tf.function
def helped(record: Any) -> Any:
    parsed = parse(record)
    twice, more = doubled(parsed["dense"])
    return parsed["name"], doubled(parsed["missing"])[0], twice, more, parsed["label"]


def placed_beside(record: Any) -> Any:
    dense = parse(record)["dense"]
    with tf.compat.v1.colocate_with(dense + 1.0):  # which is not cut out with the part
        return tf.linalg.matmul(dense[:, tf.newaxis], dense[tf.newaxis]), tf.constant(7)


def hashed(row: Any) -> Any:
    words = row["words"]
    buckets = tf.strings.to_hash_bucket_fast(tf.strings.lower(words.values), 100)
    sparse = tf.SparseTensor(words.indices, buckets * 2 + 1, words.dense_shape)
    return sparse, tf.size(buckets), tf.shape(words), tf.shape(row["weights"]), row["none"]


def parts(row: Any) -> Any:
    """Parts of lists, each of which has one length in all rows."""
    dense, numbers = row["dense"].values, row["numbers"].values
    return (
        tf.size(tf.sparse.to_dense(row["words"])),
        tf.reshape(dense[1:], [2]),
        tf.reshape(dense[-2:], [2]),
        tf.reshape(dense[-3:-1], [1, 2]),
        tf.reshape(tf.sparse.to_dense(row["dense"]), [3, 1]) * 2.0,
        tf.reshape(dense[:1], []),
        tf.size(numbers[-3:-1]),
        tf.size(numbers[2:1]),
        tf.shape(row["weights"][1:3]),
    )


def whole_rows(row: Any) -> Any:
    """Lists as a whole, for which there are no rules."""
    words = tf.pad(
        tf.sparse.to_dense(row["words"])[:3], [[0, 3 - tf.size(row["words"].values[:3])]]
    )
    numbers = row["numbers"].values
    return (
        tf.ensure_shape(words, [3]),
        tf.strings.reduce_join(row["words"].values, separator="-"),
        tf.reduce_sum(numbers[1:] - numbers[:-1]),  # of equal lengths, unless there is no number
        tf.reduce_sum(row["weights"]),
        tf.size(tf.boolean_mask(numbers, numbers > 0)),
        tf.ensure_shape(row["dense"].values, [3])[1:] / 3.0,
        tf.reduce_sum(row["words"].indices),
        tf.cond(tf.size(numbers) > 1, lambda: tf.size(row["words"].values), lambda: -1),
    )


def asserting(record: Any) -> Any:
    parsed = parse(record)
    tf.debugging.assert_less(parsed["id"], tf.constant(1000, tf.int64))
    return parsed


@tf.function
def asserting_inside(record: Any) -> Any:
    parsed = parse(record)
    tf.debugging.Assert(tf.strings.length(parsed["name"]) < 100, ["a name is too long"])
    with tf.control_dependencies([tf.debugging.assert_equal(parsed["label"], parsed["id"] % 2)]):
        return parsed["dense"] + 1.0


def chosen(record: Any) -> Any:
    parsed = parse(record)
    dense = parsed["dense"]
    return tf.cond(parsed["id"] > 9, lambda: 60 // parsed["id"], lambda: parsed["id"]), tf.cond(
        dense[0] > 0.5, lambda: dense * 2.0, lambda: tf.linalg.matvec(tf.linalg.diag(dense), dense)
    )


def pictures(record: Any) -> Any:
    parsed = parse(record)
    pixels = tf.reshape(tf.cast(parsed["dense"] * 255.0, tf.uint8), [1, 1, 3])
    image = tf.io.decode_png(tf.io.encode_png(pixels), channels=3)
    return image, tf.image.resize(image, [2, 2]), tf.one_hot(parsed["label"], 3)


@tf.function
def in_a_loop(record: Any) -> Any:
    parsed = parse(record)
    power = tf.constant(1, tf.int64)
    while power < parsed["id"]:
        power *= 2
    return {"power": power, "twice": parsed["id"] * 2}


def of_a_list(record: Any) -> Any:
    parsed = parse(record)
    return tf.map_fn(tf.strings.unicode_script, tf.cast(parsed["dense"] * 300, tf.int32))


def of_any_rank(record: Any) -> Any:
    parsed = parse(record)
    serialized = tf.io.serialize_tensor(tf.reshape(parsed["dense"], [1, 3]))
    return tf.io.parse_tensor(serialized, tf.float32), parsed["id"] + 1


def stateless(record: Any) -> Any:
    parsed = parse(record)
    pieces = tf.strings.split(parsed["absent"], "n").flat_values
    return tf.random.stateless_normal([2], [1, parsed["id"]]), pieces, parsed["dense"] * 2.0


def without_rules(record: Any) -> Any:
    """Ops of sound, tables and images that run row by row."""
    dense = parse(record)["dense"]
    line = tf.strings.reduce_join(tf.strings.as_string(dense), separator=",")
    sound = tf.audio.encode_wav(dense[:, tf.newaxis] - 0.5, 16000)
    return (
        tf.stack(tf.io.decode_csv(line, [0.0] * 3)),
        tf.squeeze(tf.audio.decode_wav(sound, 1, 3)[0], -1),
        tf.searchsorted([0.2, 0.5, 0.8], dense),
        tf.image.resize_with_crop_or_pad(dense[tf.newaxis, :, tf.newaxis], 2, 2),
    )


#: Functions whose parse is lifted.
LIFTED: dict[str, Lifted] = {
    "as parsed": (parse, ""),
    "parse_example": (lambda record: tf.io.parse_example(record, FEATURES), ""),
    "popped": (popped, ""),
    "computed": (computed, ""),
    "tf.functions in each other": (helped, ""),
    "lists": (of_lists(lambda row: (row["words"], row["numbers"])), ""),
    "values of lists": (of_lists(hashed), ""),
    "parts of lists": (of_lists(parts), ""),
    "ragged and sparse": (parsed_of(RAGGED), None),
    "ragged, and changed": (
        parsed_of(RAGGED, lambda row: (row["divided"], row["id"] + 1)),
        None,
    ),
    "lists from map to map": ((of_lists(lambda row: row["words"].values), tf.size), ""),
    "whole lists": (of_lists(whole_rows), "Pad"),
    "asserting": (asserting, "If"),
    "asserting in a tf.function": (asserting_inside, "Assert"),
    "choosing": (chosen, "StatelessIf"),
    "pictures": (pictures, "Cast"),
    "without rules": (without_rules, "ReduceJoin"),
    "loop": (in_a_loop, "StatelessWhile"),
    "tf.map_fn": (of_a_list, "TensorList"),
    "matmul": (placed_beside, "MatMul"),
    "of any rank": (of_any_rank, "SerializeTensor"),
    "random of the record": (stateless, "StringSplit"),
    "choices in two maps": (
        (chosen, lambda n, x: (tf.size(tf.strings.split(tf.strings.as_string(n))), x * 2.0)),
        "StatelessIf",
    ),
}


def divided(record: Any) -> Any:
    return tf.constant(60, tf.int64) // (parse(record)["id"] - 9)


def png_or_not(record: Any) -> Any:
    parsed = parse(record)
    pixels = tf.zeros([1, 1, 1], tf.uint8)
    png = tf.where(parsed["id"] == 9, b"no image", tf.io.encode_png(pixels))
    return tf.io.decode_png(png, channels=1), parsed["id"]


def asserting_of_9(record: Any) -> Any:
    """Nobody needs what is asserted."""
    parsed = parse(record)
    dense = parsed["dense"]
    product = tf.linalg.matmul(dense[tf.newaxis], dense[:, tf.newaxis])
    nine = tf.constant(9, tf.int64)
    tf.debugging.assert_less(product * tf.cast(parsed["id"] >= nine, tf.float32), 1e-9, "too large")
    return parsed["name"], dense


#: Functions that are lifted, and fail for some rows.
FAILING: dict[str, Function | tuple[Function, Function]] = {
    "division": divided,
    "no picture": png_or_not,
    "an assert": asserting_of_9,
    "an assert before a map": (asserting_of_9, lambda name, dense: name),
    "lists of different lengths": of_lists(lambda row: (row["numbers"].values, row["words"])),
    "a part that is missing": of_lists(lambda row: tf.strings.split(row["name"], "-")[3]),
    "a value that is missing": of_lists(lambda row: row["numbers"].values[-3]),
    "another shape": of_lists(lambda row: tf.reshape(row["numbers"].values, [2])),
    "another shape ensured": of_lists(lambda row: tf.ensure_shape(row["words"].values, [0])),
    "too long": of_lists(
        lambda row: tf.pad(row["numbers"].values, [[0, 2 - tf.size(row["numbers"].values)]])
    ),
}


def with_record(record: Any) -> Any:
    return parse(record), record


def twice(record: Any) -> Any:
    one = tf.io.parse_single_example(record, {"id": FEATURES["id"]})
    two = tf.io.parse_single_example(record, {"label": FEATURES["label"]})
    return one, two


def changed(record: Any) -> Any:
    return tf.io.parse_single_example(tf.strings.join([record, ""]), FEATURES)


@tf.function
def printing(record: Any) -> Any:
    parsed = parse(record)
    tf.print(parsed["id"], output_stream="file:///dev/null")
    return parsed


def in_python(record: Any) -> Any:
    parsed = parse(record)
    return tf.py_function(lambda number: number + 1, [parsed["id"]], tf.int64)


def seeded(record: Any) -> Any:
    parsed = parse(record)
    return parsed["id"], tf.random.uniform([2], seed=3)


def unused(record: Any) -> Any:
    parse(record)
    return tf.constant(1)


def in_steps(record: Any) -> Any:
    steps = tf.io.FixedLenSequenceFeature([3], tf.float32, True)
    return tf.io.parse_single_example(record, {"dense": steps})["dense"] * 2.0


def as_sequence(record: Any) -> Any:
    return tf.io.parse_single_sequence_example(record, FEATURES)[0]["id"] + 1


def of_keys_made_in_the_graph(record: Any) -> Any:
    key = tf.strings.join([tf.strings.substr(["idle"], 0, 2), [""]])
    return tf.raw_ops.ParseExampleV2(
        serialized=record,
        names=tf.constant([], tf.string),
        sparse_keys=tf.constant([], tf.string),
        dense_keys=tf.random.shuffle(key),
        ragged_keys=tf.constant([], tf.string),
        dense_defaults=[tf.constant([], tf.int64)],
        num_sparse=0,
        sparse_types=[],
        ragged_value_types=[],
        ragged_split_types=[],
        dense_shapes=[[]],
    )[3][0]


#: Functions whose parse is not lifted. test_refusals.py has the reasons.
NOT_LIFTED: dict[str, Function] = {
    "with the record": with_record,
    "twice": twice,
    "changed": changed,
    "printing": printing,
    "in Python": in_python,
    "random with a seed": seeded,
    "unused": unused,
    "steps of several values": in_steps,
    "as a SequenceExample": as_sequence,
    "keys": of_keys_made_in_the_graph,
}


def mapped(source: Any, functions: Function | tuple[Function, ...], *options: Any) -> Any:
    """One map() for each function."""
    all_of_them = functions if isinstance(functions, tuple) else (functions,)
    return functools.reduce(lambda made, each: made.map(each, *options), all_of_them, source)


def with_lifting(dataset: Any, lifts: bool) -> Any:
    """The dataset, planned with the process's switch of lifting on or off."""
    with mock.patch.dict(os.environ, TFRFAST_LIFT_PARSING=str(int(lifts))):
        tfr.explain(dataset)
    return dataset


def is_lifted(dataset: Any) -> bool:
    """Whether tfr.explain() says that all maps up to the batch() are lifted."""
    steps = [
        each for each in tfr.explain(dataset).steps if each.call.startswith(("map(", "batch("))
    ]
    batch = next(i for i, step in enumerate(steps) if step.call.startswith("batch("))
    return all(step.fused for step in steps[: batch + 1])
