"""Columns made of several features, of Examples and of steps of SequenceExamples, against
TensorFlow: rows that other features divide, and values whose positions are features.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrfast as tfr
from wire_examples import byte_strings, entry, example, field, floats, ints

tf = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.newest
R = tf.io.RaggedFeature


def record(**features):
    return example(*(entry(name.encode(), feature) for name, feature in features.items()))


def sequence(**lists):
    """Returns a SequenceExample with these lists of steps."""
    entries = (
        entry(name.encode(), b"".join(field(1, step) for step in steps))
        for name, steps in lists.items()
    )
    return field(2, b"".join(entries))


def parsed(records, features):
    ours = tfr.parse_example(records, features)
    theirs = tf.io.parse_example(tf.constant(records, tf.string), features)
    return ours, theirs


def assert_ragged_the_same(ours, theirs):
    assert ours.tolist() == theirs.to_list()
    while hasattr(theirs, "row_splits"):
        assert ours.row_splits.dtype == theirs.row_splits.numpy().dtype
        ours, theirs = ours.values, theirs.values


def assert_same(records, spec):
    ours, theirs = parsed(records, {"v": spec})
    assert_ragged_the_same(ours["v"], theirs["v"])


def assert_same_steps(records, features):
    _, ours, _ = tfr.parse_sequence_example(records, {}, features)
    serialized = tf.constant(records, tf.string)
    _, theirs, _ = tf.io.parse_sequence_example(serialized, {}, features)
    for name in features:
        assert_ragged_the_same(ours[name], theirs[name])


VALUES = [[1, 2, 3], [], [4]]
#: Partitions that divide three rows of such values.
PARTITIONS = {
    "row_lengths": (R.RowLengths("p"), [[2, 0, 1], [], [1]]),
    "row_splits": (R.RowSplits("p"), [[0, 2, 2, 3], [0], [0, 1]]),
    "row_starts": (R.RowStarts("p"), [[0, 2, 2], [], [0]]),
    "row_limits": (R.RowLimits("p"), [[2, 2, 3], [], [1]]),
    "value_rowids": (R.ValueRowIds("p"), [[0, 0, 2], [], [1]]),
    "uniform_row_length": (R.UniformRowLength(1), [[], [], []]),
}


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("splits", [tf.int32, tf.int64])
def test_one_partition_divides_rows_and_steps_the_same(name, splits):
    partition, parts = PARTITIONS[name]
    for dtype, make in (
        (tf.int64, ints),
        (tf.string, lambda *row: byte_strings(*(b"%d" % value for value in row))),
    ):
        records = [record(p=ints(*p), v=make(*v)) for p, v in zip(parts, VALUES, strict=True)]
        assert_same(records, R(dtype, partitions=[partition], row_splits_dtype=splits))
    for key in ("v", "w"):
        records = [
            sequence(**{"p": [ints(*p) for p in parts], key: [ints(*v) for v in VALUES]}),
            sequence(),
            sequence(**{"p": [ints(*parts[0])], key: [ints(*VALUES[0])]}),
        ]
        features = {"v": R(tf.int64, key, [partition], splits)}
        assert_same_steps(records, features | {"p": R(tf.int64, row_splits_dtype=splits)})
        assert_same_steps([], features)


def test_partitions_nest_the_same():
    outer_inner = [R.RowLengths("outer"), R.RowLengths("inner")]
    records = [
        record(outer=ints(2, 1), inner=ints(1, 2, 1), v=ints(1, 2, 3, 4)),
        record(outer=ints(), inner=ints(), v=ints()),
        record(outer=ints(1), inner=ints(2), v=ints(5, 6)),
    ]
    assert_same(records, R(tf.int64, partitions=outer_inner))
    even = [record(p=ints(1, 0, 1), v=ints(1, 2, 3, 4)), record(p=ints(2), v=ints(1, 2, 3, 4))]
    uniform, lengths = R.UniformRowLength(2), R.RowLengths("p")
    assert_same(even, R(tf.int64, partitions=[lengths, uniform]))
    whole = [record(p=ints(1, 3), v=ints(1, 2, 3, 4)), record(p=ints(2, 0), v=ints(1, 2))]
    assert_same(whole, R(tf.int64, partitions=[uniform, lengths]))
    steps = [ints(1, 2, 3, 4), ints(), ints(5, 6)]
    records = [sequence(v=steps, p=[ints(1, 1), ints(), ints(0, 1)]), sequence(v=[], p=[])]
    for partitions in ([uniform], [lengths, uniform], [uniform, R.UniformRowLength(1)]):
        assert_same_steps(records, {"v": R(tf.int64, partitions=partitions)})
    nested = sequence(
        v=[ints(1, 2, 3), ints(4)], inner=[ints(2, 1), ints(1)], outer=[ints(1, 1), ints(1)]
    )
    assert_same_steps([nested], {"v": R(tf.int64, partitions=outer_inner)})


def test_a_value_key_serves_several_columns():
    records = [record(p=ints(1, 1), w=floats(1, 2), v=ints(9))]
    assert_same(records, R(tf.float32, "w", [R.RowLengths("p")]))
    assert_same(records, R(tf.float32, value_key="w"))
    records = [sequence(w=[floats(1, 2), floats(3)], s=[byte_strings(b"x", b"")])]
    features = {
        "a": R(tf.float32, value_key="w"),
        "b": R(tf.float32, value_key="w", partitions=[R.UniformRowLength(1)]),
        "s": R(tf.string, partitions=[R.UniformRowLength(2)]),
    }
    assert_same_steps(records, features)
    records = [sequence(w=[ints(1, 2), ints()]), sequence(w=[ints(3)])]
    sparse = {"v": tfr.VarLen("int64", sparse=True, key="w")}
    _, ours, _ = tfr.parse_sequence_example(records, {}, sparse)
    _, theirs, _ = tf.io.parse_sequence_example(records, {}, {"w": tf.io.VarLenFeature(tf.int64)})
    assert (ours["v"].indices == theirs["w"].indices.numpy()).all()
    assert (ours["v"].values == theirs["w"].values.numpy()).all()


@given(st.data())
def test_random_steps(data):
    records = []
    for _ in range(data.draw(st.integers(1, 4))):
        lengths = data.draw(st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=3))
        values = [ints(*range(sum(each))) for each in lengths]
        records.append(sequence(v=values, p=[ints(*each) for each in lengths]))
    assert_same_steps(records, {"v": R(tf.int64, partitions=[R.RowLengths("p")])})


@st.composite
def placed(draw):
    """Records whose values stand at positions, all different within a record."""
    records = []
    for _ in range(draw(st.integers(1, 5))):
        places = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), unique=True))
        columns = list(zip(*places, strict=True)) or [(), ()]
        values = draw(st.lists(st.binary(max_size=4), min_size=len(places), max_size=len(places)))
        records.append(record(i=ints(*columns[0]), j=ints(*columns[1]), v=byte_strings(*values)))
    return records


@settings(deadline=None, max_examples=50)
@given(placed(), st.booleans())
def test_values_stand_where_other_features_say(records, already_sorted):
    features = {
        "two": tf.io.SparseFeature(["i", "j"], "v", tf.string, [10, 5], already_sorted),
        "v": tf.io.VarLenFeature(tf.string),
    }
    ours, theirs = parsed(records, features)
    for name in features:
        for part in ("indices", "values", "dense_shape"):
            ours_part, theirs_part = getattr(ours[name], part), getattr(theirs[name], part)
            assert np.asarray(ours_part).tolist() == theirs_part.numpy().tolist(), (name, part)


GOOD = sequence(v=[ints(1), ints(2)], p=[ints(1), ints(1)])
REFUSED = {
    "rows that do not add up": (
        [record(p=ints(1), v=ints(1)), record(p=ints(1, 5), v=ints(1, 2))],
        R(tf.int64, partitions=[R.RowLengths("p")]),
        "row 1 cannot be divided",
    ),
    "values without positions": (
        [record(i=ints(1), v=ints(1)), record(i=ints(1), v=ints(1, 2))],
        tf.io.SparseFeature("i", "v", tf.int64, 10),
        "row 1 does not have as many positions",
    ),
    "steps that do not add up": (
        [GOOD, sequence(v=[ints(1), ints(2)], p=[ints(1), ints(5)])],
        R(tf.int64, partitions=[R.RowLengths("p")], validate=True),
        "'v': step 1 of row 1 cannot be divided: its parts do not add up to its 1 values",
    ),
    "steps that nothing divides": (
        [GOOD, sequence(v=[ints(1), ints(2)], p=[ints(1)])],
        R(tf.int64, partitions=[R.RowLengths("p")], validate=True),
        "'v': row 1 does not have as many steps of 'p' as of 'v'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_divided_is_refused(name):
    records, spec, why = REFUSED[name]
    if "steps" not in name:
        with pytest.raises(tfr.FeatureError, match=why):
            tfr.parse_example(records, {"v": spec})
        return
    with pytest.raises(tfr.FeatureError, match=why) as raised:
        tfr.parse_sequence_example(records, {}, {"v": spec})
    assert raised.value.record == 1
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.parse_sequence_example(records, {}, {"v": spec})


def test_steps_that_are_requested_in_two_ways_are_refused():
    features = {"v": R(tf.int64, value_key="w"), "w": tf.io.FixedLenSequenceFeature([], "int64")}
    with pytest.raises(ValueError, match="'w' is requested in two ways"):
        tfr.parse_sequence_example([], {}, features)
    spec = tfr.VarLen("int64", sparse=True, partitions=[("uniform_row_length", 2)])
    with pytest.raises(ValueError, match="Sparse columns have no partitions"):
        tfr.parse_sequence_example([], {}, {"v": spec})


UNKNOWN = {
    "[None]": ([None], "(?i)first dimension of (the )?shape"),
    "[2, None]": ([2, None], "(?i)all dimensions of (the )?shape"),
    "no shape": (None, "(?i)missing"),
    "no rank": (tf.TensorShape(None), "(?i)all dimensions of (the )?shape"),
    "tensor shape": (tf.TensorShape([None, 2]), "(?i)first dimension of (the )?shape"),
}


@pytest.mark.parametrize(("shape", "match"), UNKNOWN.values(), ids=UNKNOWN)
def test_shapes_that_are_not_known_are_refused_as_tensorflow_does(tmp_path, shape, match):
    features = {"a": tf.io.FixedLenFeature(shape, tf.int64)}
    records = [tfr.encode_example({"a": [1, 2]})]
    for parse in (tfr.parse_example, tf.io.parse_example):
        with pytest.raises(ValueError, match=match) as raised:
            parse(records, features)
        assert type(raised.value) is ValueError
    for parse in (tfr.parse_sequence_example, tf.io.parse_sequence_example):
        with pytest.raises(ValueError, match=match):
            parse(records, features, {})
    with tfr.Writer(tmp_path / "shard") as writer:
        writer.write_batch(records)
    with pytest.raises(ValueError, match=match):
        tfr.TFRecordDataset(str(tmp_path / "shard")).batch(1).parse_example(features)
    if "first" in match:
        with pytest.raises(ValueError, match="FixedLenSequence"):
            tfr.parse_example(records, features)
    steps = tf.io.FixedLenSequenceFeature(shape, tf.int64, allow_missing=True)
    with pytest.raises(ValueError, match="shape"):
        tfr.parse_example([], {"a": steps})
    with pytest.raises(ValueError, match="shape"):
        tfr.parse_sequence_example([], {}, {"a": steps})


def test_known_shapes_of_all_kinds_are_taken():
    records = [tfr.encode_example({"a": [1, 2]})]
    for shape in (2, [2], (2,), np.array([2]), tf.TensorShape([2]), [np.int64(2)]):
        assert tfr.parse_example(records, {"a": tfr.FixedLen(shape, "int64")})["a"].shape == (1, 2)
