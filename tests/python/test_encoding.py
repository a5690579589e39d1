"""Encoding without TensorFlow. tensorflow/test_encoding.py compares it with TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

COLUMNS = {
    "label": np.arange(3) - 1,
    "dense": np.arange(6, dtype=np.float32).reshape(3, 2),
    "name": [b"a", b"", b"ccc"],
    "ids": tfr.Ragged(np.array([1, 2, 300]), np.array([0, 1, 1, 3])),
}
ROWS = [
    {"label": -1, "dense": [0.0, 1.0], "name": b"a", "ids": [1]},
    {"label": 0, "dense": [2.0, 3.0], "name": b"", "ids": np.empty(0, np.int64)},
    {"label": 1, "dense": [4.0, 5.0], "name": b"ccc", "ids": [2, 300]},
]


def test_columns_give_what_their_rows_give_one_by_one() -> None:
    batch = tfr.encode_examples(COLUMNS)
    assert batch.tolist() == [tfr.encode_example(row) for row in ROWS]
    assert batch.indices.tolist() == [0, 1, 2]


def test_the_order_of_the_features_does_not_matter() -> None:
    backwards = dict(reversed(list(COLUMNS.items())))
    assert tfr.encode_examples(backwards).tolist() == tfr.encode_examples(COLUMNS).tolist()


def test_what_was_encoded_is_parsed_back() -> None:
    batch = tfr.parse_example(
        tfr.encode_examples(COLUMNS),
        {
            "label": tfr.FixedLen((), "int64"),
            "dense": tfr.FixedLen((2,), "float32"),
            "name": tfr.FixedLen((), "bytes"),
            "ids": tfr.VarLen("int64"),
        },
    )
    assert batch["label"].tolist() == [-1, 0, 1]
    assert batch["dense"].tolist() == COLUMNS["dense"].tolist()
    assert batch["name"].tolist() == COLUMNS["name"]
    assert batch["ids"].tolist() == [[1], [], [2, 300]]
    assert tfr.encode_examples(batch).tolist() == tfr.encode_examples(COLUMNS).tolist()


def test_padding_of_a_parsed_batch_stays_padding() -> None:
    parsed = tfr.parse_example(tfr.encode_examples(COLUMNS), {"ids": tfr.VarLen("int64")})
    parsed.valid[2] = False
    assert tfr.encode_examples(parsed).valid.tolist() == [True, True, False]


def test_raw_rows_become_byte_strings() -> None:
    images = np.arange(12, dtype=np.uint16).reshape(3, 2, 2)
    expected = [tfr.encode_example({"image": image.tobytes()}) for image in images]
    assert tfr.encode_examples({"image": images}, raw=["image"]).tolist() == expected


@pytest.mark.parametrize(
    ("column", "rows"),
    [
        ([1, None, 3], [1, None, 3]),
        ([[1, 2], [], None, [3]], [[1, 2], np.empty(0, np.int64), None, [3]]),
        ([b"a", "\u00e9", None], [b"a", "\u00e9".encode(), None]),
        ([bytearray(b"a\0"), memoryview(b"bc")], [b"a\0", b"bc"]),
        ([[memoryview(b"a")], bytearray(b"bc")], [bytearray(b"a"), memoryview(b"bc")]),
        ([[b"a", b"b\0"], [b""]], [[b"a", b"b\0"], b""]),
        ([np.array([1.5]), np.array([2, 3])], [1.5, [2.0, 3.0]]),
        (np.array(["x", "yz"]), [b"x", b"yz"]),
        (np.array([[b"a", b"b"], [b"c", b"d"]]), [[b"a", b"b"], [b"c", b"d"]]),
        ([True, False], [1, 0]),
        (np.array([1, 2], ">i2"), [1, 2]),
        (np.arange(8)[::4], [0, 4]),
        (tfr.Bytes(np.frombuffer(b"abc", np.uint8), np.array([0, 1, 3])), [b"a", b"bc"]),
        (
            tfr.Ragged(
                tfr.Bytes(np.frombuffer(b"abc", np.uint8), np.array([0, 1, 3])), np.array([0, 2, 2])
            ),
            [[b"a", b"bc"], None],
        ),
        (
            tfr.Ragged(tfr.Ragged(np.arange(4), np.array([0, 1, 3, 4])), np.array([0, 2, 3])),
            [[0, 1, 2], [3]],
        ),
        (tfr.Ragged(np.ones((3, 2), np.float32), np.array([0, 1, 3])), [[1.0] * 2, [1.0] * 4]),
        (
            tfr.Sparse(np.array([[0, 0], [2, 0], [2, 1]]), np.array([7, 8, 9]), np.array([3, 2])),
            [7, np.empty(0, np.int64), [8, 9]],
        ),
    ],
)
def test_columns_of_every_kind(column: object, rows: list[object]) -> None:
    encoded = tfr.encode_examples({"x": column, "row": np.arange(len(rows))}).tolist()
    empty_bytes = tfr.encode_examples({"x": tfr.Ragged([b"?"], np.array([1, 1]))})[0]
    for i, (got, row) in enumerate(zip(encoded, rows, strict=True)):
        if isinstance(column, tfr.Ragged) and row is None:
            assert got.count(b"x") == 1
            assert empty_bytes.count(b"\x0a\x00") == 1
        else:
            assert got == tfr.encode_example({"x": row, "row": i})


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([[0, 0], [3, 0]], "in rows that its shape"),
        ([[-1, 0], [0, 0]], "in rows that its shape"),
        ([[0, 0], [2**63 - 1, 0]], "in rows that its shape"),
        ([[-(2**63), 0], [0, 0]], "in rows that its shape"),
        ([[1, 0], [0, 0]], "not in order"),
        ([[0, 0], [2, 1]], "side by side"),
        ([[0, 0], [0, 2]], "side by side"),
        ([[0, 0], [0, 0]], "side by side"),
        ([[0, 0], [0, -(2**63)]], "side by side"),
        ([[0, 0]], "1 indices for 2 values"),
        ([[0, 0], [0, 1], [1, 0]], "3 indices for 2 values"),
        ([0, 1], "must be pairs"),
        ([[0, 0, 0], [0, 0, 1]], "must be pairs"),
    ],
)
def test_sparse_columns_lose_nothing_silently(indices: Any, message: str) -> None:
    column = tfr.Sparse(np.array(indices), np.array([7, 8]), np.array([3, 4]))
    with pytest.raises(tfr.FeatureError, match=message):
        tfr.encode_examples({"x": column})


def test_a_string_that_its_list_lets_go_of_meanwhile() -> None:
    strings = [bytes(5_000_000)]

    class Number:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            strings.clear()
            return np.array([1])

    features = {"x": strings, "y": Number()}
    encoded = tfr.encode_example(features)
    assert encoded == tfr.encode_example({"x": bytes(5_000_000), "y": 1})


def test_varints_of_every_length_at_the_end_of_a_record() -> None:
    values = np.array(
        [0, -1, *(1 << bits for bits in range(63)), *((1 << b) - 1 for b in range(64))]
    )
    together = tfr.encode_examples({"x": values}).tolist()
    assert together == [tfr.encode_example({"x": int(value)}) for value in values]
    parsed = tfr.parse_example(together, {"x": tfr.FixedLen((), "int64")})
    assert parsed["x"].tolist() == values.tolist()
    whole = tfr.parse_example(
        tfr.encode_examples({"x": values[None, :]}), {"x": tfr.VarLen("int64")}
    )
    assert whole["x"].values.tolist() == values.tolist()


def test_nothing_at_all() -> None:
    assert tfr.encode_example({}) == b"\x0a\x00"
    assert tfr.encode_example({"x": None}) == b"\x0a\x00"
    assert len(tfr.encode_examples({})) == 0
    assert len(tfr.encode_examples({"x": np.empty((0, 3))})) == 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**63, "does not fit int64"),
        (2**64, "do not fit int64"),
        ([2**63, 1], "do not fit int64"),
        (np.array([2**63], np.uint64), "does not fit int64"),
        ([b"a", 1], "mixes strings"),
        (["a", 1.5, [2]], "mixes strings"),
        ([[b"a"], [1]], "mixes strings"),
        (1j, "complex128"),
        (object(), "object"),
        ([1, None], "NoneType"),
        (np.ma.masked_equal([1, 2], 2), "masked"),
        ([np.ma.masked_equal([1, 2], 2)], "masked"),
        ([np.ma.masked, 1], "masked"),
        ([np.array([b"a"]), np.array([1])], "mixes strings"),
    ],
)
def test_what_no_list_can_hold_is_an_error_that_names_the_feature(
    value: object, message: str
) -> None:
    with pytest.raises(tfr.FeatureError, match=f"'x' cannot be encoded.*{message}"):
        tfr.encode_example({"x": value})
    with pytest.raises(tfr.FeatureError, match="'x' cannot be encoded"):
        tfr.encode_examples({"x": [[value], [value]] if message != "masked" else value})


@pytest.mark.parametrize(
    "value",
    [
        [[], [2**62 + 1]],
        [[[], [2**62 + 1]], []],
        [np.empty(0), np.array([2**62 + 1])],
        [np.uint64(2**62 + 1), np.int8(1)],
        np.array([[2**62 + 1, np.uint64(1)]], object),
    ],
)
def test_integers_stay_integers(value: Any) -> None:
    for records in (tfr.encode_example({"x": value}), tfr.encode_examples({"x": [value]})[0]):
        column = tfr.parse_example([records], {"x": tfr.VarLen("int64")})["x"]
        assert column[0][0] == 2**62 + 1


def test_columns_must_agree_on_their_rows() -> None:
    with pytest.raises(ValueError, match="'a' has 2 and 'b' has 3"):
        tfr.encode_examples({"a": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(tfr.FeatureError, match="no rows"):
        tfr.encode_examples({"a": 1})
    with pytest.raises(ValueError, match="not columns"):
        tfr.encode_examples({"a": [1]}, raw=["b"])
    with pytest.raises(tfr.FeatureError, match="raw needs an array of numbers"):
        tfr.encode_examples({"a": [b"ab", b"c"]}, raw=["a"])
    with pytest.raises(tfr.FeatureError, match="past its 2 values"):
        tfr.encode_examples({"a": tfr.Ragged(np.arange(2), np.array([0, 3]))})
    with pytest.raises(ValueError, match="do not ascend"):
        tfr.encode_examples({"a": tfr.Ragged(np.arange(9), np.array([0, 5, 3]))})


def test_names_must_be_text() -> None:
    with pytest.raises(TypeError, match="must be a str, not int"):
        tfr.encode_example({1: 1})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="must be a str, not int"):
        tfr.encode_examples({1: [1]})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="must be a str, not bytes"):
        tfr.encode_example({"x": 1, b"x": 2})  # type: ignore[dict-item]
