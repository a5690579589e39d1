"""Parsing against TensorFlow's fast parser: the same values, or both refuse."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorflow_oracle import assert_parsed_the_same
from wire_examples import (
    byte_strings,
    bytes_feature,
    entry,
    example,
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
    varint,
)

tf = pytest.importorskip("tensorflow")

EXAMPLES = int(os.environ.get("TFRFAST_TEST_EXAMPLES", "60"))
thorough = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))

DTYPES = {"int64": tf.int64, "float32": tf.float32, "bytes": tf.string}


def assert_same(records, features):
    return assert_parsed_the_same("parse_example", records, features)


FIXED = {"a": tf.io.FixedLenFeature([], tf.int64)}
DEFAULTED = {"a": tf.io.FixedLenFeature([], tf.int64, default_value=7)}
VARIABLE = {"a": tf.io.VarLenFeature(tf.int64)}
FLOATS = {"a": tf.io.VarLenFeature(tf.float32)}
ONE_FLOAT = {"a": tf.io.FixedLenFeature([], tf.float32)}
STRINGS = {"a": tf.io.VarLenFeature(tf.string)}
STEPS = {"a": tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True)}
ONE = b"\x00\x00\x80\x3f"
A = b"a"


def one(feature: bytes) -> bytes:
    return example(entry(A, feature))


CORNERS = {
    "an empty list": (one(int_feature(b"")), [FIXED, DEFAULTED, VARIABLE, STEPS]),
    "an empty packed run": (one(ints()), [FIXED, DEFAULTED, VARIABLE, STEPS]),
    "an empty Feature": (one(b""), [FIXED, DEFAULTED, VARIABLE, STEPS, STRINGS]),
    "an empty list of another kind": (one(bytes_feature(b"")), [DEFAULTED, VARIABLE]),
    "two packed runs": (one(int_feature(packed_ints(1, 2) + packed_ints(3))), [VARIABLE]),
    "packed, then unpacked": (
        one(int_feature(packed_ints(1) + unpacked_ints(5))),
        [VARIABLE, FIXED],
    ),
    "unpacked, then packed": (one(int_feature(unpacked_ints(5) + packed_ints(1))), [VARIABLE]),
    "unpacked": (one(int_feature(unpacked_ints(5, -6))), [VARIABLE, STEPS]),
    "two lists in a Feature": (one(ints(1) + byte_strings(b"x")), [VARIABLE, FIXED, STRINGS]),
    "an unknown field in a Feature": (one(b"\x28\x01" + ints(1)), [VARIABLE, FIXED]),
    "a key twice": (example(entry(A, ints(1)), entry(A, ints(2, 3))), [FIXED, VARIABLE, STEPS]),
    "a key twice, the last empty": (
        example(entry(A, ints(1, 2)), entry(A, b"")),
        [FIXED, VARIABLE, STEPS],
    ),
    "a key twice, the first cut short": (
        example(entry(A, b"\x1a\x05\xff"), entry(A, ints(2))),
        [FIXED, VARIABLE],
    ),
    "a key twice, the first no list": (
        example(entry(A, b"\x28\x05\xff"), entry(A, ints(2))),
        [FIXED, VARIABLE],
    ),
    "value before key": (example(field(1, field(2, ints(3)) + field(1, A))), [FIXED, VARIABLE]),
    "a key alone": (example(field(1, field(1, A))), [VARIABLE]),
    "a value alone": (example(field(1, field(2, ints(3)))), [VARIABLE]),
    "three fields in an entry": (
        example(field(1, field(1, A) + field(2, ints(3)) + b"\x18\x01")),
        [VARIABLE],
    ),
    "two keys and no value": (example(field(1, field(1, A) + field(1, A))), [VARIABLE]),
    "concatenated Examples": (one(ints(1)) + one(ints(2)), [FIXED, VARIABLE, STEPS]),
    "an unknown field in Features": (field(1, entry(A, ints(1)) + b"\x18\x01"), [FIXED]),
    "an unknown varint before": (b"\x18\x01" + one(ints(1)), [FIXED]),
    "an unknown fixed64 after": (one(ints(1)) + b"\x19" + bytes(8), [FIXED]),
    "an unknown fixed32 cut short": (one(ints(1)) + b"\x1d" + bytes(3), [FIXED]),
    "an unknown group": (b"\x1b\x1c" + one(ints(1)), [FIXED]),
    "a tag spelled long": (b"\x8a\x00\x00" + one(ints(1)), [FIXED]),
    "an entry's tags spelled long": (
        example(field(1, b"\x8a\x00\x01a" + b"\x92\x00" + field(2, ints(1))[1:])),
        [FIXED, VARIABLE],
    ),
    "an unknown field past the end": (one(ints(1)) + b"\x1a\x7f\x00", [FIXED]),
    "an unknown field of 4 GiB": (
        one(ints(1)) + b"\x1a\xff\xff\xff\xff\x0f" + one(ints(2)),
        [FIXED],
    ),
    "a field numbered 0": (b"\x00\x01" + one(ints(1)), [FIXED]),
    "Features past the end": (b"\x0a\x7f" + entry(A, ints(1)), [FIXED]),
    "Features of 4 GiB": (b"\x0a\xff\xff\xff\xff\x0f" + entry(A, ints(1)), [FIXED]),
    "an entry past the end": (example(b"\x0a\x7f" + field(1, A) + field(2, ints(1))), [FIXED]),
    "a Feature past the end": (example(field(1, field(1, A) + b"\x12\x7f" + ints(1))), [FIXED]),
    "a list past the end": (one(b"\x1a\x7f" + packed_ints(1, 2)), [VARIABLE]),
    "a list past the end, of nothing": (one(b"\x1a\x7f"), [VARIABLE]),
    "strings past the end, of nothing": (one(b"\x0a\x7f"), [STRINGS]),
    "a packed run past the end": (one(int_feature(b"\x0a\x7f\x01\x02")), [VARIABLE]),
    "a packed run before the end": (one(b"\x1a\x03\x0a\x01\x01\xff\xff"), [VARIABLE, FIXED]),
    "64 bits and more": (one(int_feature(field(1, b"\xff" * 9 + b"\x7f"))), [VARIABLE, FIXED]),
    "ten bytes": (one(int_feature(field(1, b"\xff" * 9 + b"\x01"))), [VARIABLE, FIXED]),
    "nine bytes": (one(int_feature(field(1, b"\xff" * 8 + b"\x01"))), [VARIABLE, FIXED]),
    "eleven bytes": (one(int_feature(field(1, b"\xff" * 10 + b"\x01"))), [VARIABLE, FIXED]),
    "a varint spelled long": (one(int_feature(field(1, b"\x80\x00"))), [VARIABLE, FIXED]),
    "a length spelled long": (one(b"\x1a\x83\x00" + packed_ints(5)), [VARIABLE, FIXED]),
    "a length of ten bytes": (
        one(b"\x1a\x83" + b"\x80" * 8 + b"\x00" + packed_ints(5)),
        [VARIABLE],
    ),
    "a length past 32 bits": (one(b"\x1a\x83\x80\x80\x80\x10" + packed_ints(5)), [VARIABLE]),
    "a varint cut short": (one(int_feature(b"\x0a\x02\x05\x80")), [VARIABLE, FIXED]),
    "five bytes of floats": (one(float_feature(field(1, ONE + b"\x01"))), [FLOATS, ONE_FLOAT]),
    "two runs of floats": (
        one(float_feature(packed_floats(1, 2) + packed_floats(3))),
        [FLOATS, ONE_FLOAT],
    ),
    "packed, then unpacked floats": (
        one(float_feature(packed_floats(1) + unpacked_floats(2))),
        [FLOATS, ONE_FLOAT],
    ),
    "unpacked, then packed floats": (
        one(float_feature(unpacked_floats(1) + packed_floats(2))),
        [FLOATS, ONE_FLOAT],
    ),
    "unpacked floats": (one(float_feature(unpacked_floats(1, 2))), [FLOATS]),
    "floats past the end": (one(float_feature(b"\x0a\x7f" + ONE)), [FLOATS, ONE_FLOAT]),
    "floats a little past the end": (
        one(float_feature(b"\x0a\x07" + ONE + b"\x01")),
        [FLOATS, ONE_FLOAT],
    ),
    "unpacked floats cut short": (one(float_feature(b"\x0d" + ONE[:3])), [FLOATS, ONE_FLOAT]),
    "two values for one": (one(ints(1, 2)), [FIXED]),
    "another kind": (one(floats(1)), [FIXED, VARIABLE, STEPS, STRINGS]),
    "nothing": (b"", [FIXED, DEFAULTED, VARIABLE, STEPS]),
    "no features": (example(), [FIXED, DEFAULTED, VARIABLE, STEPS]),
    "strings": (one(byte_strings(b"xy", b"")), [STRINGS]),
    "strings and an unknown field": (one(bytes_feature(strings(b"xy") + b"\x10\x01")), [STRINGS]),
    "a string past the end": (one(bytes_feature(b"\x0a\x7fxy")), [STRINGS]),
    "three values in steps of two": (one(ints(1, 2, 3)), [STEPS]),
    "four values in steps of two": (one(ints(1, 2, 3, 4)), [STEPS]),
    "a long key": (example(entry(b"k" * 300, ints(1)), entry(A, ints(2))), [FIXED]),
    "an unwanted feature that is no list": (
        example(entry(b"b", b"\xff\xff"), entry(A, ints(2))),
        [FIXED],
    ),
}


@pytest.mark.parametrize("name", CORNERS)
def test_corner_of_the_wire_format_means_the_same(name):
    record, specs = CORNERS[name]
    for features in specs:
        assert_same([record], features)
        # The record also comes after a record of the usual form. Then the parser expects this form.
        assert_same([one(ints(1)), record], features)


KEYS = [b"a", b"b", b"label", b"a rather long name of a feature", b"", b"f" * 140]
KINDS = ["int64", "float32", "bytes"]
int_values = st.one_of(st.integers(0, 127), st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**40))
byte_values = st.binary(max_size=20)
float_values = st.floats(width=32, allow_nan=False)


@st.composite
def feature_of(draw, kind, count=None, unpack=True):
    """A Feature of `kind`, in one of its encodings.

    TensorFlow writes past the end of a fixed column when a record has more unpacked floats than fit
    (seen as crashes of 2.15 and 2.21), so those are never unpacked here.
    """
    size = {"min_size": count, "max_size": count} if count is not None else {"max_size": 80}
    if kind == "bytes":
        return bytes_feature(strings(*draw(st.lists(byte_values, **size))))
    packed = not unpack or draw(st.integers(0, 9)) > 0
    if kind == "int64":
        values = draw(st.lists(int_values, **size))
        return int_feature((packed_ints if packed else unpacked_ints)(*values))
    values = draw(st.lists(float_values, **size))
    return float_feature((packed_floats if packed else unpacked_floats)(*values))


@st.composite
def schemas(draw, fixed_floats=True):
    """Specs, and for each spec the kind of its values, the number of values that a record must have
    (None: any), and whether values may be unpacked.
    """
    features, shapes = {}, {}
    for key in draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=4)):
        name, kind = key.decode(), draw(st.sampled_from(KINDS))
        dtype = DTYPES[kind]
        shape = draw(st.sampled_from([[], [1], [3], [2, 2], [0]]))
        count = int(np.prod(shape))
        form = draw(st.sampled_from(["fixed", "defaulted", "steps", "sparse", "ragged"]))
        fixed = form in ("fixed", "defaulted")
        if fixed and kind == "float32" and not fixed_floats:
            form, fixed = "steps", False
        if form == "fixed":
            features[name] = tf.io.FixedLenFeature(shape, dtype)
        elif form == "defaulted":
            default = [b"x"] * count if kind == "bytes" else list(range(count))
            features[name] = tf.io.FixedLenFeature(shape, dtype, default_value=default)
        elif form == "steps":
            shape = shape if count else [2]
            count = None
            padding = draw(st.sampled_from([None, b"pad" if kind == "bytes" else 3]))
            features[name] = tf.io.FixedLenSequenceFeature(
                shape, dtype, allow_missing=True, default_value=padding
            )
            count = int(np.prod(shape)) * draw(st.integers(0, 3))
        elif form == "sparse":
            features[name], count = tf.io.VarLenFeature(dtype), None
        else:
            splits = draw(st.sampled_from([tf.int32, tf.int64]))
            features[name], count = tf.io.RaggedFeature(dtype, row_splits_dtype=splits), None
        shapes[key] = (kind, count, not fixed)
    return features, shapes


@st.composite
def records_for(draw, shapes):
    """Records that mostly fit, in the forms that writers choose."""
    entries = []
    for key, (kind, count, unpack) in shapes.items():
        fate = draw(st.integers(0, 19))
        if fate == 0:
            continue
        if fate == 1:
            entries.append((key, b""))
        if fate == 2:
            kind = draw(st.sampled_from(KINDS))
        if fate == 3:
            count = None
        entries.append((key, draw(feature_of(kind, count, unpack))))
    if draw(st.booleans()):
        kind = draw(st.sampled_from(KINDS))
        entries.append((draw(st.sampled_from(KEYS)), draw(feature_of(kind, 1, False))))
    if draw(st.booleans()):
        entries = draw(st.permutations(entries))
    spelled = []
    for key, feature in entries:
        turned = draw(st.integers(0, 9)) == 0
        pair = [field(1, key), field(2, feature)]
        spelled.append(field(1, b"".join(reversed(pair) if turned else pair)))
    cut = draw(st.integers(0, len(spelled))) if draw(st.integers(0, 5)) == 0 else 0
    record = example(*spelled[cut:])
    if cut:
        record = example(*spelled[:cut]) + record
    if draw(st.integers(0, 5)) == 0:
        record += draw(st.sampled_from([b"\x18\x05", field(9, b"unknown"), b"\x15abcd"]))
    return record


@st.composite
def batches(draw):
    features, shapes = draw(schemas())
    return features, draw(st.lists(records_for(shapes), max_size=6))


@thorough
@given(batches())
def test_random_batches_parse_the_same(batch):
    features, records = batch
    if features:
        assert_same(records, features)


@st.composite
def damaged(draw, record):
    """The record after random damage."""
    data = bytearray(record)
    for _ in range(draw(st.integers(1, 3))):
        if not data:
            break
        place = draw(st.integers(0, len(data) - 1))
        accident = draw(st.integers(0, 5))
        if accident == 0:
            del data[place:]
        elif accident == 1:
            data[place] = draw(st.integers(0, 255))
        elif accident == 2:
            data[place] ^= 1 << draw(st.integers(0, 7))
        elif accident == 3:
            del data[place]
        elif accident == 4:
            hostile = [b"\xff" * 9 + b"\x01", b"\x80\x00", b"\x0b", b"\x0c", varint(2**31), b"\x1b"]
            data[place:place] = draw(st.sampled_from(hostile))
        else:
            start = draw(st.integers(0, len(data) - 1))
            data[place:place] = data[start : start + 20]
    return bytes(data)


@st.composite
def damaged_batches(draw):
    # Damage must not turn floats of a fixed shape into unpacked floats.
    features, shapes = draw(schemas(fixed_floats=False))
    whole = draw(st.lists(records_for(shapes), max_size=2))
    return features, [*whole, draw(damaged(draw(records_for(shapes))))]


@thorough
@given(damaged_batches())
def test_damaged_records_parse_the_same_or_are_refused_by_both(batch):
    features, records = batch
    if features:
        assert_same(records, features)


def test_many_random_mutations_of_one_record():
    rng = random.Random(0)
    features = {
        "i": tf.io.VarLenFeature(tf.int64),
        "f": tf.io.FixedLenSequenceFeature([3], tf.float32, allow_missing=True),
        "s": tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64),
        "n": tf.io.FixedLenFeature([], tf.int64, default_value=0),
    }
    whole = example(
        entry(b"i", ints(*range(-3, 300, 50))),
        entry(b"f", floats(1, 2, 3)),
        entry(b"s", byte_strings(b"abc", b"")),
        entry(b"n", ints(1 << 40)),
        entry(b"unwanted", ints(3)),
    )
    accepted = 0
    for _ in range(10 * EXAMPLES):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            data[rng.randrange(len(data))] = (
                rng.choice([0, 1, 2, 10, 18, 26, 127, 128, 255])
                if (rng.random() < 0.5)
                else rng.randrange(256)
            )
        accepted += assert_same([bytes(data)], features) is not None
    assert accepted
