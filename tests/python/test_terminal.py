"""What commands draw on a terminal of 80 columns, and how results are shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from terminal_lines import WIDTH, drawn
from tfrfast.base.sizes import rounded
from tfrfast.base.tables import format_table


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("a-folder-with-a-long-name") / "and-one-more-inside-of-it"
    folder.mkdir()
    with tfr.Writer(folder / "train", index=False) as writer:
        for number in range(5000):
            writer.write_example(
                {
                    "a/feature/with/a/long/name": number,
                    "values": np.full(7, number / 3, np.float32),
                    "caption": f"the caption of picture {number} in many words",
                }
            )
    return str(folder / "train")


@pytest.mark.parametrize(
    "command",
    [
        ["stats"],
        ["info"],
        ["schema"],
        ["verify"],
        ["index"],
        ["doctor"],
        ["cat", "-n", "2", "--truncate", "3"],
    ],
    ids=lambda command: command[0],
)
def test_lines_fit(shard: str, command: list[str]) -> None:
    progress = [] if command[0] in ("schema", "doctor", "cat") else ["--progress"]
    lines = drawn(*command, shard, *progress)
    folder = str(Path(shard).parent)
    assert [line for line in lines if len(line) > WIDTH and folder not in line] == []
    bars = [line for line in lines if "[#" in line or "[." in line]
    assert bool(bars) == bool(progress)


def test_tables_are_cut_in_the_middle() -> None:
    rows = [("a/long/name/of/a/shard-00001", 12_345), ("short", 7)]
    assert format_table(["name", "records"], rows, 24) == [
        "name             records",
        "a/long...-00001   12,345",
        "short                  7",
    ]
    assert len(format_table(["name", "records"], rows)[1]) > 30
    numbers = format_table(["path", "n"], [("7/" * 40, -12_345_678)], 40)
    assert len(numbers[1]) <= 40
    assert "-12,345,678" in numbers[1]
    assert len(format_table(["name"], [("x" * (1 << 20),)], 80)[1]) == 80
    assert format_table(["name", "records"], rows, 1)[1].startswith("a/l")


def test_numbers_and_results_are_short(shard: str, tmp_path: Path) -> None:
    counts = (999, 1234, 5_012_345, 7_100_000_000, 2 * 10**12)
    assert [*map(rounded, counts)] == ["999", "1,234", "5.0 million", "7.1 billion", "2.0 trillion"]
    copied = tfr.copy(shard, range(400), tmp_path / "x", num_shards=200)
    assert "... 199 more" in repr(copied)
    assert len(repr(copied)) < 400
    assert copied.paths[199] not in repr(copied)
