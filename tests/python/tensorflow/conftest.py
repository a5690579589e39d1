from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from data_service import DataService


@pytest.fixture(autouse=True)
def own_index_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """No test sees the indexes of another test."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(folder))
    return folder


@pytest.fixture(scope="session")
def service() -> Iterator[DataService]:
    """Starts at its first use. Is ready once target() has returned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_grpc_proxy", "localhost")  # even if this machine has to use a proxy
        service = DataService()
        yield service
        service.stop()
