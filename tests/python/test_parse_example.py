"""The results and refusals of parsing. tensorflow/ compares the values with TensorFlow's."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tfrfast as tfr
from children import in_threads
from wire_examples import byte_strings, entry, example, field, floats, ints


def record(**features: bytes) -> bytes:
    return example(*(entry(name.encode(), feature) for name, feature in features.items()))


def arrays_of(column):
    """The arrays that a column is made of."""
    if isinstance(column, np.ndarray):
        return [column]
    if isinstance(column, tfr.Bytes):
        return [column.data, column.offsets]
    if isinstance(column, tfr.Ragged):
        return [column.row_splits, *arrays_of(column.values)]
    return [column.indices, *arrays_of(column.values)]


EVERY_KIND = {
    "scalar": tfr.FixedLen([], "int64"),
    "matrix": tfr.FixedLen([2, 2], "float32"),
    "narrow": tfr.FixedLen(2, "uint8"),
    "raw": tfr.FixedLen([2], "int16", raw=True),
    "name": tfr.FixedLen([], "bytes"),
    "steps": tfr.FixedLenSequence([2], "int64"),
    "words": tfr.FixedLenSequence([], "bytes", default=b"-"),
    "ids": tfr.VarLen("int64"),
    "tags": tfr.VarLen("bytes"),
    "few": tfr.VarLen("float32", sparse=True),
    "parts": tfr.VarLen("int64", key="ids", partitions=[("uniform_row_length", 1)]),
    "placed": tfr.SparseIndexed("ids", "tags", "bytes", 100),
}
RECORDS = [
    record(
        scalar=ints(-5),
        matrix=floats(1, 2, 3, 4),
        narrow=ints(0, 255),
        raw=byte_strings(np.array([1, -2], "<i2").tobytes()),
        name=byte_strings(b"one"),
        steps=ints(1, 2, 3, 4),
        words=byte_strings(b"a"),
        ids=ints(9, 8),
        tags=byte_strings(b"x", b"yy"),
        few=floats(0.5),
    ),
    record(
        scalar=ints(6),
        matrix=floats(5, 6, 7, 8),
        narrow=ints(1, 2),
        raw=byte_strings(np.array([3, 4], "<i2").tobytes()),
        name=byte_strings(b""),
        words=byte_strings(b"b", b"c"),
    ),
]


def test_every_kind_in_one_description() -> None:
    batch = tfr.parse_example(RECORDS, EVERY_KIND)
    assert list(batch) == list(EVERY_KIND)
    assert batch["scalar"].tolist() == [-5, 6]
    assert batch["matrix"].tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    assert batch["narrow"].dtype == np.uint8
    assert batch["narrow"].tolist() == [[0, 255], [1, 2]]
    assert batch["raw"].dtype == np.int16
    assert batch["raw"].tolist() == [[1, -2], [3, 4]]
    assert batch["name"].tolist() == [b"one", b""]
    assert batch["steps"].tolist() == [[[1, 2], [3, 4]], [[0, 0], [0, 0]]]
    assert batch["words"].tolist() == [[b"a", b"-"], [b"b", b"c"]]
    assert batch["ids"].tolist() == [[9, 8], []]
    assert batch["tags"].tolist() == [[b"x", b"yy"], []]
    assert batch["few"].to_dense().tolist() == [[0.5], [0]]
    assert batch["parts"].tolist() == [[[9], [8]], []]
    assert batch["placed"].indices.tolist() == [[0, 8], [0, 9]]
    assert batch["placed"].values.tolist() == [b"yy", b"x"]
    assert batch.indices.tolist() == [0, 1]
    assert batch.valid.tolist() == [True, True]


@pytest.mark.parametrize("records", [RECORDS, []], ids=["two records", "none"])
def test_columns_are_aligned_writable_and_taken_by_dlpack(records: list[bytes]) -> None:
    for name, column in tfr.parse_example(records, EVERY_KIND).items():
        for array in arrays_of(column):
            assert array.size == 0 or array.ctypes.data % 64 == 0, name
            assert array.flags.writeable, name
            assert array.flags.c_contiguous, name
            if array.size and hasattr(np, "from_dlpack"):  # since NumPy 1.23
                shared = np.from_dlpack(array)  # which NumPy 1 makes read-only
                array[...] = 0
                assert not shared.any()


def test_columns_outlive_the_batch_and_do_not_share_memory() -> None:
    features = {"ids": tfr.VarLen("int64")}
    first = tfr.parse_example([record(ids=ints(1, 2, 3))], features)["ids"].values
    second = tfr.parse_example([record(ids=ints(4, 5, 6))], features)["ids"].values
    assert first.tolist() == [1, 2, 3]
    assert second.tolist() == [4, 5, 6]


def test_a_record_batch_gives_its_numbers_and_its_padding() -> None:
    rows = [*RECORDS, RECORDS[0]]
    data = b"".join(rows)
    ends = np.cumsum([0, *map(len, rows)])
    together = tfr.RecordBatch(
        np.frombuffer(data, np.uint8), ends, np.array([70, 7, 70]), np.array([True, True, False])
    )
    batch = tfr.parse_example(together, EVERY_KIND)
    assert batch["scalar"].tolist() == [-5, 6, -5]
    assert batch["name"].tolist() == [b"one", b"", b"one"]
    assert batch["ids"].tolist() == [[9, 8], [], [9, 8]]
    assert batch.indices.tolist() == [70, 7, 70]
    assert batch.valid.tolist() == [True, True, False]
    with pytest.raises(tfr.FeatureError, match="Record 7") as caught:
        tfr.parse_example(together, {"ids": tfr.FixedLen(2, "int64")})
    assert caught.value.record == 7


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int32", -(2**31), 2**31 - 1),
        ("int16", -(2**15), 2**15 - 1),
        ("int8", -128, 127),
        ("uint32", 0, 2**32 - 1),
        ("uint16", 0, 2**16 - 1),
        ("uint8", 0, 255),
        ("bool", 0, 1),
    ],
)
def test_narrow_integers_take_what_fits_and_refuse_the_rest(
    dtype: str, low: int, high: int
) -> None:
    for spec in (tfr.FixedLen(2, dtype), tfr.VarLen(dtype), tfr.FixedLenSequence([], dtype)):
        features = {"a": spec}
        column = tfr.parse_example([record(a=ints(low, high))], features)["a"]
        values = column.values if isinstance(column, tfr.Ragged) else column
        assert values.dtype == np.dtype(dtype)
        assert values.reshape(-1).tolist() == [low, high]
        for outside in (low - 1, high + 1):
            with pytest.raises(tfr.FeatureError, match=f"{outside} does not fit in {dtype}"):
                tfr.parse_example([record(a=ints(low, outside))], features)


def test_raw_bytes_must_fill_the_shape() -> None:
    features = {"a": tfr.FixedLen([2, 3], "float64", raw=True)}
    numbers = np.arange(6, dtype="<f8").reshape(2, 3)
    column = tfr.parse_example([record(a=byte_strings(numbers.tobytes()))], features)["a"]
    assert column.shape == (1, 2, 3)
    assert np.array_equal(column[0], numbers)
    with pytest.raises(
        tfr.FeatureError, match="expected a byte string of 48 bytes, found one of 3"
    ):
        tfr.parse_example([record(a=byte_strings(b"abc"))], features)
    with pytest.raises(tfr.FeatureError, match="Values size: 2"):
        tfr.parse_example([record(a=byte_strings(b"abc", b"d"))], features)
    defaulted = {"a": tfr.FixedLen([2], "uint8", default=[1, 2], raw=True)}
    assert tfr.parse_example([record()], defaulted)["a"].tolist() == [[1, 2]]
    large = tfr.FixedLen([2], "uint64", default=[2**63 + 1, 1], raw=True)
    assert tfr.parse_example([record()], {"a": large})["a"].tolist() == [[2**63 + 1, 1]]


def test_defaults_take_the_place_of_missing_features() -> None:
    features = {
        "one": tfr.FixedLen([], "int64", 3),
        "spread": tfr.FixedLen([2], "float32", 0.5),
        "whole": tfr.FixedLen([2], "uint8", [1, 2]),
        "text": tfr.FixedLen([2], "bytes", [b"a", "b"]),
    }
    batch = tfr.parse_example([record(), record(one=ints(4))], features)
    assert batch["one"].tolist() == [3, 4]
    assert batch["spread"].tolist() == [[0.5, 0.5]] * 2
    assert batch["whole"].tolist() == [[1, 2]] * 2
    assert batch["text"].tolist() == [[b"a", b"b"]] * 2


def test_errors_name_record_and_feature() -> None:
    features = {"label": tfr.FixedLen([], "int64")}
    good = record(label=ints(1))
    cases = {
        r"Feature: label \(data type: int64\) is required but could not be found": record(),
        r"'label': Data types don't match. Data type: float but expected type: int64": record(
            label=floats(1)
        ),
        r"'label': Number of int64 values != expected 1. Values size: 2": record(label=ints(1, 2)),
        r"'label': Can't parse serialized Example": record(label=b"\x1a\x03\x0a\x01\x80"),
        r"'label': unsupported data type": record(label=b"\x99"),
        r"Could not parse the record: byte 2": b"\x0a\x05\xff",
    }
    for message, bad in cases.items():
        with pytest.raises(tfr.FeatureError, match=message) as caught:
            tfr.parse_example([good, good, bad], features)
        assert "Record 2" in str(caught.value)
        assert caught.value.record == 2
        assert isinstance(caught.value, ValueError)
        assert pickle.loads(pickle.dumps(caught.value)).record == 2


def test_descriptions_without_a_meaning_are_refused() -> None:
    for spec in (
        tfr.FixedLen([-1], "int64"),
        tfr.FixedLen([None], "int64"),
        tfr.FixedLen([], "complex64"),
        tfr.FixedLen([], "uint8", default=256),
        tfr.FixedLen([], "int64", default=float("nan")),
        tfr.FixedLen([3], "int64", default=[1, 2]),
        tfr.FixedLenSequence([], "int64", allow_missing=False),
        tfr.FixedLenSequence([0], "int64"),
        tfr.VarLen("int64", partitions=[("row_lengths", 3)]),
        tfr.VarLen("int64", sparse=True, partitions=[("uniform_row_length", 2)]),
        tfr.SparseIndexed(["i", "j"], "v", "int64", 10),
        "int64",
    ):
        with pytest.raises((ValueError, TypeError)):
            tfr.parse_example([], {"a": spec})
    with pytest.raises(ValueError, match="two ways"):
        tfr.parse_example([], {"a": tfr.FixedLen([], "int64"), "b": tfr.VarLen("int64", key="a")})


@pytest.mark.parametrize(
    ("how", "numbers"),
    [
        ("row_lengths", [2**63 - 1, 2**63 - 1, 4]),
        ("row_splits", [0, 2**63 - 1, -(2**63) + 1, 2]),
        ("value_rowids", [0, 2**31]),
        ("value_rowids", [2**63 - 1, -(2**63)]),
    ],
)
def test_huge_numbers_divide_no_row(
    how: str, numbers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrfast.features.composed.max_padded_bytes", lambda: 1 << 30)
    record = tfr.encode_example({"x": [1, 2], "by": numbers})
    with pytest.raises(tfr.FeatureError, match="row 0 cannot be divided"):
        tfr.parse_example([record], {"x": tfr.VarLen("int64", partitions=[(how, "by")])})


def test_records_must_be_bytes() -> None:
    for wrong in (b"one", "one", ["one"], [1], [bytearray(b"one"), memoryview(b"1")]):
        with pytest.raises(TypeError):
            tfr.parse_example(wrong, EVERY_KIND)  # type: ignore[arg-type]


def test_a_description_may_change_between_calls() -> None:
    records = [record(a=ints(1), b=ints(2))]
    features = {"a": tfr.FixedLen([], "int64")}
    assert list(tfr.parse_example(records, features)) == ["a"]
    features["b"] = tfr.FixedLen([], "int32")
    assert list(tfr.parse_example(records, features)) == ["a", "b"]
    features["a"] = tfr.VarLen("int64")
    assert tfr.parse_example(records, features)["a"].tolist() == [[1]]


def test_threads_may_share_a_description() -> None:
    records = [record(a=ints(*range(i % 7)), b=byte_strings(b"x" * i)) for i in range(500)]
    features = {"a": tfr.VarLen("int64"), "b": tfr.FixedLen([], "bytes")}
    expected = [row.tolist() for row in tfr.parse_example(records, features)["a"]]

    def parse() -> None:
        for _ in range(30):
            batch = tfr.parse_example(records, features)
            assert batch["a"].tolist() == expected
            assert len(batch["b"][499]) == 499

    in_threads([parse] * 4)


def test_columns_are_pickled() -> None:
    batch = pickle.loads(pickle.dumps(tfr.parse_example(RECORDS, EVERY_KIND)))
    assert batch["tags"].tolist() == [[b"x", b"yy"], []]
    assert batch["few"].dense_shape.tolist() == [2, 1]
    assert batch.indices.tolist() == [0, 1]


def test_features_are_inferred_from_what_records_hold() -> None:
    records = [
        record(one=ints(1), three=floats(1, 2, 3), some=byte_strings(b"a"), gone=b""),
        record(one=ints(2), three=floats(4, 5, 6), some=byte_strings(b"a", b"b")),
        record(one=ints(3), three=floats(4, 5, 6)),
    ]
    features = tfr.infer_features(records)
    assert features == {
        "one": tfr.FixedLen((), "int64"),
        "three": tfr.FixedLen((3,), "float32"),
        "some": tfr.VarLen("bytes"),
    }
    assert tfr.parse_example(records, features)["some"].tolist() == [[b"a"], [b"a", b"b"], []]
    assert tfr.infer_features(iter(records), sample=1)["some"] == tfr.FixedLen((), "bytes")
    with pytest.raises(tfr.FeatureError, match="'one': Data types don't match"):
        tfr.infer_features([*records, record(one=floats(1))])


def test_sequence_examples_have_context_and_steps() -> None:
    def sequence(label: int, *steps: bytes) -> bytes:
        lists = entry(b"steps", b"".join(field(1, step) for step in steps))
        return field(1, entry(b"label", ints(label))) + field(2, lists)

    records = [sequence(1, ints(1, 2), ints(3, 4)), sequence(2), sequence(3, ints(5, 6))]
    context = {"label": tfr.FixedLen([], "int64")}
    labels, padded, lengths = tfr.parse_sequence_example(
        records, context, {"steps": tfr.FixedLenSequence([2], "int64")}
    )
    assert labels["label"].tolist() == [1, 2, 3]
    assert padded["steps"].tolist() == [[[1, 2], [3, 4]], [[0, 0], [0, 0]], [[5, 6], [0, 0]]]
    assert lengths["steps"].tolist() == [2, 0, 1]
    _, ragged, lengths = tfr.parse_sequence_example(records, {}, {"steps": tfr.VarLen("int32")})
    assert ragged["steps"].tolist() == [[[1, 2], [3, 4]], [], [[5, 6]]]
    assert lengths == {}
    with pytest.raises(tfr.FeatureError, match="Record 0"):
        tfr.parse_sequence_example(records, {}, {"steps": tfr.FixedLenSequence([3], "int64")})
    needed = tfr.FixedLenSequence([], "int64", allow_missing=False)
    with pytest.raises(tfr.FeatureError, match="is required"):
        tfr.parse_sequence_example(records, {}, {"other": needed})
