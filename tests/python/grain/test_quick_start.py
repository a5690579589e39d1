"""The quick start for JAX, as it is quoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoted_code import run_page

pytest.importorskip("jax")


def test_jax_learns_as_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_page("start-jax.md")
    assert float(done["loss"]) < 2
    assert done["loader"].epoch == 5
