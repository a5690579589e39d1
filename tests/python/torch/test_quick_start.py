"""The quick start for PyTorch, as it is quoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoted_code import run_page

torch = pytest.importorskip("torch")


def test_pytorch_learns_as_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    done = run_page("start-pytorch.md")
    assert float(done["loss"].detach()) < 1
    assert done["loader"].epoch == 5
