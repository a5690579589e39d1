"""Chosen records as new shards, in Python and from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from cli_files import run_shown as run
from record_files import flip_payload_byte

COUNT = 1500


def test_records_are_deleted_by_a_condition(
    shards: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb")
    shards = tfr.copy(shards, slice(None), tmp_path / "set", num_shards=4).paths
    labels = tfr.parse_example(list(tfr.Reader(shards)), {"label": tfr.FixedLen((), "int64")})
    kept = [
        each for each, label in zip(tfr.Reader(shards), labels["label"], strict=True) if label != 1
    ]
    assert 0 < len(kept) < COUNT
    would = tfr.delete(shards, where="label = 1", dry_run=True)
    assert would.num_records == COUNT - len(kept)
    _, said, _ = run(capsys, "delete", *shards, "--where", "label == 1")
    assert f"{COUNT - len(kept)} records deleted from 4 shards" in said
    assert list(tfr.Reader(shards)) == kept


def test_numbers_may_come_from_a_query(shards: list[str], tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    tables = pytest.importorskip("tfrfast.polars")
    features = {"id": tfr.FixedLen((), "int64"), "label": tfr.FixedLen((), "int64")}
    frame = tables.scan(shards, features=features, record_column=True)
    odd = frame.filter(pl.col("label") == 1).sort("id", descending=True).collect()
    made = tfr.copy(shards, odd["record"], tmp_path / "odd", max_bytes=20_000)
    assert len(made.paths) > 2
    copied = tfr.Reader(made.paths)
    assert tfr.parse_example(copied[:], features)["id"].tolist() == list(range(COUNT - 1, 0, -2))


def test_payloads_are_verified_even_if_the_reader_would_not(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with tfr.Writer(path) as writer:
        writer.write_batch([b"%d" % number * 50 for number in range(100)])
    flip_payload_byte(str(path), tfr.Reader(str(path)), 42)
    quick = tfr.Reader(str(path), verify="header")
    with pytest.raises(tfr.CorruptRecordError, match="42"):
        tfr.copy(quick, slice(None), tmp_path / "out" / "y")
    assert not (tmp_path / "out").exists()
    made = tfr.copy(
        str(path), slice(10, 90), tmp_path / "out" / "y", num_shards=3, on_corruption="skip"
    )
    copied = list(tfr.Reader(made.paths))
    assert copied == [b"%d" % number * 50 for number in range(10, 90) if number != 42]
    assert len(made.skipped) == 1


def test_what_is_there_is_kept_unless_it_may_be_replaced(shards: list[str], tmp_path: Path) -> None:
    tfr.copy(shards, [1], tmp_path / "x")
    with pytest.raises(FileExistsError):
        tfr.copy(shards, [2], tmp_path / "x")
    made = tfr.copy(shards, [2], tmp_path / "x", overwrite=True, compression="GZIP")
    assert list(tfr.Reader(made.paths)) == [tfr.Reader(shards)[2]]
    with pytest.raises(IndexError, match="Record 1500 does not exist"):
        tfr.copy(shards, [COUNT], tmp_path / "y")
    with pytest.raises(ValueError, match="num_shards"):
        tfr.copy(shards, [0], tmp_path / "y", num_shards=2, max_bytes=10)
    with pytest.raises(TypeError, match="Records are named by"):
        tfr.copy(shards, [0.5], tmp_path / "y")
    assert not list(tmp_path.glob("y*"))


def test_the_command_takes_numbers_from_a_file(
    shards: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "numbers").write_text("7 3\n3\n-1\n")
    out = ["--out", tmp_path / "x", "--num-shards", 2, "--json"]
    status, shown, _ = run(capsys, "copy", *shards, "--records", tmp_path / "numbers", *out)
    assert status == 0
    reader = tfr.Reader(shards)
    expected = [reader[number] for number in (7, 3, 3, -1)]
    assert list(tfr.Reader(json.loads(shown)["paths"])) == expected
    np.save(tmp_path / "numbers.npy", np.array([5, 6]))
    out = ["--out", tmp_path / "y"]
    status, shown, _ = run(capsys, "copy", *shards, "--records", tmp_path / "numbers.npy", *out)
    assert (status, shown.split(",")[0]) == (0, "2 records")
    (tmp_path / "numbers").write_text("7 x")
    status, _, error = run(capsys, "copy", *shards, "--records", tmp_path / "numbers", *out)
    assert status == 2
    assert "'x', which is not a record number" in error
    for wrong in ("--3", "3.5", "9" * 30):
        (tmp_path / "numbers").write_text(f"7\n{wrong}\n")
        status, _, error = run(capsys, "copy", *shards, "--records", tmp_path / "numbers", *out)
        assert status == 2
        assert f"numbers has '{wrong}', " in error


@pytest.fixture(params=["duckdb", "polars"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Hides all other engines from the command."""
    name: str = request.param
    pytest.importorskip(name)
    import importlib.util

    found = importlib.util.find_spec
    others = {"duckdb", "polars"} - {name}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in others else found(name)
    )
    return name


def test_the_command_takes_a_condition(
    shards: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    out = ["--out", tmp_path / "x", "--overwrite"]
    where = "label == 1 and id < 100 or lengths is null and id > 1490"
    status, _, error = run(capsys, "copy", *shards, "--where", where, *out)
    assert (status, error) == (0, "")
    features = {
        "id": tfr.FixedLen((), "int64"),
        "lengths": tfr.FixedLen((), "int64", default=-1),
    }
    every = tfr.parse_example(tfr.Reader(shards)[:], features)
    expected = [n for n in range(100) if n % 2] + [
        n for n in range(1491, COUNT) if every["lengths"][n] == -1
    ]
    copied = tfr.parse_example(tfr.Reader(str(tmp_path / "x-*"))[:], features)
    assert copied["id"].tolist() == expected
    assert run(capsys, "copy", *shards, "--where", "true", *out)[0] == 0
    assert len(tfr.Reader(str(tmp_path / "x-*"))) == COUNT
    status, _, error = run(capsys, "copy", *shards, "--where", "random() < 0.1", *out)
    if engine == "duckdb":
        assert 0 < len(tfr.Reader(str(tmp_path / "x-*"))) < COUNT / 3
    else:
        assert "Polars refuses 'random() < 0.1'" in error
    status, _, error = run(capsys, "copy", *shards, "--where", "nothing = 3", *out)
    assert status == 2
    assert "names no feature" in error
    status, _, error = run(capsys, "copy", *shards, "--where", "label = = 3", *out)
    assert status == 2
    assert "refuses" in error
    assert len(error.splitlines()) == 1


def test_a_condition_may_name_what_is_not_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    with tfr.Writer(tmp_path / "x") as writer:
        for number in range(30):
            name = "a==b" if number % 3 else "a=b"
            features = {"image": b"\xff\xd8" * number, "image/width": number, "name": name}
            writer.write_example(features)
    conditions = {
        '"image/width" > 26': [27, 28, 29],
        "name = 'a==b' and \"image/width\" < 5": [1, 2, 4],
        "name == 'a=b' and \"image/width\" < 5": [0, 3],
    }
    if engine == "duckdb":  # Polars counts the bytes of text only
        conditions["octet_length(image) > 54 and name = 'a==b'"] = [28, 29]
    for condition, expected in conditions.items():
        out = ["--out", tmp_path / "some", "--overwrite"]
        status, _, error = run(capsys, "copy", tmp_path / "x", "--where", condition, *out)
        assert (status, error) == (0, "")
        copied = tfr.parse_example(tfr.Reader(str(tmp_path / "some-*"))[:], ["image/width"])
        assert copied["image/width"].tolist() == expected


def test_a_condition_is_one_condition_and_reaches_nothing_else(
    shards: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    secret, stolen = tmp_path / "secret.csv", tmp_path / "stolen"
    secret.write_text("label\n1\n")
    for condition in (
        f"label = 3; copy (select 1) to '{stolen}'",
        "label = 3 limit 5",
        "label = 1) union select record from records where (1 = 1",
        f"label in (select label from read_csv('{secret}'))",
        f"label in (select label from '{secret}')",
        f"length((select content from read_text('{secret}'))) > label",
    ):
        out = ["--out", tmp_path / "x"]
        status, _, error = run(capsys, "copy", *shards, "--where", condition, *out)
        assert status == 2, condition
        assert "refuses" in error
    assert not stolen.exists()
    assert list(tmp_path.glob("x-*")) == []


def test_a_condition_may_compare_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    with tfr.Writer(tmp_path / "x") as writer:
        for number in range(30):
            name = "cät" if number % 3 else "dog"
            writer.write_example({"image/name": name, "n": number})
    where = "\"image/name\" = 'dog' and n > 20"
    out = ["--out", tmp_path / "dogs"]
    status, _, error = run(capsys, "copy", tmp_path / "x", "--where", where, *out)
    assert (status, error) == (0, "")
    copied = tfr.parse_example(tfr.Reader(str(tmp_path / "dogs-*"))[:], ["n"])
    assert copied["n"].tolist() == [21, 24, 27]


def test_names_that_duckdb_does_not_tell_apart_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb")
    with tfr.Writer(tmp_path / "x") as writer:
        for number in range(10):
            writer.write_example({"label": number, "Label": 9 - number, "Record": 9 - number})
    out = ["--out", str(tmp_path / "out"), "--overwrite"]
    for where in ("label = 3 or Label = 3", "Record = 3"):
        status, _, error = run(capsys, "copy", tmp_path / "x", "--where", where, *out)
        assert status == 2
        assert "DuckDB does not tell" in error
    status, said, _ = run(capsys, "copy", tmp_path / "x", "--where", "Label < 3", *out)
    assert status == 0
    assert "3 records" in said
