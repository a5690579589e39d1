"""tf.train.Example is the oracle of what we encode."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrfast as tfr

tf = pytest.importorskip("tensorflow")
pytestmark = [pytest.mark.tensorflow, pytest.mark.newest]

INT64 = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300)
FLOAT32 = st.floats(width=32)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=140)


def as_example(row: dict[str, Any]) -> Any:
    features = {}
    for name, values in row.items():
        if isinstance(values[0], bytes):
            features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        elif isinstance(values[0], float):
            features[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
        else:
            features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Example(features=tf.train.Features(feature=features))


def are_alike(encoded: bytes, row: dict[str, Any]) -> bool:
    """True for the same message with the same bytes. One difference is allowed: protobuf's Python
    puts a name after longer names that begin with the name.
    """
    expected = as_example(row)
    parsed = tf.train.Example.FromString(encoded)
    if parsed.SerializeToString(deterministic=True) != expected.SerializeToString(
        deterministic=True
    ):
        return False
    in_order = sorted(name.encode() for name in row)
    if any(b.startswith(a) for a, b in itertools.pairwise(in_order)):
        return True
    return encoded == expected.SerializeToString(deterministic=True)


LISTS = st.one_of(
    st.lists(INT64, min_size=1, max_size=40),
    st.lists(FLOAT32, min_size=1, max_size=40),
    st.lists(st.binary(max_size=200), min_size=1, max_size=10),
)


@given(row=st.dictionaries(NAMES, LISTS, max_size=6))
def test_an_example_has_the_bytes_of_deterministic_serialization(row: dict[str, Any]) -> None:
    encoded = tfr.encode_example(row)
    assert are_alike(encoded, row)
    if row:
        assert encoded == tfr.encode_examples({name: [values] for name, values in row.items()})[0]


@settings(max_examples=50)
@given(data=st.data(), rows=st.integers(1, 40))
def test_columns_have_the_bytes_of_deterministic_serialization(data: Any, rows: int) -> None:
    columns: dict[str, Any] = {}
    expected: list[dict[str, Any]] = [{} for _ in range(rows)]
    for name in data.draw(st.lists(NAMES, unique=True, max_size=5)):
        item = data.draw(st.sampled_from([INT64, FLOAT32, st.binary(max_size=20)]))
        width = data.draw(st.integers(1, 20))
        table = data.draw(
            st.lists(st.lists(item, min_size=width, max_size=width), min_size=rows, max_size=rows)
        )
        if isinstance(table[0][0], bytes):
            columns[name] = table
        else:
            dtype = np.float32 if isinstance(table[0][0], float) else np.int64
            columns[name] = np.array(table, dtype)
        for row, values in zip(expected, table, strict=True):
            row[name] = values
    if columns:
        encoded = tfr.encode_examples(columns).tolist()
        assert all(map(are_alike, encoded, expected))


def test_empty_lists_are_what_protobuf_makes_of_them() -> None:
    for list_type, dtype in (("int64_list", np.int64), ("float_list", np.float32)):
        feature = tf.train.Feature()
        getattr(feature, list_type).SetInParent()
        example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
        encoded = tfr.encode_example({"x": np.empty(0, dtype)})
        assert encoded == example.SerializeToString()
    untyped = tf.train.Example(features=tf.train.Features(feature={"x": tf.train.Feature()}))
    assert tfr.encode_example({"x": []}) == untyped.SerializeToString()
    assert (
        tf.io.parse_single_example(
            tfr.encode_example({"x": []}), {"x": tf.io.FixedLenFeature((), tf.int64, 7)}
        )["x"].numpy()
        == 7
    )


def test_tensors_are_values_like_others() -> None:
    row = {"x": tf.constant([[1, 2], [3, 4]]), "y": tf.constant([1.5], tf.bfloat16)}
    assert tfr.encode_example(row) == tfr.encode_example({"x": [1, 2, 3, 4], "y": 1.5})
