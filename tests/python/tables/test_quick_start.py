"""The quick start for Polars, as it is quoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoted_code import run_page

pytest.importorskip("polars")


def test_polars_finds_records_as_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_page("start-polars.md")
    assert done["means"]["label"].to_list() == list(range(10))
    assert abs(done["means"]["score"].to_numpy() - range(10)).max() < 0.5
    assert len(done["loader"].plan.indices(0, 0)) == 32
    assert done["batch"]["score"].min() > 9
    assert sum(len(batch["score"]) for batch in done["loader"]) == len(done["chosen"]) > 32
