"""Every job and command of tables names all the damage that it leaves out."""

from pathlib import Path

import pytest

from damaged_set import TABLES, Road, write_damaged

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")


@pytest.mark.parametrize("road", TABLES, ids=lambda road: road.name)
def test_every_road_names_all_the_damage_that_it_meets(tmp_path: Path, road: Road) -> None:
    damaged = write_damaged(tmp_path / "in")
    (tmp_path / "out").mkdir()
    assert road.report(damaged.paths, tmp_path / "out") == damaged.all
