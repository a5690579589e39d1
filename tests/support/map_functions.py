"""Map functions with a parse: functions whose parse is lifted, and functions whose parse is not."""

from __future__ import annotations

import collections
import functools
import os
from collections.abc import Callable
from typing import Any
from unittest import mock

import tensorflow as tf

import tfrfast as tfr

FEATURES: dict[str, Any] = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "label": tf.io.FixedLenFeature([], tf.int64),
    "dense": tf.io.FixedLenFeature([3], tf.float32),
    "name": tf.io.FixedLenFeature([], tf.string),
    "absent": tf.io.FixedLenFeature([2], tf.string, [b"one", b"two"]),
    "missing": tf.io.FixedLenFeature([], tf.float32, 0.5),
}
Pair = collections.namedtuple("Pair", ["left", "right"])

Function = Callable[[Any], Any]


def parse(record: Any) -> Any:
    return tf.io.parse_single_example(record, FEATURES)


def popped(record: Any) -> Any:
    parsed = parse(record)
    label = parsed.pop("label")
    return parsed, label


def named(record: Any) -> Any:
    parsed = parse(record)
    return Pair(parsed["name"], {"of": (parsed["id"],)})


def of_some(record: Any) -> Any:
    parsed = parse(record)
    return parsed["id"], parsed["id"]


class Parser:
    def parse(self, record: Any) -> Any:
        return tf.io.parse_single_example(record, FEATURES)


def table() -> Any:
    """A lookup table. A function makes it, so that the import of this module makes no resource."""
    keys = tf.lookup.KeyValueTensorInitializer([0, 1], [b"no", b"yes"], tf.int64, tf.string)
    return tf.lookup.StaticHashTable(keys, b"")


def computed(record: Any) -> Any:
    parsed = parse(record)
    label = tf.one_hot(parsed["label"], 2)
    return {
        "scaled": (parsed["dense"] - 0.5) / 0.25,
        "small": tf.cast(parsed["id"] * 3, tf.int32),
        "column": parsed["dense"][:, tf.newaxis],
        "length": tf.strings.length(parsed["name"]),
        "constant": tf.constant([1, 2]),
    }, label


def looked_up(found_in: Any) -> Function:
    def look_up(record: Any) -> Any:
        parsed = parse(record)
        return found_in.lookup(parsed["label"]), parsed["id"]

    return look_up


@tf.function
def doubled(x: Any) -> Any:
    return x + x, tf.one_hot(1, 3) + x


@tf.function
def helped(record: Any) -> Any:
    parsed = parse(record)
    twice, more = doubled(parsed["dense"])
    return parsed["name"], doubled(parsed["missing"])[0], twice, more, parsed["label"]


def divided(record: Any) -> Any:
    return tf.constant(60, tf.int64) // (parse(record)["id"] - 9)


def with_record(record: Any) -> Any:
    return parse(record), record


def with_length(record: Any) -> Any:
    return parse(record)["id"], tf.strings.length(record)


def twice(record: Any) -> Any:
    one = tf.io.parse_single_example(record, {"id": FEATURES["id"]})
    two = tf.io.parse_single_example(record, {"label": FEATURES["label"]})
    return one, two


def changed(record: Any) -> Any:
    return tf.io.parse_single_example(tf.strings.join([record, ""]), FEATURES)


def printing(record: Any) -> Any:
    parsed = parse(record)
    tf.print(parsed["id"], output_stream="file:///dev/null")
    return parsed


@tf.function
def printing_inside(record: Any) -> Any:
    return printing(record)


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


def asserting_of_a_product(record: Any) -> Any:
    dense = parse(record)["dense"]
    tf.debugging.assert_less(tf.linalg.matmul(dense[tf.newaxis], dense[:, tf.newaxis]), 9.0)
    return dense


def in_python(record: Any) -> Any:
    parsed = parse(record)
    return tf.py_function(lambda number: number + 1, [parsed["id"]], tf.int64)


def chosen(record: Any) -> Any:
    parsed = parse(record)
    dense = parsed["dense"]
    return tf.cond(parsed["id"] > 9, lambda: 60 // parsed["id"], lambda: parsed["id"]), tf.cond(
        parsed["label"] > 0, lambda: dense + 1.0, lambda: -dense
    )


def chosen_by_element(record: Any) -> Any:
    dense = parse(record)["dense"]
    return tf.cond(
        dense[0] > 0.5,
        lambda: dense * 2.0,
        lambda: tf.linalg.matvec(tf.linalg.diag(dense), dense),
    )


def seeded(record: Any) -> Any:
    parsed = parse(record)
    return parsed["id"], tf.random.uniform([2], seed=3)


def stateless(record: Any) -> Any:
    parsed = parse(record)
    return tf.random.stateless_normal([2], [1, parsed["id"]])


def as_png(parsed: Any) -> Any:
    pixels = tf.cast(parsed["dense"] * 255.0, tf.uint8)
    return tf.io.encode_png(tf.reshape(pixels, [1, 1, 3]))


def as_image(record: Any) -> Any:
    parsed = parse(record)
    return tf.io.decode_png(as_png(parsed), channels=3), tf.one_hot(parsed["label"], 3)


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


def in_a_loop(record: Any) -> Any:
    parsed = parse(record)
    power = tf.constant(1, tf.int64)
    while power < parsed["id"]:
        power *= 2
    return {"power": power, "twice": parsed["id"] * 2}


def split(record: Any) -> Any:
    parsed = parse(record)
    return tf.size(tf.strings.split(parsed["name"], "-")), parsed["absent"], parsed["dense"] * 2.0


def split_twice(record: Any) -> Any:
    parsed = parse(record)
    return tf.strings.split(parsed["absent"], "n").flat_values, parsed["dense"] * 2.0


def multiplied(record: Any) -> Any:
    dense = parse(record)["dense"]
    return tf.linalg.matmul(dense[:, tf.newaxis], dense[tf.newaxis]), tf.constant(7)


def of_unknown_shape(record: Any) -> Any:
    return tf.image.resize(tf.io.decode_png(as_png(parse(record))), [2, 2])


#: Functions whose parse is lifted, and whose remainder runs on whole batches.
LIFTED: dict[str, Function] = {
    "computed": computed,
    "dict": parse,
    "tf.function": tf.function(computed),
    "tf.functions in each other": helped,
    "lambda": lambda record: tf.io.parse_single_example(record, FEATURES),
    "partial": functools.partial(tf.io.parse_single_example, features=FEATURES),
    "method": Parser().parse,
    "parse_example": lambda record: tf.io.parse_example(record, FEATURES),
    "popped": popped,
    "named": named,
    "some features": of_some,
    "split": split,
}


def of_a_list(record: Any) -> Any:
    parsed = parse(record)
    return tf.map_fn(tf.strings.unicode_script, tf.cast(parsed["dense"] * 300, tf.int32))


def of_any_rank(record: Any) -> Any:
    parsed = parse(record)
    serialized = tf.io.serialize_tensor(tf.reshape(parsed["dense"], [1, 3]))
    return tf.io.parse_tensor(serialized, tf.float32), parsed["id"] + 1


#: Functions whose parse is lifted, and whose remainder runs partly row by row.
BY_ELEMENT: dict[str, tuple[Function, str]] = {
    "asserting": (asserting, "If"),
    "asserting in a tf.function": (asserting_inside, "Assert"),
    "asserting of a product": (asserting_of_a_product, "MatMul"),
    "choosing": (chosen, "StatelessIf"),
    "image": (as_image, "Cast"),
    "loop": (in_a_loop, "StatelessWhile"),
    "loop in a tf.function": (tf.function(in_a_loop), "StatelessWhile"),
    "tf.map_fn": (of_a_list, "TensorList"),
    "matmul": (multiplied, "MatMul"),
    "of any rank": (of_any_rank, "SerializeTensor"),
    "random of the record": (stateless, "StatelessRandom"),
    "resized": (of_unknown_shape, "Cast"),
    "split": (split_twice, "StringSplit"),
    "tf.cond": (chosen_by_element, "StatelessIf"),
}

NOT_LIFTED: dict[str, tuple[Function, str]] = {
    "with the record": (with_record, "for more than the parse"),
    "with its length": (with_length, "for more than the parse"),
    "twice": (twice, "parses twice"),
    "changed": (changed, "changes the record"),
    "printing": (printing, "must run"),
    "printing in a tf.function": (printing_inside, "must run"),
    "in Python": (in_python, ""),
    "random with a seed": (seeded, "random numbers"),
    "unused": (unused, "does not parse"),
    "steps of several values": (in_steps, "steps of several values"),
    "as a SequenceExample": (as_sequence, "other records than Examples"),
    "keys": (of_keys_made_in_the_graph, "not constants"),
}


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
