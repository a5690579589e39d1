from __future__ import annotations

import sys
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


@pytest.fixture(autouse=True)
def no_global_seed() -> Iterator[None]:
    """Ends a global seed with its test. Under a seed, random ops are not lifted."""
    yield
    if tf := sys.modules.get("tensorflow"):
        tf.random.set_seed(None)
