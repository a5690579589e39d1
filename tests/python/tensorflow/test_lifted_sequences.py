"""Functions that parse SequenceExamples, with a lifted parse, beside TensorFlow's own class."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import outcomes
from record_files import flip_payload_byte, write_shard
from wire_examples import byte_strings, entry, field, floats, ints

tf = pytest.importorskip("tensorflow")

CONTEXT: dict[str, Any] = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "pair": tf.io.FixedLenFeature([2], tf.float32, [0.5, -1.0]),
    "labels": tf.io.VarLenFeature(tf.int64),
    "tags": tf.io.RaggedFeature(tf.string),
}
LISTS: dict[str, Any] = {
    "frames": tf.io.FixedLenSequenceFeature([], tf.string),
    "points": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
    "words": tf.io.VarLenFeature(tf.string),
    "numbers": tf.io.RaggedFeature(tf.int64),
}


def record(number: int, **changed: bytes | None) -> bytes:
    """SequenceExample `number`, with other encoded features or without them (None)."""
    context = {"id": ints(number), "labels": ints(*range(number % 4))}
    if number % 3:
        context |= {"pair": floats(number, 2.0), "tags": byte_strings(b"t" * number)}
    frames = [byte_strings(bytes([number] * 4)) for _ in range(number % 5)]
    words = [byte_strings(*[b"w%d" % each] * each) for each in range(number % 4)]
    steps = {
        "frames": frames,
        "words": words,
        "numbers": [ints(*range(each)) for each in range(number % 3)],
    }
    if number % 2:
        steps["points"] = [floats(each, number) for each in range(number % 6)]
    lists = {name: b"".join(field(1, each) for each in list) for name, list in steps.items()}
    for name, feature in changed.items():
        part = context if name in CONTEXT else lists
        part.pop(name, None)
        if feature is not None:
            part[name] = feature
    parts = (b"".join(entry(key.encode(), each[key]) for key in each) for each in (context, lists))
    return b"".join(field(place, part) for place, part in enumerate(parts, 1))


HALVES = tf.io.RaggedFeature.UniformRowLength(1)


def parsed(record: Any) -> Any:
    return tf.io.parse_single_sequence_example(record, CONTEXT, LISTS)


def dense(record: Any) -> Any:
    context, lists = parsed(record)
    return context["id"] * 2, context["pair"], tf.size(lists["frames"])


def padded(record: Any) -> Any:
    context, lists = parsed(record)
    return context["labels"].values, lists["frames"], lists["points"] * 2.0


def values(record: Any) -> Any:
    context, lists = parsed(record)
    return context["tags"], lists["words"].values, lists["numbers"].flat_values


def decoded(record: Any) -> Any:
    """Like a reader of videos: frames of bytes become numbers, row by row."""
    context, lists = parsed(record)
    frames = tf.reshape(tf.io.decode_raw(lists["frames"], tf.uint8), [-1, 4])
    frames = tf.cast(frames, tf.float32)[:3]
    frames = tf.pad(frames, [[0, 3 - tf.shape(frames)[0]], [0, 0]])
    return context["id"], context["labels"], tf.ensure_shape(frames, [3, 4])


def only_context(record: Any) -> Any:
    return tf.io.parse_single_sequence_example(record, CONTEXT, {})[0]


CHAINS: dict[str, Callable[[Any], Any]] = {
    "batch": lambda records: records.map(dense).batch(4),
    "full batches": lambda records: records.map(dense).batch(4, drop_remainder=True),
    "padded_batch": lambda records: records.map(padded).padded_batch(4),
    "ragged_batch": lambda records: records.map(values).ragged_batch(4),
    "row by row": lambda records: records.map(decoded).batch(4),
    "the context": lambda records: records.map(only_context).batch(4),
}


@pytest.fixture
def make_file(tmp_path: Path) -> Callable[[list[bytes]], str]:
    return lambda records: write_shard(tmp_path / "sequences", records)


def batches(record: Any) -> Any:
    """Returns all results of a parse of a batch."""
    wanted = {**LISTS, "halves": tf.io.RaggedFeature(tf.int64, "numbers", [HALVES])}
    context, lists, lengths = tf.io.parse_sequence_example(record, CONTEXT, wanted)
    return context, lists, lengths, tf.shape(lists["points"]), tf.shape(lists["frames"])


def is_lifted(dataset: Any) -> bool:
    return bool(tfr.explain(dataset).steps[0].fused)


def pair(file: str, chain: str) -> tuple[Any, Any]:
    ours, theirs = (
        CHAINS[chain](each(file)) for each in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert ours.element_spec == theirs.element_spec
    assert is_lifted(ours)
    return ours, theirs


@pytest.mark.parametrize("chain", CHAINS)
def test_batches_are_tensorflows(make_file: Callable[[list[bytes]], str], chain: str) -> None:
    ours, theirs = pair(make_file([record(number) for number in range(11)]), chain)
    assert outcomes(ours) == outcomes(theirs)


BAD = {
    "a required list is missing": record(5, frames=None),
    "a required feature is missing": record(5, id=None),
    "a step of another size": record(5, points=field(1, floats(1.0))),
    "a step of another type": record(5, words=field(1, ints(1))),
    "a feature of another type": record(5, labels=floats(1.0)),
    "no SequenceExample": b"\xff",
    "nothing": b"",
    "damage": b"",
}


@pytest.mark.parametrize("bad", BAD)
def test_a_record_that_does_not_fit_is_tensorflows_error(
    make_file: Callable[[list[bytes]], str], bad: str
) -> None:
    records = [record(number) for number in range(11)]
    if bad != "damage":
        records[6] = BAD[bad]
    file = make_file(records)
    if bad == "damage":
        flip_payload_byte(file, records, 6)
    for chain in ("batch", "padded_batch", "row by row"):
        ours, theirs = pair(file, chain)
        found, expected = outcomes(ours), outcomes(theirs)
        assert found[:2] == expected[:2]
        assert isinstance(expected[1], type)


def test_single_elements_come_from_blocks(make_file: Callable[[list[bytes]], str]) -> None:
    file = make_file([record(number) for number in range(40)])
    plain = tf.data.TFRecordDataset(file).map(padded)
    ours = tfr.accelerate(plain)
    assert "blocks" in str(tfr.explain(ours))
    assert outcomes(ours) == outcomes(plain)


def pair_of_batches(file: str, drop_remainder: bool = False) -> tuple[Any, Any]:
    ours, theirs = (
        each(file).batch(4, drop_remainder).map(batches)
        for each in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert ours.element_spec == theirs.element_spec
    assert "its parse is taken out" in str(tfr.explain(ours))
    return ours, theirs


@pytest.mark.parametrize("drop_remainder", [False, True])
def test_parsed_batches_are_tensorflows(
    make_file: Callable[[list[bytes]], str], drop_remainder: bool
) -> None:
    choice = random.Random(7)
    optional = [*(set(CONTEXT) - {"id"}), *(set(LISTS) - {"frames"})]
    records = [
        record(choice.randrange(12), **dict.fromkeys(choice.sample(optional, choice.randrange(5))))
        for _ in range(50)
    ]
    records[:4] = [record(0, **dict.fromkeys(optional))] * 4
    ours, theirs = pair_of_batches(make_file(records), drop_remainder)
    assert outcomes(ours) == outcomes(theirs)


@pytest.mark.parametrize("bad", [each for each in BAD if each != "damage"])
def test_a_bad_record_fails_its_parsed_batch(
    make_file: Callable[[list[bytes]], str], bad: str
) -> None:
    records = [record(number) for number in range(11)]
    records[6] = BAD[bad]
    ours, theirs = pair_of_batches(make_file(records))
    found, expected = outcomes(ours), outcomes(theirs)
    assert found == expected
    assert isinstance(expected[1], type)


@pytest.mark.parametrize("name", ["words", "numbers"])
def test_the_steps_of_values_are_tensorflows(
    make_file: Callable[[list[bytes]], str], name: str
) -> None:
    """No column has the places of values in steps."""
    file = make_file([record(number) for number in range(5)])
    ours, theirs = (
        each(file).map(lambda record: parsed(record)[1][name]).batch(1)
        for each in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert not is_lifted(ours)
    assert outcomes(ours) == outcomes(theirs)
