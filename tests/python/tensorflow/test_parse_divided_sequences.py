"""Steps of SequenceExamples that are divided by other features, beside TensorFlow's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrfast as tfr
from wire_examples import byte_strings, entry, field, floats, ints

tf = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.newest
R = tf.io.RaggedFeature


def record(**lists):
    """Returns a SequenceExample with these lists of steps."""
    entries = (
        entry(name.encode(), b"".join(field(1, step) for step in steps))
        for name, steps in lists.items()
    )
    return field(2, b"".join(entries))


def assert_same(records, features):
    _, ours, _ = tfr.parse_sequence_example(records, {}, features)
    serialized = tf.constant(records, tf.string)
    _, theirs, _ = tf.io.parse_sequence_example(serialized, {}, features)
    for name in features:
        assert ours[name].tolist() == theirs[name].to_list()
        splits = ours[name], theirs[name]
        while hasattr(splits[1], "row_splits"):
            assert splits[0].row_splits.dtype == splits[1].row_splits.numpy().dtype
            splits = splits[0].values, splits[1].values


PARTITIONS = {
    "row_lengths": (R.RowLengths("p"), [[2, 0, 1], [], [1]]),
    "row_splits": (R.RowSplits("p"), [[0, 2, 2, 3], [0], [0, 1]]),
    "row_starts": (R.RowStarts("p"), [[0, 2, 2], [], [0]]),
    "row_limits": (R.RowLimits("p"), [[2, 2, 3], [], [1]]),
    "value_rowids": (R.ValueRowIds("p"), [[0, 0, 2], [], [1]]),
}
VALUES = [[1, 2, 3], [], [4]]


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("splits", [tf.int32, tf.int64])
@pytest.mark.parametrize("value_key", [None, "w"])
def test_one_partition_divides_steps_the_same(name, splits, value_key):
    partition, parts = PARTITIONS[name]
    key = value_key or "v"
    records = [
        record(**{"p": [ints(*p) for p in parts], key: [ints(*v) for v in VALUES]}),
        record(),
        record(**{"p": [ints(*parts[0])], key: [ints(*VALUES[0])]}),
    ]
    features = {"v": R(tf.int64, value_key, [partition], splits)}
    assert_same(records, features)
    assert_same(records, features | {"p": R(tf.int64, row_splits_dtype=splits)})
    assert_same([], features)


def test_uniform_lengths_and_nested_partitions():
    steps = [ints(1, 2, 3, 4), ints(), ints(5, 6)]
    records = [record(v=steps, p=[ints(1, 1), ints(), ints(0, 1)]), record(v=[], p=[])]
    uniform, lengths = R.UniformRowLength(2), R.RowLengths("p")
    for partitions in ([uniform], [lengths, uniform], [uniform, R.UniformRowLength(1)]):
        assert_same(records, {"v": R(tf.int64, partitions=partitions)})
    outer, inner = R.RowLengths("outer"), R.RowLengths("inner")
    nested = record(
        v=[ints(1, 2, 3), ints(4)], inner=[ints(2, 1), ints(1)], outer=[ints(1, 1), ints(1)]
    )
    assert_same([nested], {"v": R(tf.int64, partitions=[outer, inner])})


def test_a_value_key_serves_several_columns():
    records = [record(w=[floats(1, 2), floats(3)], s=[byte_strings(b"x", b"")])]
    features = {
        "a": R(tf.float32, value_key="w"),
        "b": R(tf.float32, value_key="w", partitions=[R.UniformRowLength(1)]),
        "s": R(tf.string, partitions=[R.UniformRowLength(2)]),
    }
    assert_same(records, features)


def test_sparse_columns_take_a_key():
    records = [record(w=[ints(1, 2), ints()]), record(w=[ints(3)])]
    _, ours, _ = tfr.parse_sequence_example(
        records, {}, {"v": tfr.VarLen("int64", sparse=True, key="w")}
    )
    _, theirs, _ = tf.io.parse_sequence_example(records, {}, {"w": tf.io.VarLenFeature(tf.int64)})
    assert (ours["v"].indices == theirs["w"].indices.numpy()).all()
    assert (ours["v"].values == theirs["w"].values.numpy()).all()


@given(st.data())
def test_random_steps(data):
    records = []
    for _ in range(data.draw(st.integers(1, 4))):
        lengths = data.draw(st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=3))
        values = [ints(*range(sum(each))) for each in lengths]
        records.append(record(v=values, p=[ints(*each) for each in lengths]))
    assert_same(records, {"v": R(tf.int64, partitions=[R.RowLengths("p")])})


class TestRefuses:
    features = {"v": R(tf.int64, partitions=[R.RowLengths("p")], validate=True)}  # noqa: RUF012

    def assert_both_refuse(self, records, match):
        with pytest.raises(tfr.FeatureError, match=match) as raised:
            tfr.parse_sequence_example(records, {}, self.features)
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.io.parse_sequence_example(records, {}, self.features)
        return raised.value.record

    def test_steps_that_do_not_add_up(self):
        good = record(v=[ints(1), ints(2)], p=[ints(1), ints(1)])
        bad = record(v=[ints(1), ints(2)], p=[ints(1), ints(5)])
        match = "'v': step 1 of row 1 cannot be divided: its parts do not add up to its 1 values"
        assert self.assert_both_refuse([good, bad], match) == 1

    def test_steps_that_nothing_divides(self):
        good = record(v=[ints(1)], p=[ints(1)])
        bad = record(v=[ints(1), ints(2)], p=[ints(1)])
        match = "'v': row 2 does not have as many steps of 'p' as of 'v'"
        assert self.assert_both_refuse([good, good, bad], match) == 2

    def test_one_key_in_two_ways(self):
        features = {
            "v": R(tf.int64, value_key="w"),
            "w": tf.io.FixedLenSequenceFeature([], "int64"),
        }
        with pytest.raises(ValueError, match="'w' is requested in two ways"):
            tfr.parse_sequence_example([], {}, features)

    def test_partitions_of_sparse_columns(self):
        spec = tfr.VarLen("int64", sparse=True, partitions=[("uniform_row_length", 2)])
        with pytest.raises(ValueError, match="Sparse columns have no partitions"):
            tfr.parse_sequence_example([], {}, {"v": spec})


UNKNOWN = {
    "[None]": ([None], "(?i)first dimension of (the )?shape"),
    "[None, 2]": ([None, 2], "(?i)first dimension of (the )?shape"),
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


@pytest.mark.parametrize("shape", [[None], [2, None], tf.TensorShape(None), None])
def test_so_are_those_of_steps(shape):
    spec = tf.io.FixedLenSequenceFeature(shape, tf.int64, allow_missing=True)
    with pytest.raises(ValueError, match="shape"):
        tfr.parse_example([], {"a": spec})
    with pytest.raises(ValueError, match="shape"):
        tfr.parse_sequence_example([], {}, {"a": spec})


def test_known_shapes_of_all_kinds_are_taken():
    records = [tfr.encode_example({"a": [1, 2]})]
    for shape in (2, [2], (2,), np.array([2]), tf.TensorShape([2]), [np.int64(2)]):
        assert tfr.parse_example(records, {"a": tfr.FixedLen(shape, "int64")})["a"].shape == (1, 2)
