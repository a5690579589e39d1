"""Import of other programs' tables: the records, and the report."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

import tfrfast as tfr
from tfrfast.cli import main

pa = pytest.importorskip("pyarrow")


def test_the_index_of_pandas_is_no_feature(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"label": [1, 2, 3]}, index=[7, 5, 6])
    table = pa.Table.from_pandas(frame)
    assert "__index_level_0__" in table.column_names
    for given in (table, frame):
        batch = tfr.encode_examples(given)
        assert sorted(tfr.infer_features(batch)) == ["label"]
    frame.index.name = "id"
    batch = tfr.encode_examples(pa.Table.from_pandas(frame))
    assert sorted(tfr.infer_features(batch)) == ["id", "label"]


def test_import_says_what_export_gives_back_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.parquet as pq

    columns = {
        "price": pa.array([1.5, 2.5], pa.float64()),
        "name": pa.array(["a", "b"]),
        "small": pa.array([[1], [2]], pa.list_(pa.int8())),
        "label": pa.array([1, 2], pa.int64()),
        "image": pa.array([b"x", b"y"]),
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    path, out = str(tmp_path / "x.parquet"), str(tmp_path / "train")
    assert main(["import", path, "--out", out, "--num-shards", "2"]) == 0
    said = capsys.readouterr().out
    assert "so they are read in another order." in said
    assert said.endswith(
        "gives back otherwise: price (double to float), name (string to binary), "
        "small (int8 to int64)\n"
    )
    pq.write_table(pa.table(columns).select(["label", "image"]), path)
    assert main(["import", path, "--out", out, "--overwrite", "--num-shards", "1"]) == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_an_import_takes_more_files_than_a_process_may_open(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    for number in range(64):
        pq.write_table(pa.table({"label": [number]}), tmp_path / f"{number:02}.parquet")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = len(os.listdir("/proc/self/fd")) + 32
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, limits[1]))
    try:
        assert main(["import", f"{tmp_path}/*.parquet", "--out", str(tmp_path / "train")]) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    with tfr.Reader(str(tmp_path / "train-*")) as reader:
        labels = tfr.parse_example(reader[:], {"label": tfr.FixedLen((), "int64")})["label"]
    assert labels.tolist() == list(range(64))


def test_the_error_about_a_damaged_file_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.parquet as pq

    table = pa.table({"label": range(100_000)})
    for name in ("good", "bad"):
        pq.write_table(table, tmp_path / f"{name}.parquet", compression="gzip")
    data = bytearray((tmp_path / "bad.parquet").read_bytes())
    middle = len(data) // 2
    data[middle : middle + 1000] = bytes(1000)
    (tmp_path / "bad.parquet").write_bytes(data)
    files = [str(tmp_path / "good.parquet"), str(tmp_path / "bad.parquet")]
    assert main(["import", *files, "--out", str(tmp_path / "train")]) == 2
    assert "bad.parquet' cannot be read as a Parquet file" in capsys.readouterr().err
    assert not [*tmp_path.glob("train*")]
