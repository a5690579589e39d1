"""Other messages than Examples on the command line."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import tfrfast as tfr
from tfrfast.cli import main
from tfrfast.cli.messages import message_features
from tfrfast.cli.view.data_set import DataSet


@pytest.fixture
def files(tmp_path: Path, described: bytes, scenario_class: object) -> tuple[str, list[str]]:
    from scenarios import scenarios

    shard, proto = str(tmp_path / "s-0"), tmp_path / "s.binpb"
    proto.write_bytes(described)
    with tfr.Writer(shard) as writer:
        for record in scenarios(scenario_class, 5):
            writer.write(record)
    return shard, ["--proto", str(proto), "--message", "drive.Scenario"]


def test_cat_shows_the_fields_that_are_there(
    files: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    shard, named = files
    assert main(["cat", shard, "--records", "2", *named]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  id: b's2'",
        "  times: 0.5, 0.5",
        "  tracks.id: 0, 1",
        "  tracks.kind: b'UNSET', b'CAR'",
        "  tracks.states.x: [], [2]",
        "  tracks.states.valid: [], [True]",
    ]
    assert main(["head", shard, "--json", "--columns", "id,tracks.states.x", *named]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[2]["features"] == {"id": "s2", "tracks.states.x": [[], [2.0]]}
    assert main(["cat", shard, "--columns", "track", *named]) == 2
    assert "Did you mean 'tracks'?" in capsys.readouterr().err


def test_truncate_divides_no_character(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, text = str(tmp_path / "events"), "a€b".encode()
    with tfr.Writer(path) as writer:
        writer.write(b"\x1a" + bytes([len(text)]) + text)
    for limit, shown in ((1, "a"), (2, "a"), (3, "a"), (4, "a€"), (5, "a€b")):
        command = ["cat", path, "--message", "tensorflow.Event", "--columns", "file_version"]
        assert main([*command, "--json", "--truncate", str(limit)]) == 0
        assert json.loads(capsys.readouterr().out)["features"] == {"file_version": shown}


def test_schema_prints_code_that_runs(
    files: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    shard, named = files
    for message in (named, ["--message", "tensorflow.Event"]):
        assert main(["schema", shard, *message]) == 0
        code = capsys.readouterr().out.partition("\n\n")[2]
        found: dict[str, object] = {"tfr": tfr}
        exec(code, found)
        assert found["features"]
    assert main(["schema", shard, "--json", *named]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["features"]["tracks.states.x"] == {"dtype": "float64", "levels": 2}
    assert main(["schema", shard, "--message", "drive.Scenario"]) == 2
    assert "needs --proto FILE" in capsys.readouterr().err


def test_stats_count_the_values_of_all_levels(
    files: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    shard, named = files
    assert main(["stats", shard, "--json", *named]) == 0
    found = json.loads(capsys.readouterr().out)["features"]
    assert (found["tracks.states.x"]["values"], found["tracks.states.x"]["max"]) == (2, 2.0)
    assert found["tracks.kind"]["values"] == 4
    assert (found["id"]["values"], found["id"]["max_bytes"]) == (5, 2)
    assert main(["stats", shard, "--json", "--columns", "id", *named]) == 0
    assert [*json.loads(capsys.readouterr().out)["features"]] == ["id"]


def test_cat_and_view_show_zeros_that_records_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "events")
    with tfr.Writer(path) as writer:
        for value in (b"\x15\0\0\0\0", b"\x42\x04\x52\x02\0\0", b""):
            writer.write(b"\x2a" + bytes([len(value) + 2]) + b"\x0a" + bytes([len(value)]) + value)
    assert main(["cat", path, "--message", "tensorflow.Event"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "record 0: 9 bytes",
        "  summary.value.simple_value: 0",
        "record 1: 10 bytes",
        "  summary.value.tensor.int64_val: [0, 0]",
        "record 2: 4 bytes",
    ]
    data = DataSet([path], features=message_features(tfr.Message.event(), None))
    assert [[each["values"] for each in row["features"]] for row in data.rows(0, 0, 3)["rows"]] == [
        [[0.0]],
        [[0, 0]],
        [],
    ]
    data.close()


def test_info_says_that_a_file_holds_events(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "events.out.tfevents")
    with tfr.Writer(path) as writer:
        writer.write(b"\x09" + bytes(8) + b"\x1a\x0dbrain.Event:2")
    assert main(["info", path]) == 0
    assert "events       of TensorBoard: `tfrfast export`" in capsys.readouterr().out


def test_view_shows_fields_and_refuses_conditions(files: tuple[str, list[str]]) -> None:
    shard, (_, proto, _, name) = files
    message = tfr.Message(proto, name)
    data = DataSet([shard], features=message_features(message, None))
    (row,) = data.rows(0, 2, 1)["rows"]
    shown = {each["name"]: each for each in row["features"]}
    assert (shown["tracks.states.x"]["count"], shown["tracks.states.x"]["values"]) == (1, [2.0])
    assert [each["text"] for each in shown["tracks.kind"]["values"]] == ["UNSET", "CAR"]
    assert "tracks" not in shown
    assert data.value(2, "tracks.kind", 1)[1] == b"CAR"
    for by in ("condition", "key"):
        with pytest.raises(ValueError, match="features of tf.train.Examples, and these records"):
            data.choose({"by": by, "condition": "id > 1", "feature": "id", "key": "s1"})
    assert data.choose({"by": "sample", "count": "3"})["records"] == 3
    while "features" not in (found := data.statistics()):
        time.sleep(0.01)
    assert {each["name"]: each["values"] for each in found["features"]}["tracks.kind"] == 4
    data.close()


def test_view_says_why_a_record_is_no_such_message(tmp_path: Path) -> None:
    path = str(tmp_path / "events")
    with tfr.Writer(path) as writer:
        for record in (b"", b"\xff", b""):
            writer.write(record)
    data = DataSet([path], features=message_features(tfr.Message.event(), None))
    rows = data.rows(0, 0, 3)["rows"]
    assert ["damaged" in row for row in rows] == [False, True, False]
    for shown in (rows[1], data.record(1)):
        assert "tensorflow.Event" in shown["damaged"]
    data.close()
