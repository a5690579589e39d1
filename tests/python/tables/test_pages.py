"""Runs the code of the pages about tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from quoted_code import run_page, write_shards

pytest.importorskip("polars")

pytestmark = pytest.mark.usefixtures("own_folder")


def test_polars_finds_records() -> None:
    done = run_page("docs/start-polars.md")
    assert done["means"]["label"].to_list() == list(range(10))
    assert abs(done["means"]["score"].to_numpy() - range(10)).max() < 0.5
    assert len(done["loader"].plan.indices(0, 0)) == 32
    assert done["batch"]["score"].min() > 9
    assert sum(len(batch["score"]) for batch in done["loader"]) == len(done["chosen"]) > 32


def test_tables() -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    write_shards("data/train")
    np.savetxt("numbers.txt", [3, 1, 2], "%d")
    run_page("docs/tables.md")
    assert len(tfr.Reader("out/cats-*")) == 30
    assert len(tfr.Reader("out/some-*")) == 3
    assert Path("train.parquet").exists()
