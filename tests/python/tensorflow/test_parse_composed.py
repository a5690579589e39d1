"""Columns made of several features, against TensorFlow: SparseFeature, and partitioned rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrfast as tfr
from wire_examples import byte_strings, entry, example, floats, ints

tf = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.newest
R = tf.io.RaggedFeature


def parsed(records, features):
    ours = tfr.parse_example(records, features)
    theirs = tf.io.parse_example(tf.constant(records, tf.string), features)
    return ours, theirs


def assert_same_ragged(records, spec):
    ours, theirs = parsed(records, {"v": spec})
    assert ours["v"].tolist() == theirs["v"].to_list()
    assert ours["v"].row_splits.dtype == theirs["v"].row_splits.numpy().dtype


def record(**features):
    return example(*(entry(name.encode(), feature) for name, feature in features.items()))


PARTITIONS = {
    "row_lengths": (R.RowLengths("p"), [[2, 0, 1], [], [1]], [[1, 2, 3], [], [4]]),
    "row_splits": (R.RowSplits("p"), [[0, 2, 2, 3], [0], [0, 1]], [[1, 2, 3], [], [4]]),
    "row_starts": (R.RowStarts("p"), [[0, 2, 2], [], [0]], [[1, 2, 3], [], [4]]),
    "row_limits": (R.RowLimits("p"), [[2, 2, 3], [], [1]], [[1, 2, 3], [], [4]]),
    "value_rowids": (R.ValueRowIds("p"), [[0, 0, 2], [], [1]], [[1, 2, 3], [], [4]]),
    "uniform_row_length": (R.UniformRowLength(2), [[], [], []], [[1, 2, 3, 4], [], [5, 6]]),
}


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("dtype", [tf.int64, tf.string])
def test_one_partition_divides_rows_the_same(name, dtype):
    partition, parts, values = PARTITIONS[name]
    make = ints if dtype == tf.int64 else (lambda *row: byte_strings(*(b"%d" % v for v in row)))
    records = [record(p=ints(*p), v=make(*v)) for p, v in zip(parts, values, strict=True)]
    assert_same_ragged(records, R(dtype, partitions=[partition]))
    assert_same_ragged(records, R(dtype, partitions=[partition], row_splits_dtype=tf.int64))


def test_partitions_nest_the_same():
    records = [
        record(outer=ints(2, 1), inner=ints(1, 2, 1), v=ints(1, 2, 3, 4)),
        record(outer=ints(), inner=ints(), v=ints()),
        record(outer=ints(1), inner=ints(2), v=ints(5, 6)),
    ]
    outer_inner = [R.RowLengths("outer"), R.RowLengths("inner")]
    assert_same_ragged(records, R(tf.int64, partitions=outer_inner))
    even = [record(p=ints(1, 0, 1), v=ints(1, 2, 3, 4)), record(p=ints(2), v=ints(1, 2, 3, 4))]
    assert_same_ragged(even, R(tf.int64, partitions=[R.RowLengths("p"), R.UniformRowLength(2)]))
    whole = [record(p=ints(1, 3), v=ints(1, 2, 3, 4)), record(p=ints(2, 0), v=ints(1, 2))]
    assert_same_ragged(whole, R(tf.int64, partitions=[R.UniformRowLength(2), R.RowLengths("p")]))


def test_a_value_key_names_the_feature_the_same():
    records = [record(p=ints(1, 1), w=floats(1, 2), v=ints(9))]
    assert_same_ragged(records, R(tf.float32, "w", [R.RowLengths("p")]))
    assert_same_ragged(records, R(tf.float32, value_key="w"))


def test_partitions_that_do_not_add_up_are_refused():
    records = [record(p=ints(1), v=ints(1)), record(p=ints(1, 5), v=ints(1, 2))]
    with pytest.raises(tfr.FeatureError, match="row 1 cannot be divided"):
        tfr.parse_example(records, {"v": R(tf.int64, partitions=[R.RowLengths("p")])})


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


def test_values_without_positions_are_refused():
    records = [record(i=ints(1), v=ints(1)), record(i=ints(1), v=ints(1, 2))]
    with pytest.raises(tfr.FeatureError, match="row 1 does not have as many positions"):
        tfr.parse_example(records, {"v": tf.io.SparseFeature("i", "v", tf.int64, 10)})
