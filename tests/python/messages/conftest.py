from typing import Any

import pytest

pytest.importorskip("google.protobuf")
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from scenarios import scenario_file


@pytest.fixture(scope="session")
def described() -> bytes:
    return descriptor_pb2.FileDescriptorSet(file=[scenario_file()]).SerializeToString()


@pytest.fixture(scope="session")
def scenario_class() -> Any:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(scenario_file())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("drive.Scenario"))
