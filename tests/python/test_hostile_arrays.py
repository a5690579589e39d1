"""Writable arrays go back into native code. With any contents, and with writes of another thread
meanwhile, only the batch's own bytes are read or published.
"""

import contextlib
import copy
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
import wire_examples as wire
from changing_bytes import changing

ROWS = 20_000
LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
RECORDS = [tfr.encode_example({"x": [7] * (row % 3), "name": b"s" * row}) for row in range(5)]


def batch_of(records: list[bytes]) -> tfr.RecordBatch:
    count = len(records)
    ends = np.cumsum([0, *map(len, records)])
    data = np.frombuffer(b"".join(records), np.uint8)
    return tfr.RecordBatch(data, ends, np.arange(count), np.ones(count, np.bool_))


def in_spite_of_everything(array: Any) -> Any:
    """Returns a writable array over the same memory, as torch.from_numpy does for a read-only
    array.
    """
    address, _ = array.__array_interface__["data"]
    interface = array.__array_interface__ | {"data": (address, False)}
    return np.asarray(SimpleNamespace(__array_interface__=interface, keeps=array))


def bases_of(array: Any) -> Iterator[Any]:
    while array is not None:
        yield array
        array = getattr(array, "base", None)


def test_numbers_of_other_types_are_no_byte_strings() -> None:
    for data, offsets in (([97, 300], [0, 1, 2]), (np.zeros(2, np.uint8), [0, 1.5, 2])):
        with pytest.raises(TypeError, match="Bytes needs data of uint8 and offsets of integers"):
            tfr.columns.Bytes(np.asarray(data), np.asarray(offsets))


def test_the_offsets_of_a_batch_cannot_be_written() -> None:
    batch = batch_of(RECORDS)
    offsets = batch.offsets
    with pytest.raises(ValueError, match="read-only"):
        offsets[0] = -64
    views = [offsets.view(), offsets[:], np.asarray(offsets), offsets.reshape(-1, 1)]
    views += [
        offsets.view(np.uint8),
        np.frombuffer(offsets, np.int64),
        np.asarray(memoryview(offsets)),
    ]
    views += [np.asarray(SimpleNamespace(__array_interface__=offsets.__array_interface__))]
    for array in [*views, *(each for view in views for each in bases_of(view))]:
        if isinstance(array, np.ndarray):
            assert not array.flags.writeable
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
    assert memoryview(offsets).readonly
    assert batch.tolist() == RECORDS


def test_a_batch_does_not_believe_the_offsets_that_it_shows(tmp_path: Path) -> None:
    batch = batch_of(RECORDS)
    shown = in_spite_of_everything(batch.offsets)
    for hostile in (-64, LEAST, MOST, 1 << 40):
        shown[...] = hostile
        assert (batch.offsets == hostile).all()
        assert batch.tolist() == list(batch) == [batch[i] for i in range(5)] == RECORDS
        assert [bytes(batch.view(i)) for i in range(5)] == RECORDS
        with tfr.Writer(tmp_path / "shard", overwrite=True) as writer:
            writer.write_batch(batch)
        assert list(tfr.Reader(tmp_path / "shard")) == RECORDS
        for use in (
            lambda: tfr.parse_example(batch, {"x": tfr.VarLen("int64")}),
            lambda: tfr.encode_examples({"records": batch}),
            lambda: pickle.loads(pickle.dumps(batch)),
            lambda: copy.copy(batch),
        ):
            with pytest.raises(ValueError, match="ffsets"):
                use()


def test_rows_are_padding_or_not_whatever_byte_says_so(tmp_path: Path) -> None:
    batch = batch_of(RECORDS)
    batch.valid.view(np.uint8)[:] = [0, 1, 2, 128, 255]
    with tfr.Writer(tmp_path / "shard") as writer:
        writer.write_batch(batch)
    assert list(tfr.Reader(tmp_path / "shard")) == RECORDS[1:]
    again = pickle.loads(pickle.dumps(batch))
    assert again.valid.view(np.uint8).tolist() == [0, 1, 1, 1, 1]


HOSTILE = [
    [-64, 3, 5],
    [0, 3, 6],
    [0, 4, 3],
    [0, MOST, 5],
    [0, LEAST, 5],
    [LEAST, 0, 5],
    [0, 3, MOST],
]


@pytest.mark.parametrize("bounds", HOSTILE)
def test_bounds_that_do_not_fit(bounds: list[int]) -> None:
    data = np.frombuffer(b"abcde", np.uint8)
    hostile = np.array(bounds)
    two = np.array([True, True])
    strings = tfr.Bytes(data, hostile)
    columns: list[Any] = [
        strings,
        tfr.Ragged(data.astype(np.int64), hostile),
        tfr.Ragged(tfr.Bytes(data, np.arange(6)), hostile),
        tfr.Ragged(tfr.Ragged(np.arange(5), np.arange(6)), hostile),
        tfr.Ragged(tfr.Ragged(np.arange(5), hostile), np.array([0, 1, 2])),
        tfr.Ragged(strings, np.array([0, 1, 2])),
        tfr.Sparse(np.array([[0, 0], [1, 0]]), strings, np.array([2, 1])),
    ]
    for column in columns:
        with pytest.raises(ValueError, match=r"offsets|splits"):
            tfr.encode_examples({"x": column})
    with pytest.raises(ValueError, match="ffsets"):
        tfr.RecordBatch(data, hostile, [0, 1], two)
    with pytest.raises(ValueError, match="offsets"):
        tfr.parse_example(SimpleNamespace(data=data, offsets=hostile), {"x": tfr.VarLen("int64")})


PICKS: list[Callable[[Any], Any]] = [
    lambda column: column[::-1],
    lambda column: column[[1, 0, 1]],
    lambda column: column[np.array([True, True])],
    lambda column: column[1],
    lambda column: column[:1],
    lambda column: column.to_padded() if isinstance(column, tfr.Ragged) else column == b"a",
    lambda column: column.to_padded(3) if isinstance(column, tfr.Ragged) else column == column,
]


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("bounds", HOSTILE)
def test_rows_are_picked_from_their_own_values_only(bounds: list[int], pick: Any) -> None:
    space = np.full(1000, 0xEE, np.uint8)  # forbidden bytes lie around the allowed bytes
    data = space[500:505]
    data[:] = ord("a")
    hostile = np.array(bounds)
    strings = tfr.Bytes(data, hostile)
    for column in (
        strings,
        tfr.Ragged(data, hostile),
        tfr.Ragged(strings, np.array([0, 1, 2])),
        tfr.Ragged(tfr.Bytes(data, np.arange(6)), hostile),
        tfr.Ragged(tfr.Ragged(data, hostile), np.array([0, 1, 2])),
        tfr.Ragged(tfr.Ragged(data, np.arange(6)), hostile),
    ):
        with contextlib.suppress(ValueError, IndexError, OverflowError, MemoryError):
            assert b"\xee" not in everything_in(pick(column))


def everything_in(picked: Any) -> bytes:
    if isinstance(picked, bytes):
        return picked
    if isinstance(picked, (tfr.Bytes, tfr.Ragged)):
        return b"".join(everything_in(each) for each in picked)
    return np.asarray(picked).tobytes()


@pytest.mark.parametrize("number", [-6, 5, LEAST, MOST])
def test_record_numbers_that_do_not_exist(number: int, tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "shard") as writer:
        writer.write_batch(RECORDS)
    with pytest.raises(IndexError):
        tfr.Reader(tmp_path / "shard").read(np.array([0, number]))
    with pytest.raises(ValueError, match="record number"):
        tfr.Plan(tfr.Shuffle(indices=np.array([0, number])), 2, num_records=5)


@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_numbers_that_are_not_aligned(dtype: str) -> None:
    packed = np.zeros(7, np.dtype([("byte", np.uint8), ("number", dtype)]))
    packed["number"] = np.arange(7)
    shifted = np.frombuffer(b"x" + np.arange(7).astype(dtype).tobytes(), dtype, offset=1)
    for numbers in (packed["number"], shifted):
        assert not numbers.flags.aligned
        expected = [tfr.encode_example({"x": numbers[i].item()}) for i in range(7)]
        assert tfr.encode_examples({"x": numbers}).tolist() == expected
        assert tfr.encode_example({"x": numbers}) == tfr.encode_example({"x": numbers.tolist()})


def outcomes(make: Callable[[], Any], tries: int = 200) -> Iterator[Any]:
    """The results of many tries, without those that raise ValueError."""
    for _ in range(tries):
        with contextlib.suppress(ValueError):
            yield make()


GOOD = np.arange(ROWS + 1)
TORN = np.where(GOOD % 2, GOOD, -(GOOD << 20))
TORN[-1] = ROWS


@pytest.mark.parametrize("kind", ["strings", "rows", "rows of strings", "rows of rows"])
def test_bounds_that_change_while_they_are_encoded(kind: str) -> None:
    bounds = np.full(ROWS + 1, ROWS)  # always valid: the first or the second row has all values
    bounds[0] = 0
    strings = tfr.Bytes(np.full(ROWS, ord("s"), np.uint8), bounds if kind == "strings" else GOOD)
    sevens = np.full(ROWS, 7)
    column: Any = {
        "strings": strings,
        "rows": tfr.Ragged(sevens, bounds),
        "rows of strings": tfr.Ragged(strings, bounds),
        "rows of rows": tfr.Ragged(tfr.Ragged(sevens, bounds), GOOD),
    }[kind]
    features = {
        "x": tfr.VarLen("bytes" if "strings" in kind else "int64"),
        "y": tfr.FixedLen((), "int64"),
    }
    with changing(bounds[1:2], 0, ROWS):
        for encoded in outcomes(lambda: tfr.encode_examples({"x": column, "y": GOOD[:-1]}), 60):
            parsed = tfr.parse_example(encoded, features)
            assert np.array_equal(parsed["y"], GOOD[:-1])
            values = parsed["x"].values
            assert len(values.data if kind == "strings" else values) == ROWS
            assert (values.data == ord("s")).all() if "strings" in kind else (values == 7).all()


@pytest.mark.parametrize("rows", [ROWS, 1])
def test_integers_that_change_while_they_are_encoded(rows: int) -> None:
    ints = np.zeros((rows, 8 * ROWS // rows), np.int64)
    last = np.arange(rows)
    features = {"x": tfr.VarLen("int64"), "y": tfr.FixedLen((), "int64")}
    with changing(ints, 0, -1, 1 << 30):  # 1, 10 and 5 bytes each
        for encoded in outcomes(lambda: tfr.encode_examples({"x": ints, "y": last})):
            parsed = tfr.parse_example(encoded, features)
            assert np.array_equal(parsed["y"], last)
            assert np.isin(parsed["x"].values, [0, -1, 1 << 30]).all()


def test_a_batch_is_made_of_offsets_that_change() -> None:
    data, offsets = np.full(ROWS, ord("s"), np.uint8), GOOD.copy()
    valid = np.ones(ROWS, np.bool_)
    with changing(offsets, TORN, GOOD):
        for batch in outcomes(lambda: tfr.RecordBatch(data, offsets, GOOD[:-1], valid)):
            assert b"".join(batch) == b"s" * ROWS


def test_records_that_change_while_they_are_parsed() -> None:
    one = tfr.encode_example({"x": [1, 2, 300], "name": b"s"})
    other = tfr.encode_example({"name": b"\xff" * (len(one) - 16)})
    assert len(one) == len(other)
    count = 2_000
    source = SimpleNamespace(
        data=np.frombuffer(one * count, np.uint8).copy(), offsets=np.arange(count + 1) * len(one)
    )
    features = {
        "x": tfr.VarLen("int64"),
        "name": tfr.FixedLenSequence([], "bytes"),
        "narrow": tfr.VarLen("int16", key="x2", sparse=True),
    }
    with changing(
        source.data.reshape(count, -1), *(np.frombuffer(each, np.uint8) for each in (one, other))
    ):
        for batch in outcomes(lambda: tfr.parse_example(source, features)):
            assert len(batch["x"]) == count
    whole = source.offsets.copy()
    source.data[:] = np.frombuffer(one * count, np.uint8)
    with changing(source.offsets, whole[::-1], whole, whole // 2):
        for batch in outcomes(lambda: tfr.parse_example(source, features)):
            assert np.isin(batch["x"].values, [1, 2, 300]).all()


def test_bounds_that_change_while_rows_are_picked() -> None:
    bounds = np.array([0, 0, ROWS])
    strings = tfr.Bytes(np.full(ROWS, ord("s"), np.uint8), bounds)
    ragged = tfr.Ragged(np.full(ROWS, 7), bounds)
    with changing(bounds[1:2], 0, ROWS, -ROWS, 2 * ROWS):
        for taken in outcomes(lambda: strings[[0, 1, 0, 1]]):
            assert (taken.data == ord("s")).all()
        for rows in outcomes(lambda: ragged[::-1]):
            assert (rows.values == 7).all()
        for padded in outcomes(lambda: ragged.to_padded(ROWS)):
            assert np.isin(padded, [0, 7]).all()
        for _ in outcomes(lambda: strings == [b"s" * ROWS, b""]):
            pass


def test_record_numbers_that_change(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "shard") as writer:
        writer.write_batch([b"s"] * ROWS)
    reader = tfr.Reader(tmp_path / "shard")
    numbers = GOOD[:-1].copy()
    with changing(numbers, TORN[:-1], GOOD[:-1]):
        for batch in outcomes(lambda: read_or_refuse(reader, numbers), 500):
            assert b"".join(batch) == b"s" * ROWS
        for plan in outcomes(
            lambda: tfr.Plan(tfr.Shuffle(indices=numbers), ROWS, num_records=ROWS), 2_000
        ):
            chosen = plan.indices(0, 0)
            assert ((chosen >= 0) & (chosen < ROWS)).all()


def test_a_step_file_that_changes(tmp_path: Path) -> None:
    """Lists of Features lie apart, so their places are looked up step by step."""
    features = (wire.byte_strings(b"s" * (i * i % 200)) for i in range(ROWS))
    with tfr.Writer(tmp_path / "shard") as writer:
        writer.write(wire.field(2, wire.entry(b"f", wire.strings(*features))))
    path = tfr.build_steps(tmp_path / "shard", along="f")
    steps = tfr.Steps(tmp_path / "shard", along="f")
    assert len(steps[:]) == ROWS  # all of the step file has been verified
    file = np.memmap(path, np.uint8, mode="r+")
    good = np.array(file)
    torn = np.concatenate([good[: len(good) // 2], good[len(good) // 2 :][::-1]])
    with changing(file, torn, good):
        for _ in range(100):
            with contextlib.suppress(tfr.RecordError):
                assert len(steps[:]) == ROWS


def read_or_refuse(reader: tfr.Reader, numbers: Any) -> tfr.RecordBatch:
    try:
        return reader.read(numbers)
    except IndexError as error:
        raise ValueError from error
