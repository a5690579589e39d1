"""What a record holds is decided once: no command and no reader takes anything for an Example."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import record_kinds
import tfrfast as tfr
from cli_files import run
from tfrfast._native import record_kind
from tfrfast.tables.statistics import statistics

SEQUENCE = "a tf.train.SequenceExample"
OTHERS = {
    SEQUENCE: record_kinds.sequence_example(7),
    "a tensorflow.Event": record_kinds.event(7),
    "a protobuf message of another type": record_kinds.MESSAGES[0],
    "bytes of another format": b"text",
}


@pytest.mark.parametrize(
    ("kind", "records"),
    [
        ("a tf.train.Example", record_kinds.EXAMPLES),
        (SEQUENCE, record_kinds.SEQUENCES),
        ("a tensorflow.Event", record_kinds.EVENTS),
        ("a protobuf message of another type", record_kinds.MESSAGES),
        ("bytes of another format", record_kinds.OTHERS),
    ],
)
def test_each_record_has_a_kind(kind: str, records: list[bytes]) -> None:
    assert [record_kind(each) for each in records] == [kind] * len(records)


def write_mixed(folder: Path, other: bytes, examples: int) -> list[str]:
    """A shard of Examples, and one of Examples with another record in the middle."""
    folder.mkdir()
    paths = [str(folder / "whole"), str(folder / "mixed")]
    for path in paths:
        with tfr.Writer(path, index=False) as writer:
            for number in range(examples):
                writer.write_example({"label": number})
                if path == paths[1] and number == examples // 2:
                    writer.write(other)
    return paths


READERS: dict[str, Callable[[list[str]], object]] = {
    "infer_features": lambda paths: tfr.infer_features(paths, sample=None),
    "Loader": lambda paths: list(tfr.Loader(tfr.Reader(paths), 8, features="infer")),
    "Loader of names": lambda paths: list(tfr.Loader(tfr.Reader(paths), 8, features=["label"])),
    "parse_example": lambda paths: tfr.parse_example(list(tfr.Reader(paths)), "infer"),
    "scan": lambda paths: list(tfr.scan(paths)),
    "scan of a column": lambda paths: list(tfr.scan(paths, columns=["label"])),
    "scan of all": lambda paths: list(tfr.scan(paths, sample=None)),
    "statistics": tfr.statistics,
    "stats": lambda paths: statistics(tfr.Reader(paths)),
}


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("examples", [10, 5000], ids=["in the sample", "behind the sample"])
@pytest.mark.parametrize("reader", READERS)
def test_a_record_of_another_kind_is_one_clear_error(
    tmp_path: Path, kind: str, examples: int, reader: str
) -> None:
    paths = write_mixed(tmp_path / "in", OTHERS[kind], examples)
    with pytest.raises(tfr.FeatureError) as caught:
        READERS[reader](paths)
    number = examples // 2 + 1
    if reader not in ("parse_example", "statistics"):
        assert f"Record {number} of '{paths[1]}'" in str(caught.value)
        assert (caught.value.path, caught.value.record) == (paths[1], number)
    assert f"holds {kind}, not a tf.train.Example." in str(caught.value)


def test_specs_of_the_caller_parse_as_tensorflow_does(tmp_path: Path) -> None:
    paths = write_mixed(tmp_path / "in", OTHERS[SEQUENCE], 3)
    features = {"label": tfr.VarLen("int64")}
    [batch] = tfr.Loader(tfr.Reader(paths), 8, features=features, shuffle=False)
    assert batch["label"].tolist() == [[0], [1], [2], [0], [1], [7], [2]]


@pytest.mark.parametrize("kind", OTHERS)
def test_commands_say_what_a_record_holds(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "others")
    with tfr.Writer(path) as writer:
        writer.write_batch([OTHERS[kind]] * 3)
    for command in (["schema"], ["stats"], ["head", "--columns", "label"]):
        assert run(*command, path) == 2
        assert f"holds {kind}, not a tf.train.Example." in capsys.readouterr().err
    assert run("head", path) == 0
    named = f", {kind}" if kind.startswith("a ") else ""
    assert f"record 0: {len(OTHERS[kind])} bytes{named}  b'" in capsys.readouterr().out
    name = kind.removeprefix("a ")
    assert run("cat", "--json", path) == 0
    shown = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (shown["kind"], bytes.fromhex(shown["hex"])) == (name, OTHERS[kind])
    assert run("info", path) == 0
    assert f"kind         {name} (a sample)" in capsys.readouterr().out


def test_keys_are_found_in_the_context_of_a_sequence_example(tmp_path: Path) -> None:
    path = str(tmp_path / "x")
    records = [record_kinds.sequence_example(number) for number in range(20)]
    with tfr.Writer(path) as writer:
        writer.write_batch(records)
    tfr.build_keys(path, "label")
    assert tfr.Reader(path).by_key("label")[7] == records[7]
