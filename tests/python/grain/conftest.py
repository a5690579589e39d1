from __future__ import annotations

import os
from pathlib import Path

import pytest

import tfrfast as tfr
from record_files import flip_payload_byte
from torch_data import NUM_RECORDS, example, write_examples

# JAX reads this when it first looks for devices.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"


@pytest.fixture(autouse=True, scope="session")
def parsed_flags() -> None:
    """Grain starts processes only in programs that have parsed absl's flags."""
    flags = pytest.importorskip("absl.flags")
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["pytest"])


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    return write_examples(tmp_path / "data")


@pytest.fixture
def damaged(shards: list[str]) -> list[str]:
    """Shards of which record 20 is damaged."""
    first = [tfr.encode_example(example(number)) for number in range(NUM_RECORDS // 3)]
    flip_payload_byte(shards[0], first, 20)
    return shards
