"""A stranger's text reaches the terminal only as printable text."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrfast as tfr
from cli_files import damage, run
from tfrecord_model import rested

EVIL = "\x1b]0;owned\x07\x9b31m\u202e\r"
Output = pytest.CaptureFixture[str]


def plain(text: str) -> str:
    """Returns the text. Fails unless it consists of lines of printable characters."""
    assert all(line.isprintable() for line in text.split("\n")), ascii(text)
    return text


@pytest.fixture
def shard(tmp_path: Path) -> str:
    path = tmp_path / f"train{EVIL}"
    with tfr.Writer(path, index=False) as writer:
        for label in range(3):
            writer.write(tfr.encode_example({f"label{EVIL}": label, "name": EVIL.encode()}))
    return rested(path)


@pytest.mark.parametrize(
    "command",
    ["cat", "head", "sample", "schema", "stats", "info", "verify", "doctor", "index", "count"],
)
def test_names_in_tables_are_printable(shard: str, capsys: Output, command: str) -> None:
    assert run(command, shard) == 0
    shown = plain(capsys.readouterr().out)
    if command in ("cat", "head", "sample", "schema", "stats"):
        assert r"label\x1b]0;owned\x07\x9b31m\u202e\r" in shown.replace(r"\x0d", r"\r")


def test_damage_is_told_in_printable_text(shard: str, capsys: Output) -> None:
    damage(shard, 1)
    assert run("verify", shard) == 1
    assert r"train\x1b]0;owned" in plain(capsys.readouterr().out)
    assert run("cat", shard) == 2
    assert r"train\x1b]0;owned" in plain(capsys.readouterr().err)


@pytest.mark.parametrize("kind", [tfr.Reader, tfr.Loader, tfr.Writer, tfr.ShardedWriter])
def test_what_was_not_made_can_be_shown(kind: type) -> None:
    """Debuggers show `self` even if the constructor has failed."""
    assert repr(kind.__new__(kind)).startswith(f"{kind.__name__}(not ")


def test_errors_are_printable_and_name_the_file_as_it_is(shard: str, tmp_path: Path) -> None:
    damage(shard, 1)
    with tfr.Reader(shard) as reader, pytest.raises(tfr.CorruptRecordError) as caught:
        reader[1]
    assert r"train\x1b]0;owned" in plain(str(caught.value))
    assert caught.value.path == shard
    missing = tmp_path / f"other{EVIL}"
    with pytest.raises(FileNotFoundError) as not_found:
        tfr.Reader(missing)
    assert r"other\x1b]0;owned" in plain(not_found.value.strerror)
    assert not_found.value.filename == str(missing)
    with pytest.raises(tfr.FeatureError) as wrong:
        tfr.parse_example([tfr.encode_example({EVIL: b"text"})], {EVIL: tfr.FixedLen((), "int64")})
    assert r"\x1b]0;owned" in plain(str(wrong.value))
    with pytest.raises(ValueError, match="the shape is missing") as spec:
        tfr.parse_example([], {EVIL: tfr.FixedLen(None, "int64")})  # type: ignore[arg-type]
    plain(str(spec.value))


def test_names_that_are_no_text_can_be_printed(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "train\udcff"
    with tfr.Writer(path) as writer:
        writer.write(b"x")
    assert run("info", str(path)) == 0
    assert r"train\xff" in plain(capsys.readouterr().out)
