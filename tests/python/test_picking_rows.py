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


@pytest.mark.parametrize("index", [[0.0], "name"])
def test_strings_have_no_such_index(index: Any) -> None:
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


def nested() -> tfr.Ragged:
    inner = tfr.Ragged(np.arange(1, 8), np.array([0, 1, 1, 3, 6, 6, 7]))
    return tfr.Ragged(inner, np.array([0, 3, 3, 4, 6]))


def of_strings() -> tfr.Ragged:
    return tfr.Ragged(bytes_of(STRINGS, before=4), np.array([0, 3, 3, 4, 8]))


def of_pairs() -> tfr.Ragged:
    return tfr.Ragged(np.arange(16.0).reshape(8, 2), np.array([0, 3, 3, 4, 8]))


def of_pairs_of_strings() -> tfr.Ragged:
    return tfr.Ragged(bytes_of(STRINGS * 2, (8, 2)), np.array([0, 3, 3, 4, 8]))


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


def batch_of_8() -> tfr.Batch:
    columns = {
        "number": np.arange(8),
        "name": STRINGS,
        "ids": [list(range(i % 3)) for i in range(8)],
        "image": np.arange(32, dtype=np.uint8).reshape(8, 2, 2),
    }
    parsed = tfr.parse_example(tfr.encode_examples(columns, raw=["image"]), FEATURES)
    parsed.valid[6:] = False
    return parsed


def test_columns_of_a_batch() -> None:
    batch = batch_of_8()
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
    with pytest.raises(error, match=message):
        records_of_8()[index]


def records_of_8() -> tfr.RecordBatch:
    strings = bytes_of(STRINGS)
    return tfr.RecordBatch(strings.data, strings.offsets, np.arange(8) * 10, np.arange(8) < 6)


PAIRS = np.arange(16.0).reshape(8, 2).tolist()
TWICE = bytes_of(STRINGS * 2, (8, 2)).tolist()
DENSE = [[1, 0, 0, 2, 0, 0], [0] * 6, [5, 3, 4, 0, 0, 0], [0, 0, 0, 0, 6, 0], [0] * 6]
#: Columns of each kind but byte strings, and batches, with their rows as lists.
KINDS: dict[str, tuple[Any, list[Any]]] = {
    **{name: (column, ROWS) for name, column in RAGGED.items()},
    "nested": (nested(), NESTED),
    **{
        name: (column, [values[:3], [], values[3:4], values[4:]])
        for name, column, values in [
            ("rows of strings", of_strings(), STRINGS),
            ("rows of pairs", of_pairs(), PAIRS),
            ("rows of pairs of strings", of_pairs_of_strings(), TWICE),
        ]
    },
    "sparse": (sparse(), DENSE),
    "sparse, unsorted": (sparse([5, 2, 0, 4, 1, 3]), DENSE),
    "batch": (
        batch_of_8(),
        [
            (i, i < 6, i, STRINGS[i], [*range(i % 3)], np.arange(4 * i, 4 * i + 4).tolist())
            for i in range(8)
        ],
    ),
    "records": (records_of_8(), [(10 * i, i < 6, STRINGS[i]) for i in range(8)]),
}


def rows_in(picked: Any) -> list[Any]:
    """Returns the rows as lists. Checks that the parts of what was picked fit together."""
    if isinstance(picked, tfr.RecordBatch):
        again = [copy.copy(picked).tolist(), pickle.loads(pickle.dumps(picked)).tolist()]
        assert again == [picked.tolist()] * 2
        return [*zip(picked.indices.tolist(), picked.valid.tolist(), picked.tolist(), strict=True)]
    if isinstance(picked, tfr.Batch):
        assert list(picked) == list(FEATURES)
        assert tfr.encode_examples(picked).valid.tolist() == picked.valid.tolist()
        assert len(picked["few"]) == len(picked.indices)
        columns = picked["number"], picked["name"], picked["ids"], picked["image"].reshape(-1, 4)
        lists = [each.tolist() for each in (picked.indices, picked.valid, *columns)]
        return [*zip(*lists, strict=True)]
    if isinstance(picked, tfr.Sparse):
        assert picked.dense_shape.tolist() == [len(picked), 6]
        return picked.to_dense().tolist()
    assert picked.row_lengths.tolist() == [len(row) for row in picked]
    return picked.tolist()


@pytest.mark.parametrize("name", KINDS)
def test_any_rows_of_each_kind(name: str) -> None:
    column, rows = KINDS[name]
    choose, picks = random.Random(name), 0
    assert rows_in(column) == rows
    for _ in range(150):
        index = any_index(choose, len(rows))
        if isinstance(index, int):
            continue  # is a row, not rows
        try:
            numbers = np.arange(len(rows))[as_numpy_index(index)]
        except IndexError:
            with pytest.raises(IndexError):
                column[index]
            continue
        taken = column[index]
        assert type(taken) is type(column)
        assert rows_in(taken) == [rows[i] for i in numbers]
        assert rows_in(taken[::-1][:]) == [rows[i] for i in numbers[::-1]]
        if isinstance(column, tfr.Ragged):
            assert taken.row_splits.dtype == column.row_splits.dtype
            assert getattr(taken.values, "dtype", None) == getattr(column.values, "dtype", None)
        if isinstance(column, tfr.Sparse):
            assert (np.diff(taken.indices[:, 0]) >= 0).all()
        if isinstance(column, tfr.RecordBatch):
            assert not np.shares_memory(taken.data, column.data) or not len(taken)
        picks += 1
    assert picks > 80


def test_any_index_against_numpy() -> None:
    choose = random.Random(0)
    for _ in range(1000):
        shape = tuple(choose.randrange(4) for _ in range(choose.randrange(1, 4)))
        count = int(np.prod(shape))
        strings = [
            bytes(choose.randrange(256) for _ in range(choose.randrange(4))) for _ in range(count)
        ]
        axes = shape[: choose.randrange(len(shape) + 1)]
        parts = [any_index(choose, size) for size in axes]
        if choose.random() < 0.3:
            parts.insert(choose.randrange(len(parts) + 1), choose.choice([..., None, 0]))
        index: Any = tuple(parts)
        if choose.random() < 0.1:
            index = np.array([choose.random() < 0.5 for _ in range(count)], np.bool_).reshape(shape)
        column = bytes_of(strings, shape, before=choose.choice([0, 3]))
        try:
            expected = array_of(strings, shape)[as_numpy_index(index)]
        except IndexError:
            with pytest.raises(IndexError):
                column[index]
            continue
        taken = column[index]
        assert np.shape(taken) == np.shape(expected)
        assert np.asarray(taken, object).tolist() == np.asarray(expected, object).tolist()
        if isinstance(taken, tfr.Bytes):
            assert taken.tolist() == expected.tolist()
            assert taken[...].tolist() == expected.tolist()


def as_numpy_index(index: Any) -> Any:
    """Returns the index for NumPy, which would turn an empty list into floats."""
    if isinstance(index, tuple):
        return tuple(map(as_numpy_index, index))
    return np.array(index, np.int64) if isinstance(index, list) and not index else index


def any_index(choose: random.Random, size: int) -> Any:
    """An index of one axis, seldom of what does not exist."""
    kind, wrong = choose.randrange(4), choose.random() < 0.05
    if kind == 0:
        return choose.randrange(-size - 1, size + 1)
    if kind == 1:
        ends = [None, *range(-size - 1, size + 2)]
        return slice(choose.choice(ends), choose.choice(ends), choose.choice([None, 1, 2, -1, -2]))
    if kind == 2:
        count = choose.choice([3, 3, 1, 0]) if size else 0
        numbers = [choose.randrange(-size, size) for _ in range(count)] + [size] * wrong
        if choose.random() < 0.3:
            return numbers
        unsigned = [np.uint8, np.uint64] if min(numbers, default=0) >= 0 else []
        return np.array(numbers, choose.choice([np.int64, np.int32, *unsigned]))
    mask = [choose.random() < 0.5 for _ in range(size + wrong)]
    return mask if choose.random() < 0.3 else np.array(mask, np.bool_)
