"""`tfrfast cat`, `head`, `sample` and `count`: which records are shown, and how."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from cli_files import damage, run, write_examples


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    return write_examples(tmp_path / "data")


Output = pytest.CaptureFixture[str]


def written(path: Path, *records: dict[str, Any] | bytes) -> str:
    with tfr.Writer(path, index=False) as writer:
        for record in records:
            writer.write(record if isinstance(record, bytes) else tfr.encode_example(record))
    return str(path)


def objects(output: Output) -> list[Any]:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    lines = output.readouterr().out.splitlines()
    return [json.loads(line, parse_constant=refuse) for line in lines]


def shown(output: Output) -> list[int]:
    return [each["record"] for each in objects(output)]


def test_head_sample_and_count(shards: list[str], capsys: Output) -> None:
    assert run("count", *shards) == 0
    assert capsys.readouterr().out == "20\n"
    assert run("head", "-n", "3", "--json", *shards) == 0
    assert shown(capsys) == [0, 1, 2]
    assert run("head", "-n", "300", "--json", *shards) == 0
    assert shown(capsys) == list(range(20))
    draws = set()
    for seed in range(20):
        assert run("sample", "-n", "3", "--seed", str(seed), "--json", *shards) == 0
        draws.add(tuple(shown(capsys)))
    assert len(draws) > 10
    assert all(0 <= a < b < c < 20 for a, b, c in draws)
    assert run("sample", "-n", "300", "--json", *shards) == 0
    assert shown(capsys) == list(range(20))


@pytest.mark.parametrize(
    ("given_range", "expected"),
    [
        (":", range(20)),
        ("18:", range(18, 20)),
        (":2", range(2)),
        ("-2:", range(18, 20)),
        ("5:-12", range(5, 8)),
        ("9:11", range(9, 11)),
        ("18:30", range(18, 20)),
        ("20:30", range(0)),
    ],
)
def test_ranges(shards: list[str], capsys: Output, given_range: str, expected: range) -> None:
    assert run("cat", "--json", f"--records={given_range}", *shards) == 0
    assert shown(capsys) == list(expected)


@pytest.mark.parametrize("given_range", ["10:5", "-5:-10", "x", "1:y"])
def test_a_range_that_makes_no_sense_is_bad_usage(
    shards: list[str], capsys: Output, given_range: str
) -> None:
    with pytest.raises(SystemExit) as ending:
        run("cat", f"--records={given_range}", *shards)
    assert ending.value.code == 2
    assert "--records" in capsys.readouterr().err


@pytest.mark.parametrize(
    "choice", ["--records=15:-10", "--records=21:", "--records=20", "--records=-21"]
)
def test_records_that_do_not_exist_are_an_error(
    shards: list[str], capsys: Output, choice: str
) -> None:
    assert run("cat", choice, *shards) == 2
    assert capsys.readouterr().out == ""


def test_fields_are_shown_in_the_order_asked_for(shards: list[str], capsys: Output) -> None:
    assert run("cat", "--json", "--records", "7", "--columns", "name,label", *shards) == 0
    (only,) = objects(capsys)
    assert list(only["features"].items()) == [("name", ["number 7"]), ("label", [7])]
    assert run("cat", "--records", "7", "--columns", "label", *shards) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["  label: 7"]


def test_a_field_that_no_record_has_is_an_error(shards: list[str], capsys: Output) -> None:
    assert run("cat", "--columns", "label,nmae", *shards) == 2
    assert "Did you mean 'name'?" in capsys.readouterr().err


def test_raw_takes_no_fields(shards: list[str], capsys: Output) -> None:
    assert run("cat", "--raw", "--columns", "label", *shards) == 2
    assert "--raw shows whole records" in capsys.readouterr().err


def test_truncate_says_what_it_has_shortened(tmp_path: Path, capsys: Output) -> None:
    path = written(
        tmp_path / "long",
        {"x": [1, 2, 3], "text": "é" * 5, "raw": b"\xff" * 5, "short": [1, 2]},
        {"x": [1], "text": "e", "raw": b"\xff"},
        b"\xfe" * 9,
    )
    assert run("cat", "--json", "--truncate", "3", path) == 0
    first, second, third = objects(capsys)
    assert first["features"] == {
        "x": [1, 2, 3],
        "text": ["é"],  # three bytes are one and a half characters
        "raw": [{"hex": "ffffff"}],
        "short": [1, 2],
    }
    assert sorted(first["truncated"]) == ["raw", "text"]
    assert "truncated" not in second
    assert (third["hex"], third["truncated"]) == ("fefefe", ["hex"])
    assert run("cat", "--json", "--truncate", "2", "--records", "0", path) == 0
    (first,) = objects(capsys)
    assert first["features"]["x"] == [1, 2]
    assert sorted(first["truncated"]) == ["raw", "text", "x"]
    assert run("cat", "--truncate", "2", "--records", "0", path) == 0
    assert "x: 1, 2, ... 1 more" in capsys.readouterr().out


def test_json_has_no_nan(tmp_path: Path, capsys: Output) -> None:
    values = np.array([1.5, math.nan, math.inf, -math.inf], np.float32)
    path = written(tmp_path / "shard", {"x": values}, {"x": np.float32(2)})
    assert run("cat", "--json", path) == 0
    first, second = objects(capsys)
    assert first["features"]["x"] == [1.5, None, None, None]
    assert second["features"]["x"] == [2.0]


def test_json_has_one_form_of_strings_for_each_feature(tmp_path: Path, capsys: Output) -> None:
    mixed = [b"text", b"\xff\xfe", b"more"]
    path = written(tmp_path / "mixed", *({"x": each, "y": b"a"} for each in mixed))
    assert run("cat", "--json", path) == 0
    features = [each["features"] for each in objects(capsys)]
    assert [each["x"] for each in features] == [[{"hex": each.hex()}] for each in mixed]
    assert [each["y"] for each in features] == [["a"]] * 3
    late = [b"text"] * 5000 + [b"\xff!"]
    path = written(tmp_path / "late", *({"x": each} for each in late))
    assert run("cat", "--json", "--records", ":", path) == 0
    assert objects(capsys)[-1]["features"]["x"] == ["\\xff!"]


def test_json_of_records_that_have_little_in_common(tmp_path: Path, capsys: Output) -> None:
    unnamed = tfr.encode_example({"ab": 1}).replace(b"ab", b"\xff\xfe")
    path = written(
        tmp_path / "shard",
        {"a": 1, "b]%s": [b"], [", b'"']},
        {"a": [1, 2], "c": 0.1},
        {"a": 0.5},  # the same name, another type
        b"not an Example",
        {},
        unnamed,
    )
    assert run("cat", "--json", path) == 0
    found = [each.get("features", each.get("hex")) for each in objects(capsys)]
    assert found == [
        {"a": [1], "b]%s": ["], [", '"']},
        {"a": [1, 2], "c": [0.1]},
        {"a": [0.5]},
        b"not an Example".hex(),
        tfr.encode_example({}).hex(),
        unnamed.hex(),
    ]
    with pytest.raises(
        tfr.FeatureError, match=r"a feature b'\\xff\\xfe', whose name is not UTF-8\."
    ):
        tfr.infer_features([unnamed])


def test_floats_have_as_few_digits_as_tell_them_apart(tmp_path: Path, capsys: Output) -> None:
    bits = np.random.default_rng(0).integers(0, 0x7F800000, 500).astype(np.uint32)
    values = [np.float32(0.1), *bits.view(np.float32), *-bits.view(np.float32)]
    assert run("cat", "--json", written(tmp_path / "floats", {"x": values})) == 0
    (shown,) = objects(capsys)
    assert shown["features"]["x"] == [float(str(each)) for each in values]


def test_many_small_records_are_parsed_together(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one, they would take thirty times as long."""
    parsed = []

    def parse_example(batch: tfr.RecordBatch, features: Any) -> tfr.Batch:
        parsed.append(len(batch))
        return tfr.parse_example(batch, features)

    monkeypatch.setattr("tfrfast.cli.shown_batches.parse_example", parse_example)
    records = [{"label": i, "name": f"number {i}"} for i in range(10_000)]
    path = written(tmp_path / "small", *records)
    assert run("cat", "--json", "--records", ":", path) == 0
    found = [each["features"] for each in objects(capsys)]
    assert found == [{name: [value] for name, value in each.items()} for each in records]
    assert sum(parsed) == 10_000
    assert len(parsed) < 10


def test_large_records_are_read_a_few_at_a_time(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrfast.cli.shown_records._PIECE_BYTES", 10_000)
    sizes = [1, 9000, 2000, 1, 50_000, 1, 1]
    path = written(tmp_path / "sizes", *(b"x" * size for size in sizes))
    other = written(tmp_path / "others", *(b"x" * size for size in sizes))
    assert run("cat", "--json", "--records", ":", path, other) == 0
    assert [each["bytes"] for each in objects(capsys)] == sizes * 2


def test_what_lies_before_damage_is_shown(shards: list[str], capsys: Output) -> None:
    place = damage(shards[1], 3, byte=0)
    assert run("cat", "--records", "0", *shards) == 0
    assert run("cat", "--json", "--records", "11:13", *shards) == 0
    capsys.readouterr()
    assert run("cat", "--json", "--records", "11:", *shards) == 2
    captured = capsys.readouterr()
    assert [json.loads(line)["record"] for line in captured.out.splitlines()] == [11, 12]
    assert f"the length of record 3 at byte {place.offset}" in captured.err
    assert "--on-corruption skip" in captured.err
    assert "on_corruption" not in captured.err
    for beyond in ("--records=13", "--records=-1", "--records=-5:", "--records=15:"):
        assert run("cat", beyond, *shards) == 2
        assert "record 3" in capsys.readouterr().err
