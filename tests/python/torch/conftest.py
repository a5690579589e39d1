from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    from torch_data import write_examples

    return write_examples(tmp_path / "data")


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test believes that it is one of several ranks, even if a launcher started the tests."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
