from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_index_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """No test sees indexes that another one left."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(folder))
    return folder
