"""Every job and command names all the damage that it leaves out."""

from collections import Counter
from pathlib import Path

import pytest

import tfrfast as tfr
from damaged_set import COMMANDS, JOBS, SKIP, Road, write_damaged
from tfrfast.cli import main


@pytest.mark.parametrize("road", [*COMMANDS, *JOBS], ids=lambda road: road.name)
def test_every_road_names_all_the_damage_that_it_meets(tmp_path: Path, road: Road) -> None:
    damaged = write_damaged(tmp_path / "in")
    (tmp_path / "out").mkdir()
    expected = damaged.all if road.reads_payloads else damaged.frames
    assert road.report(damaged.paths, tmp_path / "out") == expected


def test_stats_counts_the_intact_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = write_damaged(tmp_path / "in")
    assert main(["stats", *SKIP, *damaged.paths]) == 1
    assert capsys.readouterr().out.startswith(f"{damaged.intact} records, 5 shards\n")


def test_build_index_counts_the_damage_of_frames(tmp_path: Path) -> None:
    damaged = write_damaged(tmp_path / "in")
    counts = Counter(path for path, _ in damaged.frames)
    built = tfr.build_index(damaged.paths)
    assert {each.shard: each.damage for each in built if each.damage} == counts
