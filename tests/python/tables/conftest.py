from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three shards of 1,500 records in all."""
    from example_files import write_examples

    folder: Path = tmp_path_factory.mktemp("tables")
    return write_examples(folder, [700, 1, 799])
