"""Polars, DuckDB and pandas read scans; the lazy frame reads no more than it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from record_files import flip_payload_byte, write_rows
from table_data import FEATURES, expected_row

COUNT = 1500


def test_polars_reads_a_scan_and_a_batch(shards: list[str]) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(tfr.scan(shards, features=FEATURES, shard_column=True, batch_size=90))
    assert frame.drop("shard").to_dicts() == [expected_row(number) for number in range(COUNT)]
    assert frame["shard"].cast(pl.String).unique().sort().to_list() == sorted(shards)
    batch = next(iter(tfr.Loader(shards, 20, features=FEATURES, shuffle=False)))
    assert pl.DataFrame(batch.to_arrow())["dense"].to_list() == batch["dense"].tolist()
    assert pl.Series(batch["words"]).to_list() == batch["words"].tolist()


def test_duckdb_reads_a_scan_by_its_name(shards: list[str]) -> None:
    duckdb = pytest.importorskip("duckdb")
    examples = tfr.scan(
        shards, features=FEATURES, record_column=True, shard_column=True, batch_size=90
    )
    assert len(examples) == COUNT
    query = """
        select label, count(*), sum(id), max(record), count(lengths), sum(len(words))
        from examples group by label order by label
    """
    rows = [expected_row(number) for number in range(COUNT)]
    expected = []
    for label in (False, True):
        some = [row for row in rows if row["label"] is label]
        ids = [row["id"] for row in some]
        lengths = [row for row in some if row["lengths"] is not None]
        words = sum(len(row["words"] or ()) for row in some)
        expected.append((label, len(some), sum(ids), max(ids), len(lengths), words))
    for _ in range(2):
        assert duckdb.sql(query).fetchall() == expected
    assert duckdb.sql("select name from examples where id = 77").fetchall() == [(rows[77]["name"],)]
    shard_counts = "select shard::varchar as s, count(*) from examples group by s order by s"
    assert [count for _, count in duckdb.sql(shard_counts).fetchall()] == [700, 1, 799]


def test_pandas_reads_a_scan(shards: list[str]) -> None:
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    scan = tfr.scan(shards, features=FEATURES, columns=["id", "label", "name"])
    frame: Any = pa.table(scan).to_pandas()
    assert frame["id"].tolist() == list(range(COUNT))
    if hasattr(pd.DataFrame, "from_arrow"):
        assert pd.DataFrame.from_arrow(scan)["id"].tolist() == list(range(COUNT))


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    """A hundred records. Record 60 is damaged."""
    path = tmp_path / "x"
    write_rows(path, ({"a": number, "b": [number, number], "c": b"text"} for number in range(100)))
    flip_payload_byte(str(path), tfr.Reader(str(path)), 60)
    return str(path)


LAZY = {
    "a": tfr.FixedLen((), "int64"),
    "b": tfr.FixedLen((2,), "int64"),
    "c": tfr.FixedLen((), "int64"),  # the wrong type
}


def test_a_lazy_frame_decodes_only_the_columns_of_the_query(damaged: str) -> None:
    pl = pytest.importorskip("polars")
    tables = pytest.importorskip("tfrfast.polars")
    lazy = tables.scan(damaged, features=LAZY, records=slice(60), record_column=True)
    assert lazy.collect_schema().names() == ["a", "b", "c", "record"]
    assert lazy.select("a").sum().collect().item() == sum(range(60))
    assert lazy.filter(pl.col("a") > 55).select("b").collect()["b"].to_list() == [
        [n, n] for n in range(56, 60)
    ]
    assert lazy.select(pl.len()).collect().item() == 60
    with pytest.raises(tfr.FeatureError, match="'c'"):
        lazy.select("c").collect()


def test_a_lazy_frame_reads_no_further_than_the_rows_it_needs(damaged: str) -> None:
    pl = pytest.importorskip("polars")
    tables = pytest.importorskip("tfrfast.polars")
    whole = tables.scan(damaged, features=LAZY, record_column=True)
    for start, length in ((50, 10), (61, None), (-5, 3), (98, 9), (200, 3), (3, 0)):
        rows = list(range(100))[slice(start, None if length is None else start + length)]
        part = whole.slice(start, length).select("a", "record").collect()
        assert part["record"].to_list() == part["a"].to_list() == rows
    assert whole.tail(3).select("a").collect()["a"].to_list() == [97, 98, 99]
    assert whole.slice(70).tail(2).slice(1, 5).select("a").collect()["a"].to_list() == [99]
    lazy = whole.select("a", "record")
    assert lazy.head(60).collect()["a"].to_list() == list(range(60))
    assert lazy.limit(0).collect().height == 0
    assert lazy.head(20).filter(pl.col("a") % 7 == 0).collect()["a"].to_list() == [0, 7, 14]
    with pytest.raises(tfr.CorruptRecordError, match="60"):
        lazy.head(61).collect()


def test_a_lazy_frame_counts_rows_after_damage_was_left_out(damaged: str) -> None:
    pytest.importorskip("polars")
    tables = pytest.importorskip("tfrfast.polars")
    lazy = tables.scan(damaged, features=LAZY, on_corruption="skip").select("a")
    good = [number for number in range(100) if number != 60]
    assert lazy.head(80).collect()["a"].to_list() == good[:80]
    assert lazy.slice(58, 4).collect()["a"].to_list() == good[58:62]
    assert lazy.tail(2).collect()["a"].to_list() == [98, 99]


def test_a_lazy_frame_can_be_collected_again_and_joined(shards: list[str]) -> None:
    pl = pytest.importorskip("polars")
    tables = pytest.importorskip("tfrfast.polars")
    lazy = tables.scan(tfr.Reader(shards), features=FEATURES, record_column=True)
    assert lazy.collect().equals(lazy.collect())
    labels = pl.LazyFrame({"id": [3, 1400], "extra": ["x", "y"]})
    joined = lazy.join(labels, on="id").select("record", "extra").sort("record").collect()
    assert joined.rows() == [(3, "x"), (1400, "y")]
