"""Damaged shards on the command line: exit codes, --on-corruption, advice."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

import tfrfast as tfr
from cli_files import damage, run, write_examples
from tfrfast.cli.advice import in_flags

Output = pytest.CaptureFixture[str]


@pytest.fixture
def damaged(tmp_path: Path) -> list[str]:
    """Record 3 has a bad payload, and record 16 a bad length."""
    shards = write_examples(tmp_path / "data")
    damage(shards[0], 3)
    damage(shards[1], 6, byte=0)
    return shards


@pytest.mark.parametrize(
    ("command", "plain"),
    [
        (["info"], 1),
        (["verify"], 1),
        (["count"], 2),
        (["cat", "--records", ":"], 2),
        (["head", "-n", "20"], 2),
        (["sample"], 2),
        (["schema"], 2),
        (["index"], 1),
        (["shuffle", "--num-shards", "2"], 2),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_exit_codes(
    damaged: list[str], tmp_path: Path, capsys: Output, command: list[str], plain: int
) -> None:
    out = ["--out", str(tmp_path / "out/x")] if command[0] == "shuffle" else []
    assert run(*command, *out, *damaged) == plain
    error = capsys.readouterr().err
    if plain == 2:
        assert error.count("\n") == 1
        assert error.startswith("tfrfast: ")
        assert "--on-corruption skip" in error
        assert "on_corruption" not in error
    if command[0] not in ("index", "info", "verify"):
        assert run(*command, *out, "--on-corruption", "skip", *damaged) == 1
        whole = write_examples(tmp_path / "whole")
        out = ["--out", str(tmp_path / "out/y")] if out else []
        assert run(*command, *out, "--on-corruption", "skip", *whole) == 0


def test_what_is_left_is_what_other_readers_have(damaged: list[str], capsys: Output) -> None:
    good = list(tfr.Reader(damaged, on_corruption="skip"))
    assert len(good) == 18
    assert run("cat", "--json", "--records", ":", "--on-corruption", "skip", *damaged) == 1
    lines = capsys.readouterr().out.splitlines()
    labels = [json.loads(line)["features"]["label"][0] for line in lines]
    assert labels == [number for number in range(20) if number not in (3, 16)]
    raw = subprocess.run(
        [
            sys.executable,
            "-m",
            "tfrfast",
            "cat",
            "--raw",
            "--records=:",
            "--on-corruption",
            "skip",
            *damaged,
        ],
        capture_output=True,
    )
    assert raw.stdout == b"".join(good)
    assert run("count", "--on-corruption", "skip", *damaged) == 1
    assert capsys.readouterr().out == "19\n"  # payloads are not read for this


def test_a_single_record_that_is_damaged_is_left_out_too(
    damaged: list[str], capsys: Output
) -> None:
    assert run("cat", "--records", "3", "--on-corruption", "skip", *damaged) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "left out" in captured.err


def test_an_error_that_nobody_foresaw_is_exit_code_2(
    damaged: list[str], capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> list[str]:
        raise KeyError("what")

    monkeypatch.setattr("tfrfast.cli.commands.cache.print_table", fail)
    monkeypatch.setattr("tfrfast._native.cached_indexes", lambda: fail(None))
    assert run("cache") == 2
    error = capsys.readouterr().err
    assert error.startswith("Traceback")
    assert error.endswith("tfrfast: KeyError: 'what'\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    "command",
    [
        ["info"],
        ["cat", "--raw", "--on-corruption", "skip"],
        ["cat", "--json", "--records", ":", "--on-corruption", "skip"],
    ],
)
def test_output_that_cannot_be_written_is_exit_code_2(
    damaged: list[str], command: list[str]
) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tfrfast", *command, *damaged],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "tfrfast: No space left on device"
    assert "Exception" not in done.stderr


def test_output_that_is_closed_goes_nowhere(damaged: list[str]) -> None:
    done = subprocess.run(
        f"{sys.executable} -m tfrfast info {damaged[0]} >&-",
        shell=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("Call it with overwrite=True to replace it.", "Call it with --overwrite to replace it."),
        ('Use max_memory="1GiB" or more.', "Use --max-memory 1GiB or more."),
        ("max_memory is 3, but must be more.", "--max-memory is 3, but must be more."),
        ("seed must be an int.", "--seed must be an int."),
        ("The work is done, the seed sown.", "The work is done, the seed sown."),
        ("'/data/seed=1/work' is gone.", "'/data/seed=1/work' is gone."),
        ("'max_memory' is no feature.", "'max_memory' is no feature."),
        ("'seed=1' and /a/seed=1 are gone.", "'seed=1' and /a/seed=1 are gone."),
        ('Pass on_corruption="skip".', "Pass --on-corruption skip."),
        ('Pass verify="header".', 'Pass verify="header".'),
        (
            "Check what they allow, or pass storage={...}.",
            "Check what they allow, and the environment's variables that name them.",
        ),
        (
            "Set AWS_REGION to the bucket's region, or pass storage={'region': ...}.",
            "Set AWS_REGION to the bucket's region.",
        ),
        ("Ask again later, or allow more with storage={'retries': ...}.", "Ask again later."),
    ],
)
def test_advice_names_flags(message: str, advice: str) -> None:
    options = Namespace(overwrite=False, max_memory=1, seed=0, work=None, on_corruption="raise")
    assert in_flags(message, options) == advice


def test_errors_name_the_file_that_a_flag_names(damaged: list[str], capsys: Output) -> None:
    assert (
        run("copy", "--records", "absent.txt", "--out", "x", *damaged, "--on-corruption", "skip")
        == 2
    )
    assert capsys.readouterr().err == "tfrfast: 'absent.txt': No such file or directory\n"


def test_options_that_mean_nothing_are_named_as_flags(
    damaged: list[str], tmp_path: Path, capsys: Output
) -> None:
    out = str(tmp_path / "x")
    command = [
        "shuffle",
        "--num-shards",
        "1",
        "--level",
        "3",
        "--on-corruption",
        "skip",
        "--out",
        out,
    ]
    assert run(*command, *damaged) == 2
    error = capsys.readouterr().err
    assert error == "tfrfast: --level is for --compression GZIP, which was not given.\n"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"a,b,c\n1,2,3\n4,5,6\n" * 50, " (it looks like CSV)"),
        (b"a,b\n1,\xc3\xa4\n", " (it looks like CSV)"),
        (b'{"a": 1, "b": [2, 3]}\n', " (it looks like JSON)"),
        (b"one line of a letter\n", " (it looks like text)"),
        (b"PAR1" + bytes(range(256)) * 8 + b"PAR1", " (it looks like Parquet)"),
        (b"PK\x03\x04" + bytes(range(256)), " (it looks like ZIP)"),
        (bytes(range(128, 256)) * 20_000, ""),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
            " (it looks like a Git LFS pointer: `git lfs pull` fetches the file)",
        ),
        (bytes.fromhex("83af70d10d884a3f") + bytes(64), " (it looks like ArrayRecord)"),
        (
            b"\x00\x00\x02\x08\x01" + bytes(range(80)) + bytes.fromhex("57fb808b247547db"),
            " (it looks like the index of a TensorFlow checkpoint)",
        ),
        (gzip.compress(b'{"a": 1}\n' * 100, mtime=0), " (inflated, it looks like JSON)"),
        (gzip.compress(b"a,b\n1,2\n3,4\n", mtime=0), " (inflated, it looks like CSV)"),
        (gzip.compress(b"a,b\n1,2", mtime=0), " (inflated, it looks like CSV)"),
    ],
)
def test_a_file_that_is_no_tfrecord_file_is_called_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, what: str
) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    for command in ("info", "count", "head", "schema"):
        assert run(command, str(path)) == 2
        said = capsys.readouterr()
        assert f"'{path}' is not a TFRecord file{what}: its " in said.err
        assert "is corrupt" not in said.err + said.out


def test_a_damaged_first_record_before_a_whole_one_is_corruption(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with tfr.Writer(path, index=False) as writer:
        writer.write(b"one")
        writer.write(b"two")
    damage(str(path), 0, byte=0)
    with pytest.raises(tfr.CorruptRecordError, match="is corrupt"):
        tfr.Reader(path)
    empty = tmp_path / "empty"
    empty.touch()
    assert len(tfr.Reader(empty)) == 0
