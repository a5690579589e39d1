"""Parsing SequenceExamples against TensorFlow's fast parser: the same values, or both refuse."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorflow_oracle import assert_parsed_the_same
from wire_examples import (
    byte_strings,
    bytes_feature,
    entry,
    field,
    float_feature,
    floats,
    int_feature,
    ints,
    packed_floats,
    packed_ints,
    strings,
    unpacked_floats,
    unpacked_ints,
)

tf = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.newest

EXAMPLES = int(os.environ.get("TFRFAST_TEST_EXAMPLES", "100"))
thorough = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


def assert_same(records, context, sequences):
    assert_parsed_the_same("parse_sequence_example", records, context, sequences)


def sequence_example(context=(), lists=()):
    return field(1, b"".join(context)) + field(2, b"".join(lists))


def steps(*features: bytes) -> bytes:
    return b"".join(field(1, feature) for feature in features)


A = b"a"
CONTEXTS = [
    {"a": tf.io.FixedLenFeature([], tf.int64)},
    {"a": tf.io.FixedLenFeature([2], tf.int64, default_value=[7, 8])},
    {"a": tf.io.VarLenFeature(tf.int64)},
    {"a": tf.io.VarLenFeature(tf.float32)},
    {"a": tf.io.RaggedFeature(tf.string)},
]
SEQUENCES = [
    {"a": tf.io.FixedLenSequenceFeature([], tf.int64)},
    {"a": tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True)},
    {"a": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True)},
    {"a": tf.io.VarLenFeature(tf.int64)},
    {"a": tf.io.VarLenFeature(tf.float32)},
    {"a": tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64)},
    {"a": tf.io.RaggedFeature(tf.int64)},
]
FEATURES = {
    "one": ints(5),
    "two": ints(5, -6),
    "unpacked": int_feature(unpacked_ints(1, 2)),
    "no values": int_feature(b""),
    "an empty run": ints(),
    "empty": b"",
    "a float": floats(1.5),
    "unpacked floats": float_feature(unpacked_floats(1, 2)),
    "five bytes of floats": float_feature(field(1, b"\x00\x00\x80\x3f\x01")),
    "floats past the end": float_feature(b"\x0a\x7f" + b"\x00\x00\x80\x3f"),
    "strings": byte_strings(b"x", b""),
    "two runs": int_feature(packed_ints(1, 2) + packed_ints(3)),
    "two lists": ints(1) + ints(2),
    "an unknown field after": ints(1) + b"\x20\x01",
    "an unknown field before": b"\x20\x01" + ints(1),
    "one byte": b"\x1a",
    "a long empty length": b"\x1a\x80\x00",
    "a list past the end": b"\x1a\x7f" + packed_ints(1, 2),
    "a list past the end, of nothing": b"\x1a\x7f",
    "a run past the end": int_feature(b"\x0a\x7f\x01\x02"),
    "a varint cut short": int_feature(b"\x0a\x02\x05\x80"),
    "a string past the end": bytes_feature(b"\x0a\x7fxy"),
    "a list in a list": ints(1) + field(1, ints(2)),
}


@pytest.mark.parametrize("name", FEATURES)
def test_corner_of_a_context_feature_means_the_same(name):
    plain = sequence_example([entry(A, ints(1))])
    for context in CONTEXTS:
        record = sequence_example([entry(A, FEATURES[name])])
        assert_same([record], context, {})
        assert_same([record, plain], context, {})


@pytest.mark.parametrize("name", FEATURES)
def test_corner_of_a_step_means_the_same(name):
    for sequences in SEQUENCES:
        feature = FEATURES[name]
        for features in ([feature], [ints(1), feature], [feature, ints(1, 2)]):
            assert_same([sequence_example([], [entry(A, steps(*features))])], {}, sequences)


WHOLE = sequence_example([entry(A, ints(1))], [entry(A, steps(ints(2)))])
RECORDS = {
    "nothing": b"",
    "no lists": sequence_example([entry(A, ints(1))]),
    "an empty list": sequence_example([entry(A, ints(1))], [entry(A, b"")]),
    "concatenated": WHOLE + sequence_example([entry(A, ints(3))], [entry(A, steps(ints(4)))]),
    "a list before the context": field(2, entry(A, steps(ints(2)))) + field(1, entry(A, ints(1))),
    "a value before its key": field(1, field(1, field(2, ints(1)) + field(1, A))),
    "an unknown field": WHOLE + field(5, b"unknown"),
    "an unknown group": WHOLE + b"\x2b\x2c",
    "a list that is none": sequence_example([], [entry(A, b"\x12\x01\x01")]),
    "a step past the end": sequence_example([], [entry(A, b"\x0a\x7f" + ints(1))]),
    "an entry past the end": field(2, b"\x0a\x7f" + field(1, A) + field(2, steps(ints(1)))),
    "features past the end": b"\x12\x7f" + entry(A, steps(ints(1))),
    "an unwanted list": sequence_example([], [entry(b"b", b"\xff"), entry(A, steps(ints(1)))]),
}


@pytest.mark.parametrize("name", RECORDS)
def test_corner_of_a_sequence_example_means_the_same(name):
    for context in CONTEXTS:
        assert_same([RECORDS[name]], context, {})
    for sequences in SEQUENCES:
        assert_same([RECORDS[name]], {}, sequences)
        assert_same([WHOLE, RECORDS[name]], {}, sequences)


def test_a_record_that_crashes_tensorflow_is_refused():
    past_its_list = steps(byte_strings(b"x"), bytes_feature(b"\x0a\x7fw"))
    record = sequence_example([], [entry(A, past_its_list)])
    assert_same([record], {}, {"a": tf.io.VarLenFeature(tf.string)})


KINDS = {"int64": tf.int64, "float32": tf.float32, "bytes": tf.string}
KEYS = [b"a", b"b", b"a longer name"]


def values_of(draw, kind, count):
    size = {"min_size": count, "max_size": count} if count is not None else {"max_size": 5}
    if kind == "int64":
        numbers = draw(st.lists(st.integers(-(2**63), 2**63 - 1), **size))
        return int_feature(draw(st.sampled_from([packed_ints, unpacked_ints]))(*numbers))
    if kind == "float32":
        numbers = draw(st.lists(st.floats(width=32, allow_nan=False), **size))
        return float_feature(packed_floats(*numbers))
    return bytes_feature(strings(*draw(st.lists(st.binary(max_size=4), **size))))


@st.composite
def batches(draw):
    context, sequences, plan = {}, {}, []
    for key in draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=2)):
        kind = draw(st.sampled_from(list(KINDS)))
        spec = draw(
            st.sampled_from(
                [
                    tf.io.FixedLenFeature([2], KINDS[kind]),
                    tf.io.VarLenFeature(KINDS[kind]),
                    tf.io.RaggedFeature(KINDS[kind]),
                ]
            )
        )
        context[key.decode()] = spec
        fixed = isinstance(spec, tf.io.FixedLenFeature)
        plan.append((True, key, kind, 2 if fixed else None))
    for key in draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=2)):
        kind = draw(st.sampled_from(list(KINDS)))
        spec = draw(
            st.sampled_from(
                [
                    tf.io.FixedLenSequenceFeature([2], KINDS[kind], allow_missing=True),
                    tf.io.VarLenFeature(KINDS[kind]),
                    tf.io.RaggedFeature(KINDS[kind]),
                ]
            )
        )
        sequences[key.decode()] = spec
        fixed = isinstance(spec, tf.io.FixedLenSequenceFeature)
        plan.append((False, key, kind, 2 if fixed else None))
    records = []
    for _ in range(draw(st.integers(1, 4))):
        parts = {True: [], False: []}
        for is_context, key, kind, count in plan:
            if not (is_context and count) and draw(st.integers(0, 5)) == 0:
                continue
            if is_context:
                parts[True].append(entry(key, values_of(draw, kind, count)))
            else:
                number = draw(st.integers(0, 4))
                features = [values_of(draw, kind, count) for _ in range(number)]
                parts[False].append(entry(key, steps(*features)))
        record = bytearray(sequence_example(parts[True], parts[False]))
        if draw(st.integers(0, 4)) == 0:
            record[draw(st.integers(0, len(record) - 1))] = draw(st.integers(0, 255))
        records.append(bytes(record))
    return records, context, sequences


@thorough
@given(batches())
def test_random_batches_parse_the_same_or_are_refused_by_both(batch):
    records, context, sequences = batch
    if context or sequences:
        assert_same(records, context, sequences)
