"""Scans as Arrow's consumers see them: values, types, absence, laziness, errors, lifetimes."""

from __future__ import annotations

import gc
import pickle
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from children import in_threads, is_right_in_child
from example_files import write_examples
from mixed_files import mixture_of, write_sets
from record_files import flip_payload_byte, write_rows
from step_files import FEATURES as STEP_FEATURES
from step_files import numbers_in, open_steps
from table_data import FEATURES, expected_row

pa = pytest.importorskip("pyarrow")

COUNT = 1500


def table_of(source: Any, **options: Any) -> Any:
    table = pa.table(tfr.scan(source, **options))
    table.validate(full=True)
    return table


def test_a_table_holds_what_the_records_hold(shards: list[str]) -> None:
    table = table_of(shards, features=FEATURES, batch_size=64)
    assert table.column_names == list(FEATURES)
    assert table.to_pylist() == [expected_row(number) for number in range(COUNT)]


def test_a_table_of_steps(tmp_path: Path) -> None:
    steps = open_steps(tmp_path / "data")
    for order in (None, tfr.Shuffle(4)):
        table = table_of(steps, features=STEP_FEATURES, order=order, record_column=True)
        assert numbers_in(table.to_pydict()) == table["record"].to_pylist()
        assert sorted(table["record"].to_pylist()) == list(range(100))


@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("batch_size", [1, 7, 1500, 4000])
def test_threads_and_batch_sizes_change_nothing(
    shards: list[str], threads: int, batch_size: int
) -> None:
    options: Any = {"features": FEATURES, "records": np.arange(300) * 5}
    table = table_of(shards, threads=threads, batch_size=batch_size, **options)
    assert table.combine_chunks() == table_of(shards, **options).combine_chunks()
    assert table.num_rows == 300


def test_types_say_what_is_promised(shards: list[str]) -> None:
    schema = pa.schema(tfr.scan(shards, features=FEATURES, record_column=True, shard_column=True))
    assert schema.field("id").type == pa.int64()
    assert schema.field("label").type == pa.bool_()
    assert schema.field("name").type == pa.large_binary()
    assert pa.types.is_large_list(schema.field("words").type)
    dense = schema.field("dense").type
    assert pa.types.is_fixed_size_list(dense)
    assert dense.list_size == 3
    assert schema.field("raw").type.value_type.value_type == pa.int16()
    may_be_null = [field.name for field in schema if field.nullable]
    assert may_be_null == ["words", "numbers", "pairs", "lengths"]
    assert schema.field("shard").type.value_type == pa.large_string()


def test_what_is_absent_is_null_whatever_the_default(shards: list[str]) -> None:
    table = table_of(shards, features={"lengths": tfr.FixedLen((), "int64", default=77)})
    column = table["lengths"].combine_chunks()
    expected = [expected_row(number)["lengths"] for number in range(COUNT)]
    assert column.to_pylist() == expected
    assert column.null_count == expected.count(None) > 0
    filled = np.asarray(column.chunk(0) if hasattr(column, "chunk") else column.fill_null(77))
    batch = tfr.parse_example(
        tfr.Reader(shards)[:], {"lengths": tfr.FixedLen((), "int64", default=77)}
    )
    np.testing.assert_array_equal(filled, batch["lengths"])


def test_an_empty_list_is_not_absent(tmp_path: Path) -> None:
    # An Int64List without values, which encode_example does not write; and an empty Feature.
    empty_list = b"\x0a\x09\x0a\x07\x0a\x01a\x12\x02\x1a\x00"
    empty_feature = b"\x0a\x07\x0a\x05\x0a\x01a\x12\x00"
    with tfr.Writer(tmp_path / "x") as writer:
        for record in (empty_list, tfr.encode_example({"a": [4]}), empty_feature, b""):
            writer.write(record)
    table = table_of(str(tmp_path / "x"), features={"a": tfr.VarLen("int64")})
    assert table["a"].to_pylist() == [[], [4], None, None]


def test_absent_rows_of_every_layout_are_null(tmp_path: Path) -> None:
    present = {
        "scalar": 5,
        "dense": [1.0, 2.0],
        "name": b"x",
        "names": [b"x", b"yy"],
        "raw": np.arange(2, dtype="<f8").tobytes(),
        "list": [3, 4, 5, 6],
        "steps": [1, 2, 3, 4],
    }
    features = {
        "scalar": tfr.FixedLen((), "uint8", default=0),
        "dense": tfr.FixedLen((2,), "float32", default=0),
        "name": tfr.FixedLen((), "bytes", default=b"?"),
        "names": tfr.FixedLen((2,), "bytes", default=b""),
        "raw": tfr.FixedLen((2,), "float64", default=0, raw=True),
        "list": tfr.VarLen("int32", sparse=True),
        "steps": tfr.FixedLenSequence((2,), "int64"),
    }
    with tfr.Writer(tmp_path / "x") as writer:
        for number in range(40):
            kept = {name: each for i, (name, each) in enumerate(present.items()) if number >> i & 1}
            writer.write_example(kept)
    table = table_of(str(tmp_path / "x"), features=features, batch_size=11)
    shown = {
        **present,
        "raw": [0.0, 1.0],
        "steps": [[1, 2], [3, 4]],
    }
    for i, name in enumerate(features):
        expected = [shown[name] if number >> i & 1 else None for number in range(40)]
        assert table[name].to_pylist() == expected, name


def test_one_value_in_each_record_of_the_sample_is_a_plain_column(
    shards: list[str], tmp_path: Path
) -> None:
    schema = pa.schema(tfr.scan(shards))
    assert all(field.nullable for field in schema)
    assert schema.field("id").type == pa.int64()
    assert pa.types.is_large_list(schema.field("words").type)
    assert pa.schema(tfr.scan(shards, features=["id"])).field("id").type == pa.int64()
    few = write_examples(tmp_path, [20])
    assert pa.schema(tfr.scan(few)).field("id").type == pa.int64()
    assert table_of(shards, columns=["id"])["id"].null_count == 0


@pytest.mark.parametrize("late", [[1, 2], b"text"])
def test_a_record_that_breaks_the_promise_of_a_sample_is_one_clear_error(
    tmp_path: Path, late: Any
) -> None:
    path = str(tmp_path / "x")
    with tfr.Writer(path) as writer:
        for number in range(300):
            value = late if number == 250 else None if number == 200 else number
            writer.write_example({} if value is None else {"label": value})
    scan = tfr.scan(path, sample=16, record_column=True)
    with pytest.raises(tfr.FeatureError, match="label") as caught:
        list(scan)
    assert caught.value.record == 250
    assert "inferred from a sample of the records. Give a dict of specs" in str(caught.value)
    for again in (scan, scan.part(["label"]), pickle.loads(pickle.dumps(scan))):
        with pytest.raises(pa.ArrowInvalid, match=r"a sample of the records\. Give a dict"):
            pa.table(again)
    first = pa.table(scan.part(rows=slice(0, 250)))
    assert first["label"].to_pylist() == [n if n != 200 else None for n in range(250)]
    with pytest.raises(tfr.FeatureError) as asked_for:
        list(tfr.scan(path, features={"label": tfr.FixedLen((), "int64", default=0)}))
    assert "inferred" not in str(asked_for.value)


def test_only_the_columns_asked_for_are_decoded(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "x") as writer:
        writer.write_example({"good": 1, "other": b"text"})
    features = {"good": tfr.FixedLen((), "int64"), "other": tfr.FixedLen((), "int64")}
    source = str(tmp_path / "x")
    with pytest.raises(pa.ArrowInvalid, match="other"):
        table_of(source, features=features)
    assert table_of(source, features=features, columns=["good"])["good"].to_pylist() == [1]


def test_columns_come_in_the_order_asked_for(shards: list[str]) -> None:
    scan = tfr.scan(
        shards,
        features=FEATURES,
        columns=["shard", "name", "n", "id"],
        record_column="n",
        shard_column=True,
    )
    assert scan.columns == ["shard", "name", "n", "id"]
    table = pa.table(scan)
    assert table["n"].to_pylist() == table["id"].to_pylist() == list(range(COUNT))
    assert table["shard"].to_pylist() == [shards[0]] * 700 + [shards[1]] + [shards[2]] * 799


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (slice(-3, None), [1497, 1498, 1499]),
        (slice(10, 4, -2), [10, 8, 6]),
        ([5, 5, -1], [5, 5, 1499]),
        (np.arange(COUNT) % 500 == 2, [2, 502, 1002]),
        ([], []),
    ],
)
def test_records_are_those_asked_for_in_that_order(
    shards: list[str], records: Any, expected: list[int]
) -> None:
    scan = tfr.scan(shards, features=["id"], records=records, record_column=True, batch_size=2)
    assert len(scan) == len(expected)
    table = pa.table(scan)
    assert table["record"].to_pylist() == expected
    assert table["id"].to_pylist() == expected


def test_arguments_that_make_no_sense_are_refused(shards: list[str]) -> None:
    with pytest.raises(IndexError, match="Record 1500 does not exist"):
        tfr.scan(shards, records=[1500])
    with pytest.raises(ValueError, match="There is no column 'nothing'"):
        tfr.scan(shards, features=FEATURES, columns=["nothing"])
    with pytest.raises(ValueError, match="columns names 'id' twice"):
        tfr.scan(shards, features=FEATURES, columns=["id", "name", "id"])
    with pytest.raises(TypeError, match=r"columns=\['id'\]"):
        tfr.scan(shards, features=FEATURES, columns="id")
    for features in (FEATURES, ["id", "name"], None):
        for columns in (None, ["id"], ["name", "id"]):
            with pytest.raises(ValueError, match="There is a feature 'id' already"):
                tfr.scan(shards, features=features, columns=columns, record_column="id")
    assert tfr.scan(shards, features=["name"], columns=["id"], record_column="id").columns == ["id"]
    with pytest.raises(ValueError, match="record_column and shard_column are both 'x'"):
        tfr.scan(shards, features=FEATURES, record_column="x", shard_column="x")
    with pytest.raises(ValueError, match="Arrow has no sparse columns"):
        tfr.scan(shards, features={"s": tfr.SparseIndexed("positions", "weights", "float32", 10)})
    with pytest.raises(ValueError, match="shapes without values"):
        steps = tfr.FixedLenSequence((0,), "int64", allow_missing=True)
        tfr.scan(shards, features={"s": steps})
    with pytest.raises(ValueError, match="does not divide rows"):
        partitions = [("row_lengths", "lengths")]
        tfr.scan(shards, features={"w": tfr.VarLen("float32", partitions=partitions)})
    for kind in ("complex64", ">f4"):
        with pytest.raises(TypeError, match=f"no type for {kind}"):
            tfr.scan(shards, features={"raw": tfr.FixedLen((), kind, raw=True)})
    with pytest.raises(ValueError, match="threads is 0, but must be from 1"):
        tfr.scan(shards, features=FEATURES, threads=0)
    with pytest.raises(TypeError, match="options of a Reader"):
        tfr.scan(tfr.Reader(shards), features=FEATURES, verify="header")


def test_a_column_of_files_is_text(tmp_path: Path) -> None:
    path = f"{tmp_path}/\udcff"
    write_rows(path, [{"id": 1}])
    scan = tfr.scan(path, features=["id"], shard_column=True)
    with pytest.raises(ValueError, match=r"/\\xff' is not UTF-8"):
        pa.table(scan)


def test_text_is_checked_and_becomes_strings(tmp_path: Path) -> None:
    names = ["plain ascii, long enough for a word", "ä", "日本語", "\U0001f600" * 9, ""]
    wrong = [
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc0\xaf",
        b"ok, \xe0\x80\x80",
    ]
    write_rows(
        tmp_path / "x",
        (
            {"one": name, "many": [b"", name, b"x"][: number + 1]}
            for number, name in enumerate([*names, *wrong])
        ),
    )
    specs = {"one": tfr.FixedLen((), "bytes"), "many": tfr.VarLen("bytes")}
    source = str(tmp_path / "x")
    table = table_of(source, features=specs, text=["one", "many"], records=slice(len(names)))
    assert table["one"].to_pylist() == names
    assert table["many"].to_pylist()[1:] == [
        ["", names[1]],
        *(["", name, "x"] for name in names[2:]),
    ]
    assert table.schema.field("one").type == pa.large_string()
    for name in specs:
        for number in range(len(names), len(names) + len(wrong)):
            batch = tfr.scan(source, features=specs, text=[name], records=[0, number])
            with pytest.raises(tfr.FeatureError, match=f"'{name}' of record {number} is not text"):
                next(iter(batch))
    with pytest.raises(ValueError, match="does not hold byte strings"):
        tfr.scan(source, features={"one": tfr.FixedLen((), "int64")}, text=["one"])
    with pytest.raises(ValueError, match="not a feature among the columns"):
        tfr.scan(source, features=specs, columns=["many"], text=["one"])


def test_a_sample_of_all_records_is_a_promise(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "x") as writer:
        for number in range(3000):
            features = {"one": 1, "two": [1.0, 2.0], "some": 5 if number != 2900 else None}
            features["late"] = [b"x"] * (2 if number == 2950 else 1)
            writer.write_example(features)
    schema = pa.schema(tfr.scan(str(tmp_path / "x"), sample=None))
    assert schema.field("one") == pa.field("one", pa.int64(), nullable=False)
    assert schema.field("two").type.list_size == 2
    assert schema.field("some") == pa.field("some", pa.int64())
    assert pa.types.is_large_list(schema.field("late").type)
    schema = pa.schema(tfr.scan(str(tmp_path / "x"), sample=5000))
    assert schema.field("one").type == pa.int64()
    with pytest.raises(ValueError, match="sample must be at least 1"):
        tfr.scan(str(tmp_path / "x"), sample=0)


def test_one_feature_may_be_in_two_columns(shards: list[str]) -> None:
    features = {"a": tfr.VarLen("int64", key="numbers"), "b": tfr.VarLen("int64", key="numbers")}
    table = table_of(shards, features=features)
    assert table["a"].to_pylist() == table["b"].to_pylist()
    assert table["b"].to_pylist()[0] == expected_row(0)["numbers"]


def test_tensors_have_their_shape_in_the_type(shards: list[str]) -> None:
    table = table_of(shards, features=FEATURES, columns=["raw", "dense", "id"], tensors=True)
    raw = table.schema.field("raw").type
    assert raw.extension_name == "arrow.fixed_shape_tensor"
    assert list(raw.shape) == [2, 2]
    tensors = table["raw"].combine_chunks().to_numpy_ndarray()
    assert tensors[3].tolist() == expected_row(3)["raw"]
    assert table.schema.field("id").type == pa.int64()


def test_a_scan_can_be_used_again_and_streams_are_independent(shards: list[str]) -> None:
    scan = tfr.scan(shards, features=FEATURES, batch_size=100)
    one = pa.RecordBatchReader.from_stream(scan)
    other = pa.RecordBatchReader.from_stream(scan)
    first = one.read_next_batch()
    assert other.read_next_batch().equals(first)
    assert other.read_next_batch()["id"][0].as_py() == 100
    assert one.read_next_batch()["id"][0].as_py() == 100
    assert pa.table(scan).num_rows == COUNT


def test_streams_may_run_on_many_threads(shards: list[str]) -> None:
    scan = tfr.scan(shards, features=FEATURES, batch_size=50)
    tables: list[Any] = []
    in_threads([lambda: tables.append(pa.table(scan).combine_chunks())] * 4)
    assert len(tables) == 4
    assert all(table == tables[0] for table in tables)


def test_nothing_is_read_before_the_first_batch(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_rows(path, ({"a": number} for number in range(10)))
    with tfr.Reader(str(path)) as reader:
        scan = tfr.scan(reader, features={"a": tfr.FixedLen((), "int64")})
        flip_payload_byte(str(path), tfr.Reader(str(path)), 0)
        stream = pa.RecordBatchReader.from_stream(scan)
        assert stream.schema.names == ["a"]
        with pytest.raises(OSError, match="[Rr]ecord 0"):
            stream.read_next_batch()


def test_damage_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_rows(path, ({"a": number} for number in range(100)))
    flip_payload_byte(str(path), tfr.Reader(str(path)), 42)
    features = {"a": tfr.FixedLen((), "int64")}
    with pytest.raises(OSError, match="[Rr]ecord 42"):
        table_of(str(path), features=features)
    options: Any = {"on_corruption": "skip", "record_column": True}
    table = table_of(str(path), features=features, **options)
    assert table["a"].to_pylist() == [n for n in range(100) if n != 42]
    assert table["record"].to_pylist() == table["a"].to_pylist()


def test_iterating_gives_batches_and_errors_of_ours(shards: list[str]) -> None:
    scan = tfr.scan(shards, features=FEATURES, batch_size=600)
    assert [pa.record_batch(batch).num_rows for batch in scan] == [600, 600, 300]
    wrong = tfr.scan(shards, features={"name": tfr.FixedLen((), "int64")})
    with pytest.raises(tfr.FeatureError, match="name"):
        next(iter(wrong))


def test_what_was_taken_outlives_stream_scan_and_reader(shards: list[str]) -> None:
    reader = tfr.Reader(shards)
    scan = tfr.scan(reader, features=FEATURES, batch_size=200)
    stream = pa.RecordBatchReader.from_stream(scan)
    first = stream.read_next_batch()
    reader.close()
    rest = stream.read_all()  # the stream keeps the shards open
    with pytest.raises(ValueError, match="closed"):
        pa.table(scan)
    del stream, scan, reader
    gc.collect()
    table = pa.Table.from_batches([first, *rest.to_batches()])
    assert table.to_pylist() == [expected_row(number) for number in range(COUNT)]


def test_memory_is_released_on_threads_without_python(shards: list[str]) -> None:
    """PyArrow's writer and its threads let go of batches while the GIL is elsewhere."""
    import pyarrow.parquet as pq

    scan = tfr.scan(shards, features=FEATURES, batch_size=20)
    in_threads([lambda: pq.write_table(pa.table(scan), pa.BufferOutputStream())] * 3)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_goes_on_and_releases(shards: list[str]) -> None:
    scan = tfr.scan(shards, features=FEATURES, batch_size=100)
    stream = pa.RecordBatchReader.from_stream(scan)
    first = stream.read_next_batch()

    def goes_on() -> bool:
        nonlocal first, stream
        fresh = pa.RecordBatchReader.from_stream(scan).read_next_batch()
        second = stream.read_next_batch()
        fits: bool = fresh.equals(first) and second["id"][0].as_py() == 100
        first = stream = fresh = second = None  # releases all of them
        gc.collect()
        return fits

    assert is_right_in_child(goes_on)
    assert stream.read_next_batch()["id"][0].as_py() == 100


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (TimeoutError("enough"), "TimeoutError: enough"),
        (TimeoutError("no text in UTF-8: \udcff"), "TimeoutError"),
        (UnprintableError(), "UnprintableError"),
    ],
)
def test_what_a_signal_raises_ends_what_a_consumer_reads(
    shards: list[str], error: Exception, text: str
) -> None:
    def raise_it(*_: object) -> None:
        raise error

    scan = tfr.scan(shards, features=FEATURES, records=np.zeros(20_000_000, np.int64), threads=1)
    stream = pa.RecordBatchReader.from_stream(scan)
    before = signal.signal(signal.SIGALRM, raise_it)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(OSError, match=text):
            stream.read_all()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_scan_of_an_order_has_an_epoch_of_it(tmp_path: Path) -> None:
    mixture = mixture_of(write_sets(tmp_path))
    table = pa.table(tfr.scan(mixture, features=["id"], record_column=True, batch_size=64))
    expected = tfr.Plan(mixture, 200).indices(0, 0)
    assert table["record"].to_pylist() == expected.tolist()
    order = tfr.Weighted(np.arange(87), length=30)
    shares = tfr.scan(mixture.reader, features=["id"], order=order, record_column=True)
    assert pa.table(shares)["record"].to_pylist() == tfr.Plan(order, 30).indices(0, 0).tolist()
    with pytest.raises(TypeError, match="give it indices instead"):
        tfr.scan(mixture, records=[1])
