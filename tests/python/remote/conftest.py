from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hub_server import Hub, hub_server
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


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A Hub for hf://, and none of the user's tokens."""
    for name in (
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "HF_TOKEN_PATH",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    with hub_server() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


@pytest.fixture
def s3_keys() -> dict[str, str]:
    return {
        "region": "us-east-1",
        "access_key_id": "testing-key",
        "secret_access_key": "testing-secret",
    }


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    moto_server = pytest.importorskip("moto.server", reason="needs moto[server]")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(moto: str) -> Iterator[Any]:
    boto3 = pytest.importorskip("boto3", reason="needs boto3")
    resource = boto3.resource(
        "s3",
        endpoint_url=moto,
        region_name="us-east-1",
        aws_access_key_id="testing-key",
        aws_secret_access_key="testing-secret",
    )
    bucket = resource.create_bucket(Bucket="somebucket")
    yield bucket
    bucket.objects.delete()
    for each in bucket.multipart_uploads.all():
        each.abort()


@pytest.fixture
def storage(moto: str, s3_keys: dict[str, str]) -> dict[str, Any]:
    """The options that reach `bucket`."""
    return {"endpoint": moto, **s3_keys}
