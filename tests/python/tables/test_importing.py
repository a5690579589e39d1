"""Import of other programs' tables: the records, and the report."""

from __future__ import annotations

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
