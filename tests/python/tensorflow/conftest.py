from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from data_service import DataService


@pytest.fixture(autouse=True)
def own_index_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """No test sees indexes that another one left."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(folder))
    return folder


@pytest.fixture(scope="session")
def service() -> Iterator[DataService]:
    """Starts when it is first asked for, and is there once its target() is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_grpc_proxy", "localhost")  # whatever proxy this machine has to use
        service = DataService()
        yield service
        service.stop()
