"""Runs the code of the page about object stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import tfrfast as tfr
from hub_server import Hub
from quoted_code import run_page, write_shards

boto3 = pytest.importorskip("boto3")


class WithoutTensorFlow:
    """Returns tfrfast, with a stand-in for the classes that need TensorFlow."""

    TFRecordDataset = MagicMock()

    def __getattr__(self, name: str) -> Any:
        return getattr(tfr, name)


def test_object_stores(
    moto: str, hub: Hub, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing-secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    bucket = boto3.resource("s3", region_name="us-east-1").create_bucket(Bucket="bucket")
    write_shards("train")
    for path in own_folder.glob("train-*"):
        for revision in ("main", "v1.0"):
            hub.put(f"data/{path.name}", path.read_bytes(), repo="ORG/NAME", revision=revision)
        bucket.upload_file(str(path), path.name)
        bucket.upload_file(str(path), f"imagenet/{path.name}")
    instead = {
        "https://minio:9000": moto,
        "/local/cache": str(own_folder / "cache"),
        "200G": "100M",
        "storage={...}": "storage={}",
    }
    done = run_page("docs/remote.md", {"tfr": WithoutTensorFlow(), "features": []}, instead)
    assert len(done["reader"]) == 300
    bucket.objects.delete()
