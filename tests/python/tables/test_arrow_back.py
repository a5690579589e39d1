"""Tables of other programs become Examples, and Parquet goes there and back."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from cli_files import run_shown as run

pa = pytest.importorskip("pyarrow")

ROWS = 60


def rows_of(make: Any) -> list[Any]:
    return [None if number % 7 == 3 else make(number) for number in range(ROWS)]


# A type, a function from a row's number to the row's value, and a function from this value to the
# value that comes back.
CASES: dict[str, tuple[Any, Any, Any]] = {
    "bool": (pa.bool_(), lambda n: n % 2 == 0, int),
    "int8": (pa.int8(), lambda n: n - 30, int),
    "uint32": (pa.uint32(), lambda n: n * 2**25, int),
    "int64": (pa.int64(), lambda n: n - 2**60, int),
    "uint64": (pa.uint64(), lambda n: n, int),
    "float16": (pa.float16(), lambda n: np.float16(n / 4), float),
    "float32": (pa.float32(), lambda n: n / 8, float),
    "float64": (pa.float64(), lambda n: n / 8, float),
    "string": (pa.string(), lambda n: "ä" * n, str.encode),
    "large_string": (pa.large_string(), lambda n: "ä" * n, str.encode),
    "string_view": (pa.string_view(), lambda n: "ab" * n, str.encode),
    "binary": (pa.binary(), lambda n: bytes(n), bytes),
    "large_binary": (pa.large_binary(), lambda n: bytes(n), bytes),
    "binary_view": (pa.binary_view(), lambda n: b"xyz" * n, bytes),
    "fixed_binary": (pa.binary(3), lambda n: b"%03d" % n, bytes),
    "date32": (pa.date32(), lambda n: datetime.date(1970, 1, 1 + n % 20), lambda d: d.day - 1),
    "timestamp": (
        pa.timestamp("us"),
        lambda n: datetime.datetime(1970, 1, 1, 0, 0, n),
        lambda t: t.second * 10**6,
    ),
    "list": (pa.list_(pa.int64()), lambda n: list(range(n % 4)), list),
    "large_list": (pa.large_list(pa.float32()), lambda n: [n / 2.0] * (n % 3), list),
    "list_view": (pa.list_view(pa.int32()), lambda n: [n] * (n % 3), list),
    "large_list_view": (pa.large_list_view(pa.int64()), lambda n: [n] * (n % 3), list),
    "list_of_strings": (
        pa.list_(pa.string()),
        lambda n: ["a" * i for i in range(n % 5)],
        lambda v: [each.encode() for each in v],
    ),
    "list_of_lists": (
        pa.list_(pa.list_(pa.int64())),
        lambda n: [[n], [], [1, 2]][: n % 4],
        lambda v: [x for each in v for x in each],
    ),
    "fixed_list": (pa.list_(pa.int16(), 2), lambda n: [n, -n], list),
    "fixed_list_of_lists": (
        pa.list_(pa.list_(pa.float32(), 2), 2),
        lambda n: [[n, 1.0], [2.0, 3.0]],
        lambda v: [x for each in v for x in each],
    ),
    "fixed_list_of_strings": (
        pa.list_(pa.string(), 2),
        lambda n: ["x" * n, "y"],
        lambda v: [each.encode() for each in v],
    ),
    "dictionary": (
        pa.dictionary(pa.int8(), pa.string()),
        lambda n: "cat" if n % 2 else "dog",
        str.encode,
    ),
    "null": (pa.null(), lambda n: None, None),
}


def values_in(records: Any, name: str) -> list[Any]:
    """The values of each record, or None if it lacks the feature."""
    found = []
    for record in records:
        specs = tfr.infer_features([record])
        if name not in specs:
            found.append(None)
            continue
        spec = tfr.VarLen(specs[name].dtype)
        found.append(list(tfr.parse_example([record], {name: spec})[name][0].tolist()))
    return found


@pytest.mark.parametrize("kind", CASES)
def test_columns_of_every_type_become_features(kind: str) -> None:
    dtype, make, back = CASES[kind]
    rows = rows_of(make)
    whole = pa.array(rows, dtype)
    values = [None if row is None else back(row) for row in rows]
    expected = [value if value is None or isinstance(value, list) else [value] for value in values]
    chunked = pa.chunked_array([whole[:10], whole[10:10], whole[10:]])
    for column in (whole, chunked):
        assert values_in(tfr.encode_examples({"x": column}), "x") == expected
    part = pa.table({"x": chunked}).slice(7, 40)
    assert values_in(tfr.encode_examples(part), "x") == expected[7:47]
    batch = pa.record_batch({"x": whole}).slice(5, 20)
    assert values_in(tfr.encode_examples(batch), "x") == expected[5:25]
    assert len(tfr.encode_examples(pa.table({"x": whole[:0]}))) == 0


def test_a_scan_encoded_again_gives_the_same_records(tmp_path: Path) -> None:
    records = [
        tfr.encode_example({"a": number, "b": [1.0] * (number % 3) or None, "c": b"x" * number})
        for number in range(50)
    ]
    with tfr.Writer(tmp_path / "x") as writer:
        writer.write_batch(records)
    scan = tfr.scan(str(tmp_path / "x"), batch_size=13)
    assert tfr.encode_examples(scan).tolist() == records
    table = pa.table(scan)
    assert tfr.encode_examples(table).tolist() == records
    with tfr.ShardedWriter(tmp_path / "y", num_shards=1) as shards:
        shards.write_batch(table)
        shards.write_batch(scan)
    assert list(tfr.Reader(str(tmp_path / "y-*"))) == records * 2


def test_polars_and_duckdb_tables_are_taken(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    frame = pl.DataFrame(
        {
            "name": ["a", "a longer one than twelve bytes", None],
            "n": [1, None, 3],
            "xs": [[1.5], [], None],
            "kind": pl.Series(["u", "v", "u"], dtype=pl.Categorical),
        }
    )
    expected = [
        tfr.encode_examples({"name": [b"a"], "n": [1], "xs": [[1.5]], "kind": ["u"]})[0],
        None,
        tfr.encode_example({"n": 3, "kind": "u"}),
    ]
    made = tfr.encode_examples(frame).tolist()
    assert made[0] == expected[0]
    assert made[2] == expected[2]
    assert tfr.parse_example(made[1:2], {"name": tfr.FixedLen((), "bytes")})["name"].tolist() == [
        b"a longer one than twelve bytes"
    ]
    assert tfr.encode_examples({"name": frame["name"]}).tolist()[0] == tfr.encode_example(
        {"name": "a"}
    )
    table = duckdb.sql("select 5::bigint as n, 'x' as name")
    assert tfr.encode_examples(table).tolist() == [tfr.encode_example({"n": 5, "name": "x"})]


def test_what_an_example_cannot_hold_is_refused() -> None:
    with pytest.raises(tfr.FeatureError, match="nulls inside its lists"):
        tfr.encode_examples({"x": pa.array([[1, None]])})
    with pytest.raises(tfr.FeatureError, match="has no place in an Example"):
        tfr.encode_examples({"x": pa.array([{"a": 1}])})
    with pytest.raises(tfr.FeatureError, match="'tin' has no place in an Example"):
        tfr.encode_examples({"x": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    with pytest.raises(tfr.FeatureError, match="does not fit int64"):
        tfr.encode_examples({"x": pa.array([2**64 - 1], pa.uint64())})
    with pytest.raises(TypeError, match="a column without a name"):
        tfr.encode_examples(pa.array([1]))
    with pytest.raises(TypeError, match="PyCapsule interface, not int"):
        tfr.encode_examples(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two columns with one name"):
        tfr.encode_examples(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(ValueError, match="same number of rows"):
        tfr.encode_examples({"x": pa.array([1, 2]), "y": [1]})


def test_nulls_behind_null_rows_are_nobodys() -> None:
    inner = pa.array([1, None, 3, 4], pa.int64())
    rows = pa.FixedSizeListArray.from_arrays(inner, 2, mask=pa.array([True, False]))
    assert values_in(tfr.encode_examples({"x": rows}), "x") == [None, [3, 4]]
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 4], pa.int32()), inner, mask=pa.array([True, False])
    )
    assert values_in(tfr.encode_examples({"x": lists}), "x") == [None, [3, 4]]


def test_raw_columns_of_a_table_are_byte_strings_and_nulls_are_absent() -> None:
    table = pa.table({"x": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int16(), 2))})
    records = tfr.encode_examples(table, raw=["x"])
    assert records[1] == tfr.encode_example({})
    assert tfr.encode_examples({"x": table["x"]}, raw=["x"]).tolist() == records.tolist()
    spec = {"x": tfr.FixedLen((2,), "int16", raw=True)}
    assert tfr.parse_example(records[::2], spec)["x"].tolist() == [[1, 2], [3, 4]]
    with pytest.raises(tfr.FeatureError, match="rows of the same shape"):
        tfr.encode_examples({"x": pa.array([[1], [2, 3]])}, raw=["x"])
    with pytest.raises(ValueError, match="raw names"):
        tfr.encode_examples(table, raw=["y"])


def test_parquet_there_and_back(
    shards: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.parquet as pq

    out = tmp_path / "x.parquet"
    status, shown, error = run(capsys, "export", *shards, "--out", out)
    assert (status, error) == (0, "")
    assert shown.startswith("1,500 records")
    table = pq.read_table(out)
    assert table.schema.field("id").type == pa.int64()
    assert table["id"].to_pylist() == list(range(1500))
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]

    status, shown, error = run(
        capsys, "import", out, "--out", tmp_path / "back", "--num-shards", 1, "--json"
    )
    assert (status, error) == (0, "")
    paths = json.loads(shown)["paths"]
    scans = [tfr.scan(each, sample=None) for each in (shards, paths)]
    assert pa.table(scans[0]).equals(pa.table(scans[1]))
    tfr.Reader(paths, index="require")


def test_parquet_of_every_type_there_and_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.parquet as pq

    unwritable = {"string_view", "binary_view", "list_view", "large_list_view"}
    columns = {
        kind: pa.array(rows_of(make), dtype)
        for kind, (dtype, make, _) in CASES.items()
        if kind not in unwritable
    }
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    status, shown, error = run(
        capsys, "import", tmp_path / "in.parquet", "--out", tmp_path / "shard", "--json"
    )
    assert (status, error) == (0, "")
    shard = json.loads(shown)["paths"][0]
    status, _, error = run(capsys, "export", shard, "--out", tmp_path / "out.parquet")
    assert (status, error) == (0, "")
    status, shown, _ = run(
        capsys, "import", tmp_path / "out.parquet", "--out", tmp_path / "again", "--json"
    )
    assert status == 0
    again = json.loads(shown)["paths"][0]
    assert list(tfr.Reader(again)) == list(tfr.Reader(shard))


def test_exports_can_be_cut_narrowed_and_refused(
    shards: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.parquet as pq

    out = tmp_path / "new" / "x.parquet"
    options = ["--columns", "id,name", "--record", "--num-shards", 3]
    status, _, _ = run(capsys, "export", *shards, "--out", out, *options)
    assert status == 0
    names = sorted((tmp_path / "new").iterdir())
    assert [path.name for path in names] == [f"x-{n:05}-of-00003.parquet" for n in range(3)]
    parts = [pq.read_table(name) for name in names]
    assert [part.num_rows for part in parts] == [500, 500, 500]
    assert parts[2].column_names == ["id", "name", "record"]
    assert parts[2]["record"].to_pylist() == parts[2]["id"].to_pylist() == list(range(1000, 1500))
    status, _, error = run(capsys, "export", *shards, "--out", out, *options)
    assert status == 2
    assert "--overwrite" in error
    (tmp_path / "new" / "x-y-00000-of-00003.parquet").touch()  # of another export
    fewer = [*options[:-1], 2]
    status, _, error = run(capsys, "export", *shards, "--out", out, *fewer)
    assert status == 2
    assert "00003.parquet" in error
    status, _, error = run(capsys, "export", *shards, "--out", out, *fewer, "--overwrite")
    assert (status, error) == (0, "")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        *(f"x-{n:05}-of-00002.parquet" for n in range(2)),
        "x-y-00000-of-00003.parquet",
    ]
    status, _, error = run(
        capsys, "export", *shards, "--out", tmp_path / "y.parquet", "--text", "name"
    )
    assert status == 2
    assert "is not text in UTF-8" in error
    assert not list(tmp_path.glob("*y.parquet*"))


def test_what_is_not_parquet_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_bytes(b"text, and not a table")
    status, _, error = run(capsys, "import", tmp_path / "x", "--out", tmp_path / "out")
    assert status == 2
    assert error.startswith(f"tfrfast: '{tmp_path}/x' cannot be read as a Parquet file: ")
