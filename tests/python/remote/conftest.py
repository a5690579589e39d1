from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from range_server import RangeServer, range_server
from record_files import write_shards


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with range_server() as running:
        yield running


@pytest.fixture(autouse=True)
def no_accounts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test uses the user's own accounts."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    folder = tmp_path / "set"
    folder.mkdir()
    return write_shards(folder, [300, 0, 500], longest=3000)


@pytest.fixture
def urls(server: RangeServer, shards: list[str]) -> list[str]:
    """The shards once more, on the server."""
    for shard in shards:
        server.put(f"set/{Path(shard).name}", Path(shard).read_bytes())
    return [f"{server.url}/set/{Path(shard).name}" for shard in shards]
