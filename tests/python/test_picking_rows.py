"""Columns are indexed and compared as NumPy indexes and compares arrays."""

import copy
import itertools
import pickle
import random
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

STRINGS = [b"cat", b"", b"dog\0", b"cat", b"\xff" * 300, b"", b"do", b"catt"]


def bytes_of(
    strings: list[bytes], shape: tuple[int, ...] | None = None, before: int = 0
) -> tfr.Bytes:
    """Returns the strings as a column that begins `before` bytes into a larger array."""
    offsets = np.cumsum([before, *map(len, strings)])
    data = np.frombuffer(b"?" * before + b"".join(strings) + b"?" * before, np.uint8)
    return tfr.Bytes(data, offsets, shape)


def array_of(strings: list[bytes], shape: Any = -1) -> Any:
    return np.array(strings, dtype=object).reshape(shape)


INDICES: list[Any] = [
    slice(2, 5),
    slice(None, None, -1),
    slice(6, 1, -2),
    slice(1, None, 3),
    slice(5, 2),
    slice(-3, None),
    [3, 0, -1, 3],
    [],
    np.array([7, 7], np.uint8),
    np.array([-8]),
    np.array([0, 4], np.uint64),
    [True, False] * 4,
    np.zeros(8, np.bool_),
    np.ones(8, np.bool_),
]


def as_numpy_index(index: Any) -> Any:
    """Returns the index for NumPy, which would turn an empty list into floats."""
    return np.array(index, np.int64) if isinstance(index, list) and not index else index


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("before", [0, 5])
def test_rows_of_byte_strings(index: Any, before: int) -> None:
    column = bytes_of(STRINGS, before=before)
    taken = column[index]
    expected = array_of(STRINGS)[as_numpy_index(index)]
    assert isinstance(taken, tfr.Bytes)
    assert taken.shape == expected.shape
    assert taken.tolist() == expected.tolist()
    assert taken[0:].tolist() == expected.tolist()
    assert np.asarray(taken).dtype == object
    assert np.array_equal(np.asarray(taken), expected)


@pytest.mark.parametrize(
    "index",
    [
        (1, 2),
        (-1, -1),
        (np.int64(1), 0),
        1,
        (),
        ...,
        (..., 1),
        (0, ..., 1),
        (slice(None), 2),
        (slice(None), slice(1, 3)),
        (slice(None, None, -1), slice(None, None, 2)),
        (0, slice(1, None)),
        ([1, 0, 1],),
        ([1, 0], [2, 3]),
        (np.array([[1], [0]]), np.array([0, 3])),
        (None, 1),
        np.array([[True, False, False, True], [False, True, False, False]]),
        np.array([True, False]),
        (0, np.array([True, False, False, True])),
    ],
    ids=str,
)
def test_byte_strings_of_two_dimensions(index: Any) -> None:
    expected = array_of(STRINGS, (2, 4))[index]
    taken = bytes_of(STRINGS, (2, 4), before=3)[index]
    if isinstance(expected, bytes):
        assert taken == expected
    else:
        assert taken.shape == expected.shape
        assert taken.tolist() == expected.tolist()


def test_strings_side_by_side_are_a_view_and_others_a_copy() -> None:
    column = bytes_of(STRINGS, (2, 4))
    for index in (slice(1, 2), 0, (1, slice(1, 3)), (slice(None), ...), (0, ...)):
        assert np.shares_memory(column[index].data, column.data)
    for index in (slice(None, None, -1), [0, 1], (slice(None), slice(1, 3)), [True, True]):
        assert not np.shares_memory(column[index].data, column.data)


def test_arrays_that_were_picked_are_aligned_and_writable() -> None:
    column = bytes_of(STRINGS)[::-1]
    ragged = RAGGED["narrow"][[2, 0]]
    padded = RAGGED["numbers"].to_padded()
    for array in (column.data, column.offsets, ragged.values, ragged.row_splits, padded):
        assert array.ctypes.data % 64 == 0
        assert array.flags.writeable
        assert array.flags.c_contiguous


@pytest.mark.parametrize(
    "index", [8, -9, (0, 0), [8], [-9], [True], [0.0], "name", (slice(None), 0)]
)
def test_strings_that_do_not_exist(index: Any) -> None:
    with pytest.raises(IndexError):
        bytes_of(STRINGS)[index]


OTHERS: list[Any] = [
    b"cat",
    b"",
    b"dog\0",
    b"dog",
    bytearray(b"cat"),
    STRINGS,
    [b"cat"],
    tuple(reversed(STRINGS)),
    array_of(STRINGS),
    array_of(STRINGS[::-1]),
    np.array([b"cat", b"x"] * 4),
    array_of(STRINGS[:2], (2, 1)),
    None,
    3,
    [b"cat", "cat", None, 3, 0.5, b"", b"do", ()],
]


@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_comparing_is_elementwise_as_for_objects(other: Any) -> None:
    column, expected = bytes_of(STRINGS, before=2), array_of(STRINGS)
    operand = np.asarray(bytes(other) if isinstance(other, bytearray) else other, dtype=object)
    equal = np.equal(expected, operand)
    for found, wanted in ((column == other, equal), (column != other, ~equal)):
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.bool_
        assert found.shape == wanted.shape
        assert found.tolist() == wanted.tolist()
    if not isinstance(other, (bytearray, np.ndarray)):
        assert (other == column).tolist() == equal.tolist()


@pytest.mark.parametrize(
    "shapes", list(itertools.product([(2, 4), (4,), (2, 1), (1,), ()], repeat=2))
)
def test_comparing_byte_strings_broadcasts(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    counts = [int(np.prod(shape, dtype=int)) for shape in shapes]
    lists = [STRINGS[: counts[0]], STRINGS[3 : 3 + counts[1]] + STRINGS[:3] * (counts[1] > 5)]
    columns = [bytes_of(each, shape) for each, shape in zip(lists, shapes, strict=True)]
    arrays = [array_of(each, shape) for each, shape in zip(lists, shapes, strict=True)]
    equal = columns[0] == columns[1]
    assert np.shape(equal) == np.broadcast_shapes(*shapes)
    assert np.array_equal(equal, np.equal(*arrays))
    assert np.array_equal(columns[0] != columns[1], np.not_equal(*arrays))
    assert np.array_equal(columns[0] == arrays[1], np.equal(*arrays))


def test_comparing_that_makes_no_sense() -> None:
    column = bytes_of(STRINGS)
    for text in ("cat", np.array(["cat"] * 8)):
        with pytest.raises(TypeError, match="never equal text"):
            assert column == text
    for other in (bytes_of(STRINGS[:3]), STRINGS[:3]):
        with pytest.raises(ValueError, match="broadcast"):
            assert column == other
    with pytest.raises(TypeError, match="unhashable"):
        hash(column)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(column == b"cat")


def test_a_comparison_is_a_mask() -> None:
    column = bytes_of(STRINGS)
    assert column[column == b"cat"].tolist() == [b"cat", b"cat"]
    assert (column[column != b""] != b"").all()
    assert b"cat" in column
    assert b"cow" not in column
    assert bytes_of([b"a"], ())[()] == b"a"
    assert (bytes_of([b"a"], ()) == b"a") is np.True_


NESTED = [[[1], [], [2, 3]], [], [[4, 5, 6]], [[], [7]]]
ROWS = [[1, 2], [], [3], [4, 5, 6], []]
RAGGED: dict[str, tfr.Ragged] = {
    "numbers": tfr.Ragged(np.arange(1, 7), np.array([0, 2, 2, 3, 6, 6])),
    "narrow": tfr.Ragged(np.arange(1, 7, dtype=np.uint8), np.array([0, 2, 2, 3, 6, 6], np.int32)),
    "in the middle": tfr.Ragged(np.arange(9), np.array([1, 3, 3, 4, 7, 7])),
    "strided": tfr.Ragged(np.arange(2, 14)[::2] // 2, np.array([0, 2, 2, 3, 6, 6])),
}


@pytest.mark.parametrize("name", RAGGED)
@pytest.mark.parametrize("index", [*INDICES[:8], [True, False, True, True, False]], ids=str)
def test_rows_of_ragged_columns(name: str, index: Any) -> None:
    column = RAGGED[name]
    numbers = np.arange(5)[as_numpy_index(index)]
    taken = column[index]
    assert isinstance(taken, tfr.Ragged)
    assert taken.row_splits.dtype == column.row_splits.dtype
    assert taken.values.dtype == column.values.dtype
    assert taken.tolist() == [ROWS[i] for i in numbers]
    assert taken.row_lengths.tolist() == [len(ROWS[i]) for i in numbers]
    assert taken[::-1][:].tolist() == [ROWS[i] for i in numbers[::-1]]


def nested() -> tfr.Ragged:
    inner = tfr.Ragged(np.arange(1, 8), np.array([0, 1, 1, 3, 6, 6, 7]))
    return tfr.Ragged(inner, np.array([0, 3, 3, 4, 6]))


def of_strings() -> tfr.Ragged:
    return tfr.Ragged(bytes_of(STRINGS, before=4), np.array([0, 3, 3, 4, 8]))


def of_pairs() -> tfr.Ragged:
    return tfr.Ragged(np.arange(16.0).reshape(8, 2), np.array([0, 3, 3, 4, 8]))


def of_pairs_of_strings() -> tfr.Ragged:
    return tfr.Ragged(bytes_of(STRINGS * 2, (8, 2)), np.array([0, 3, 3, 4, 8]))


@pytest.mark.parametrize("make", [nested, of_strings, of_pairs, of_pairs_of_strings])
@pytest.mark.parametrize(
    "index", [[3, 0, -1], slice(None, None, -1), [False, True, True, False]], ids=str
)
def test_rows_that_hold_more_than_numbers(make: Any, index: Any) -> None:
    column = make()
    rows = column.tolist()
    expected = [rows[i] for i in np.arange(4)[index]]
    assert column[index].tolist() == expected
    assert column[index][::-1].tolist() == expected[::-1]
    assert [np.asarray(row).tolist() for row in column[index] if make is not nested] == (
        [] if make is nested else expected
    )


def test_one_row_may_be_indexed_further() -> None:
    column = nested()
    assert column[0, 2].tolist() == [2, 3]
    assert column[0, 2, 1] == column[-4, -1, -1] == 3
    assert column[0, 1:].tolist() == [[], [2, 3]]
    assert column[(2,)].tolist() == NESTED[2]
    assert of_strings()[0, 2] == b"dog\0"
    with pytest.raises(IndexError, match="Only one row"):
        column[:, 0]
    with pytest.raises(IndexError, match="Row 4 does not exist: there are 4 rows"):
        column[4, 0]


@pytest.mark.parametrize(
    "column", [RAGGED["numbers"], tfr.Sparse(np.array([[0, 0]]), np.array([7]), np.array([5, 2]))]
)
def test_rows_that_do_not_exist(column: Any) -> None:
    for index in ([5], [-6], [0, 9], [True], np.ones(6, np.bool_), np.empty(0, np.bool_)):
        with pytest.raises(IndexError):
            column[index]
    for index in ([0.0], "name", [[0]], None):
        with pytest.raises(TypeError, match="Rows are named by"):
            column[index]


@pytest.mark.parametrize("length", [None, 0, 1, 2, 3, 5])
@pytest.mark.parametrize("name", RAGGED)
def test_padding_numbers(name: str, length: int | None) -> None:
    width = 3 if length is None else length
    for pad in (0, 9):
        padded = RAGGED[name].to_padded(length, pad)
        assert isinstance(padded, np.ndarray)
        assert padded.dtype == RAGGED[name].values.dtype
        assert padded.shape == (5, width)
        assert padded.tolist() == [(row + [pad] * width)[:width] for row in ROWS]
    assert (
        RAGGED[name].to_padded(length=length).tolist() == RAGGED[name].to_padded(length, 0).tolist()
    )


def test_padding_rows_of_arrays() -> None:
    padded = of_pairs().to_padded(2, np.nan)
    assert padded.shape == (4, 2, 2)
    expected = [[[0, 1], [2, 3]], [[np.nan] * 2] * 2, [[6, 7], [np.nan] * 2], [[8, 9], [10, 11]]]
    assert np.array_equal(padded, expected, equal_nan=True)


@pytest.mark.parametrize("pad", [b"", b"-", b"pad"])
@pytest.mark.parametrize("length", [None, 0, 1, 2, 6])
@pytest.mark.parametrize("make", [of_strings, of_pairs_of_strings])
def test_padding_strings(make: Any, length: int | None, pad: bytes) -> None:
    column = make()
    width = 4 if length is None else length
    each: Any = pad if make is of_strings else [pad, pad]
    padded = column.to_padded(length, pad)
    assert padded.shape == (4, width) if make is of_strings else (4, width, 2)
    assert padded.tolist() == [(row + [each] * width)[:width] for row in column.tolist()]
    if pad == b"":
        assert column.to_padded(length).tolist() == padded.tolist()


def test_padding_rows_of_rows() -> None:
    column = nested()
    assert column.to_padded().shape == (4, 3, 3)
    assert column.to_padded()[0].tolist() == [[1, 0, 0], [0, 0, 0], [2, 3, 0]]
    assert column.to_padded(1, -1).tolist() == [[[1, -1, -1]], [[-1] * 3], [[4, 5, 6]], [[-1] * 3]]
    assert column.to_padded((2, 1)).tolist() == [[[1], [0]], [[0], [0]], [[4], [0]], [[0], [7]]]
    assert column.to_padded([None, 4]).shape == (4, 3, 4)
    strings = tfr.Ragged(of_strings(), np.array([0, 2, 4])).to_padded((None, 2), b"-")
    assert strings.tolist() == [
        [[b"cat", b""], [b"-", b"-"]],
        [[b"cat", b"-"], [b"\xff" * 300, b""]],
    ]


def test_padding_nothing() -> None:
    for count in (0, 3):
        empty = tfr.Ragged(np.empty(0, np.float32), np.zeros(count + 1, np.int64))
        assert empty.to_padded().shape == (count, 0)
        assert empty.to_padded(2, 5).tolist() == [[5, 5]] * count
        strings = tfr.Ragged(bytes_of([]), np.zeros(count + 1, np.int64))
        assert strings.to_padded().tolist() == [[]] * count
        assert strings.to_padded(1, b"x").tolist() == [[b"x"]] * count


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1,), ValueError, "0 or more"),
        ((1.5,), TypeError, "integer"),
        ((2, 300), ValueError, "does not fit in uint8"),
        ((2, -1), ValueError, "does not fit in uint8"),
        ((2, 0.5), ValueError, "does not fit in uint8"),
        ((2, [1, 2]), ValueError, "one value"),
        (((2, 3),), ValueError, "levels"),
    ],
)
def test_padding_that_makes_no_sense(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        RAGGED["narrow"].to_padded(*arguments)


def test_padding_strings_with_text() -> None:
    with pytest.raises(TypeError, match="pad must be bytes"):
        of_strings().to_padded(2, "x")


def sparse(order: list[int] | None = None) -> tfr.Sparse:
    indices = np.array([[0, 0], [0, 3], [2, 1], [2, 2], [2, 0], [3, 4]])
    values = np.arange(1, 7)
    chosen = list(range(6)) if order is None else order
    return tfr.Sparse(indices[chosen], values[chosen], np.array([5, 6]))


@pytest.mark.parametrize("order", [None, [5, 2, 0, 4, 1, 3]])
@pytest.mark.parametrize(
    "index", [*INDICES[:5], [2, 0, -3, 2], [], [True, False, True, False, False]], ids=str
)
def test_rows_of_sparse_columns(index: Any, order: list[int] | None) -> None:
    column = sparse(order)
    taken = column[index]
    numbers = np.arange(5)[as_numpy_index(index)]
    assert len(taken) == len(numbers)
    assert taken.dense_shape.tolist() == [len(numbers), 6]
    assert taken.to_dense().tolist() == sparse().to_dense()[numbers].tolist()
    assert (np.diff(taken.indices[:, 0]) >= 0).all()


def test_one_row_of_a_sparse_column() -> None:
    column = sparse()
    assert len(column) == 5
    for row, dense in enumerate(column.to_dense()):
        assert (
            column[row].to_dense().tolist() == column[row - 5].to_dense().tolist() == dense.tolist()
        )
    strings = tfr.Sparse(np.array([[0, 1], [1, 0]]), bytes_of([b"a", b"bb"]), np.array([2, 2]))
    assert strings[::-1].to_dense().tolist() == [[b"bb", b""], [b"", b"a"]]
    with pytest.raises(IndexError):
        column[5]
    one = tfr.Sparse(np.array([[1], [2]]), bytes_of([b"a", b"bb"]), np.array([3]))
    for value, dense in ((column[2][1], 3), (column[1][1], 0), (one[2], b"bb"), (one[0], b"")):
        assert value.to_dense().shape == ()
        assert value.to_dense()[()] == dense
        with pytest.raises(TypeError, match=r"no length: take it with to_dense\(\)\[\(\)\]"):
            len(value)


def test_offsets_without_an_end_are_refused() -> None:
    nothing = np.empty(0, np.uint8)
    with pytest.raises(ValueError, match="even without strings it holds one number"):
        tfr.Bytes(nothing, np.empty(0, np.int64))
    assert tfr.Bytes(nothing, np.zeros(1, np.int64)).tolist() == []


FEATURES = {
    "number": tfr.FixedLen((), "int64"),
    "name": tfr.FixedLen((), "bytes"),
    "ids": tfr.VarLen("int64"),
    "few": tfr.VarLen("int64", key="ids", sparse=True),
    "image": tfr.FixedLen([2, 2], "uint8", raw=True),
}


@pytest.fixture
def batch() -> tfr.Batch:
    columns = {
        "number": np.arange(8),
        "name": STRINGS,
        "ids": [list(range(i % 3)) for i in range(8)],
        "image": np.arange(32, dtype=np.uint8).reshape(8, 2, 2),
    }
    parsed = tfr.parse_example(tfr.encode_examples(columns, raw=["image"]), FEATURES)
    parsed.valid[6:] = False
    return parsed


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_rows_of_a_batch(batch: tfr.Batch, index: Any) -> None:
    taken = batch[index]
    numbers = np.arange(8)[as_numpy_index(index)]
    assert isinstance(taken, tfr.Batch)
    assert list(taken) == list(batch)
    assert taken.indices.tolist() == taken["number"].tolist() == numbers.tolist()
    assert taken.valid.tolist() == (numbers < 6).tolist()
    assert taken["name"].tolist() == [STRINGS[i] for i in numbers]
    assert taken["ids"].tolist() == [list(range(i % 3)) for i in numbers]
    assert len(taken["few"]) == len(numbers)
    assert taken["image"].tolist() == batch["image"][numbers].tolist()
    assert tfr.encode_examples(taken).valid.tolist() == taken.valid.tolist()


def test_columns_of_a_batch(batch: tfr.Batch) -> None:
    assert batch["number"] is batch.get("number")
    assert batch[:3]["image"].base is not None
    assert batch[batch["name"] == b"cat"]["number"].tolist() == [0, 3]
    assert batch[batch.valid].valid.all()
    with pytest.raises(KeyError, match="nothing"):
        batch["nothing"]
    for index in ([8], [-9], [True]):
        with pytest.raises(IndexError):
            batch[index]
    for key in (0, (0, 1), None, 1.5):
        with pytest.raises((TypeError, KeyError)):
            batch[key]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_rows_of_a_record_batch(index: Any) -> None:
    offsets = np.cumsum([0, *map(len, STRINGS)])
    valid = np.arange(8) < 6
    data = np.frombuffer(b"".join(STRINGS), np.uint8)
    records = tfr.RecordBatch(data, offsets, np.arange(8) * 10, valid)
    taken = records[index]
    numbers = np.arange(8)[as_numpy_index(index)]
    assert isinstance(taken, tfr.RecordBatch)
    assert taken.tolist() == [STRINGS[i] for i in numbers]
    assert taken.indices.tolist() == (numbers * 10).tolist()
    assert taken.valid.tolist() == valid[numbers].tolist()
    assert not np.shares_memory(taken.data, records.data) or not len(taken)
    for again in (copy.copy(taken), pickle.loads(pickle.dumps(taken))):
        assert again.tolist() == taken.tolist()


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        ([8], IndexError, "Row 8 does not exist: there are 8 rows"),
        ([-9], IndexError, "Row -9"),
        (np.array([2**64 - 1], np.uint64), IndexError, "Row 18446744073709551615"),
        ([True] * 7, IndexError, "mask has 7 entries, but there are 8 rows"),
        ([0.0], TypeError, "Row numbers must be integers"),
        ([[0]], TypeError, "one-dimensional"),
        ("name", TypeError, "integers"),
        (None, TypeError, "integers"),
    ],
)
def test_rows_that_a_record_batch_does_not_have(index: Any, error: Any, message: str) -> None:
    data = np.frombuffer(b"".join(STRINGS), np.uint8)
    offsets = np.cumsum([0, *map(len, STRINGS)])
    records = tfr.RecordBatch(data, offsets, np.arange(8), np.ones(8, np.bool_))
    with pytest.raises(error, match=message):
        records[index]


def test_any_index_against_numpy() -> None:
    choose = random.Random(0)
    for _ in range(300):
        shape = tuple(choose.randrange(4) for _ in range(choose.randrange(1, 4)))
        count = int(np.prod(shape))
        strings = [
            bytes(choose.randrange(256) for _ in range(choose.randrange(4))) for _ in range(count)
        ]
        index = tuple(any_index(choose, size) for size in shape[: choose.randrange(len(shape) + 1)])
        expected = error = None
        try:
            expected = array_of(strings, shape)[index]
        except IndexError as raised:
            error = raised
        if error is not None:
            with pytest.raises(IndexError):
                bytes_of(strings, shape)[index]
        elif isinstance(expected, bytes):
            assert bytes_of(strings, shape)[index] == expected
        else:
            assert bytes_of(strings, shape)[index].shape == expected.shape
            assert bytes_of(strings, shape)[index].tolist() == expected.tolist()


def any_index(choose: random.Random, size: int) -> Any:
    kind = choose.randrange(4)
    if kind == 0:
        return choose.randrange(-size - 1, size + 1)
    if kind == 1:
        ends = [None, *range(-size - 1, size + 2)]
        return slice(choose.choice(ends), choose.choice(ends), choose.choice([None, 1, 2, -1, -2]))
    if kind == 2:
        return np.array([choose.randrange(-size, size) for _ in range(3 if size else 0)], np.int64)
    return np.array([choose.random() < 0.5 for _ in range(size)], np.bool_)
