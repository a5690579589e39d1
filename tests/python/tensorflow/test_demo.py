"""`tfrfast demo` and `tfrfast bench`, on small data, whose figures mean nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tfrfast as tfr
from terminal_lines import WIDTH, drawn
from tfrfast.cli import main
from tfrfast.cli.commands import demo
from tfrfast.cli.demo import exactly_once

pytestmark = pytest.mark.newest


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_RECORDS", {"ctr": 400, "mnist": 400, "image": 40})
    monkeypatch.setattr(demo, "_ROUNDS", 1)


def test_demo_shows_all_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "terminal_width", lambda stream: WIDTH)
    assert main(["demo", "--json", "--out", str(tmp_path / "out")]) == 0
    captured = capsys.readouterr()
    facts = json.loads(captured.out)
    assert {each["records"] for each in facts["exactly_once"]} == {761, 65_537}
    assert all(each["once"] == each["records"] for each in facts["exactly_once"])
    assert facts["training"]["same_records"]
    assert facts["training"]["same_weights"]
    assert len(facts["comparisons"]) == 12
    assert "TensorFlow/s: records a second" in captured.err
    assert all(ratio > 0 for each in facts["comparisons"] for ratio in each["ratio"].values())
    assert "65,537 once, 0 missing, 0 repeated" in captured.err
    assert {"ctr", "image", "mnist", "numbered"} <= set(os.listdir(tmp_path / "out"))
    assert [line for line in captured.err.splitlines() if len(line) > WIDTH] == []


def test_bench_shows_none_of_tensorflows_log(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "records") as writer:
        writer.write_batch([b"record"] * 10)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    done = subprocess.run(
        [sys.executable, "-m", "tfrfast", "bench", "--rounds", "1", tmp_path / "records"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = drawn("bench", "--rounds", "1", "--progress", tmp_path / "records")
    assert [line for line in lines if len(line) > WIDTH] == []


def test_demo_counts_what_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shuffle that loses a record and repeats another fails the demo."""

    def lossy(shards: list[str], seed: int) -> list[np.ndarray]:
        return [np.array([0, 0, *range(2, 761)])]

    monkeypatch.setattr(exactly_once, "shuffled_by_tfrfast", lossy)
    count = exactly_once.count_records(tmp_path, 761)[-1]
    assert (count.once, count.missing, count.repeated) == (759, 1, 1)


def test_bench_times_examples_both_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compressed = os.fsdecode(b"examples\xff.gz")
    for name, compression in (("examples", None), (compressed, "GZIP")):
        with tfr.Writer(tmp_path / name, compression=compression) as writer:
            for number in range(500):
                ids = np.arange(number % 3)
                writer.write_example({"label": number, "ids": ids, "name": b"n"})
    assert main(["bench", "--json", "--rounds", "2", str(tmp_path / compressed)]) == 0
    facts = json.loads(capsys.readouterr().out)
    works = [each["work"] for each in facts["comparisons"]]
    assert works == [
        "records, in order",
        "records, shuffled",
        "decoded, in order",
        "decoded, shuffled",
    ]
    assert all(len(each["seconds"]["tfr.Loader"]) == 2 for each in facts["comparisons"])
    assert main(["bench", str(tmp_path / "examples*")]) == 2
    assert "some of these files are GZIP and plain" in capsys.readouterr().err


def test_bench_of_a_mixture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, count in (("web", 300), ("code", 100)):
        with tfr.Writer(tmp_path / name) as writer:
            for number in range(count):
                writer.write_example({"label": number})
    paths = [str(tmp_path / "web"), str(tmp_path / "code")]
    arguments = ["bench", "--rounds", "1", "--batch-size", "16"]
    assert main([*arguments, "--json", "--weights", "0.7,0.3", *paths]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [each["work"] for each in facts["comparisons"]] == ["records, mixed", "decoded, mixed"]
    assert [each["records"] for each in facts["comparisons"]] == [400, 400]
    assert set(facts["comparisons"][0]["ratio"]) == {"tfr.Loader", "Loader.to_tf_dataset"}
    assert main([*arguments, "--weights", "7,3", *paths]) == 0
    assert "to_tf_dataset" in capsys.readouterr().out
    assert main([*arguments, "--weights", "7,3,1", *paths]) == 2
    assert "3 weights for 2 data sets" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*arguments, "--weights", "much", *paths])
    assert "is not a list of weights" in capsys.readouterr().err


def test_bench_of_other_records_and_of_part_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for shard in range(3):
        with tfr.Writer(tmp_path / f"data-{shard}") as writer:
            writer.write_batch([b"\xff" * 1000] * 200)
    arguments = ["bench", "--rounds", "1", "--max-bytes", "100K", "--batch-size", "10"]
    assert main([*arguments, str(tmp_path / "data-*")]) == 0
    out = capsys.readouterr().out
    assert "100 records" in out
    assert "of 1 shard," in out
    assert "not tf.train.Examples" in out


def test_bench_of_nothing_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").touch()
    assert main(["bench", str(tmp_path / "empty")]) == 2
    assert "no record" in capsys.readouterr().err
    assert main(["bench", "--rounds", "0", str(tmp_path / "empty")]) == 2
    assert "--rounds must be at least 1" in capsys.readouterr().err
