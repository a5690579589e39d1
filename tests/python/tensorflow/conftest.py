from __future__ import annotations

from collections.abc import Iterator

import pytest

from data_service import DataService


@pytest.fixture(scope="session")
def service() -> Iterator[DataService]:
    """Starts at its first use. Is ready once target() has returned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_grpc_proxy", "localhost")  # even if this machine has to use a proxy
        service = DataService()
        yield service
        service.stop()
