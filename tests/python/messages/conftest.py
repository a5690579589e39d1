from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def described() -> bytes:
    """The FileDescriptorSet of `scenarios.py`."""
    proto = pytest.importorskip("google.protobuf.descriptor_pb2")
    from scenarios import scenario_file

    data: bytes = proto.FileDescriptorSet(file=[scenario_file()]).SerializeToString()
    return data


@pytest.fixture(scope="session")
def scenario_class(described: bytes) -> Any:
    from google.protobuf import descriptor_pool, message_factory

    from scenarios import scenario_file

    pool = descriptor_pool.DescriptorPool()
    pool.Add(scenario_file())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("drive.Scenario"))
