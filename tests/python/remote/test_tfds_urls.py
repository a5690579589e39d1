"""A data set of TensorFlow Datasets is the same behind a URL and in the uploaded folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from range_server import RangeServer, Trouble
from tfrfast.tfds_folder.tfds import TfdsSplit

pytest.importorskip("obstore", reason="needs obstore")

GOLDEN = Path(__file__).parents[2] / "golden" / "tfds"
FOLDER = GOLDEN / "little" / "1.0.0"
SPLITS = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))["ids"]

INFO = "sets/little/1.0.0/dataset_info.json"
FEATURES = "sets/little/1.0.0/features.json"


def files() -> dict[str, bytes]:
    return {f"sets/little/1.0.0/{each.name}": each.read_bytes() for each in FOLDER.iterdir()}


@pytest.fixture
def on_server(server: RangeServer) -> str:
    for path, data in files().items():
        server.put(path, data)
    return f"{server.url}/sets/little/1.0.0"


@pytest.fixture
def storage(moto: str, s3_keys: dict[str, str]) -> dict[str, Any]:
    return {"endpoint": moto, "retries": 0, **s3_keys}


@pytest.fixture
def in_bucket(bucket: Any) -> str:
    for path, data in files().items():
        bucket.put_object(Key=path, Body=data)
    return "s3://somebucket/sets/little/1.0.0"


def elements(split: TfdsSplit) -> list[bytes]:
    indices = np.arange(len(split.reader)) if split.indices is None else split.indices
    return list(split.reader.read(indices))


def assert_alike(there: TfdsSplit, here: TfdsSplit) -> None:
    assert elements(there) == elements(here)
    assert there.features == here.features
    np.testing.assert_array_equal(there.indices, here.indices)
    assert there.reader._fingerprint == here.reader._fingerprint


def test_splits_on_a_server_are_those_of_the_folder(on_server: str) -> None:
    for split in ("train", "test + train[:10%]", "train[2shard]", "train[3:7]"):
        assert_alike(tfr.tfds(on_server, split), tfr.tfds(FOLDER, split))


def test_splits_in_a_bucket_are_those_of_the_folder(
    in_bucket: str, storage: dict[str, Any]
) -> None:
    for split in SPLITS:
        there = tfr.tfds(f"{in_bucket}/", split, storage=storage)
        assert_alike(there, tfr.tfds(FOLDER, split))


def test_a_data_set_may_fill_a_bucket(bucket: Any, storage: dict[str, Any]) -> None:
    for each in FOLDER.iterdir():
        bucket.upload_file(str(each), each.name)
    for name in ("s3://somebucket", "s3://somebucket/"):
        assert_alike(tfr.tfds(name, "test", storage=storage), tfr.tfds(FOLDER, "test"))


def test_only_what_the_split_needs_is_read(server: RangeServer, on_server: str) -> None:
    tfr.tfds(on_server, "train[2shard]")
    shard = "sets/little/1.0.0/little-train.tfrecord-00002-of-00004"
    in_folder = {each.path for each in server.seen if ".tfrfast/" not in each.path}
    assert in_folder == {INFO, FEATURES, shard}


def test_options_are_passed_on(server: RangeServer, on_server: str, tmp_path: Path) -> None:
    cache = tfr.DiskCache(tmp_path / "cache", "100M")
    first = elements(tfr.tfds(on_server, "train", cache=cache))
    server.forget()
    again = tfr.tfds(on_server, "train", cache=cache, verify="header")
    assert elements(again) == first
    assert {each.path for each in server.reads()} == {INFO, FEATURES}
    assert again.reader._options["verify"] == "header"


def test_requests_that_fail_are_tried_again(server: RangeServer, on_server: str) -> None:
    failed: set[tuple[str, str]] = set()

    def trouble(seen: Any, _: int) -> Trouble | None:
        if (seen.method, seen.path) in failed:
            return None
        failed.add((seen.method, seen.path))
        return Trouble(503)

    server.trouble = trouble
    assert_alike(tfr.tfds(on_server, "test"), tfr.tfds(FOLDER, "test"))
    assert {("HEAD", INFO), ("GET", INFO), ("HEAD", FEATURES)} <= failed


def test_a_file_that_is_replaced_meanwhile_is_read_whole(
    server: RangeServer, on_server: str
) -> None:
    info = json.loads(server.objects[INFO].data)
    info["splits"] = [each for each in info["splits"] if each["name"] == "test"]
    replacements = [json.dumps(info).encode()]

    def trouble(seen: Any, _: int) -> None:
        if (seen.method, seen.path) == ("GET", INFO) and replacements:
            server.put(INFO, replacements.pop())

    server.trouble = trouble
    with pytest.raises(ValueError, match="no split 'train', only 'test'"):
        tfr.tfds(on_server, "train")


def test_what_is_not_described_is_inferred(server: RangeServer, on_server: str) -> None:
    del server.objects[FEATURES]
    features = tfr.tfds(on_server, "train").features
    assert features["id"] == tfr.FixedLen((), "int64")


def test_a_missing_data_set_is_an_error_that_says_what_there_is(
    bucket: Any, in_bucket: str, storage: dict[str, Any], on_server: str
) -> None:
    bucket.put_object(Key="sets/little/1.0.0.tfrfast/index", Body=b"")
    above = in_bucket.rpartition("/")[0]
    with pytest.raises(FileNotFoundError, match=rf"folders below it: '{above}/1\.0\.0':") as caught:
        tfr.tfds(above, "train", storage=storage)
    assert caught.value.filename == f"{above}/dataset_info.json"
    for absent, options in (
        (f"{in_bucket}/absent", {"storage": storage}),
        (on_server.rpartition("/")[0], {}),
    ):
        with pytest.raises(FileNotFoundError, match="Give the folder of one version"):
            tfr.tfds(absent, "train", **options)


def test_what_does_not_fit_is_refused(server: RangeServer, on_server: str) -> None:
    server.put(INFO, b"<html>Log in</html>")
    with pytest.raises(ValueError, match=rf"'{on_server}/dataset_info\.json' is not valid JSON"):
        tfr.tfds(on_server, "train")
    server.put(INFO, files()[INFO])
    shard = "sets/little/1.0.0/little-train.tfrecord-00001-of-00004"
    server.put(shard, files()["sets/little/1.0.0/little-test.tfrecord-00000-of-00004"])
    with pytest.raises(ValueError, match=r"has 1 records, but dataset_info\.json says 3"):
        tfr.tfds(on_server, "train")
    del server.objects[shard]
    with pytest.raises(FileNotFoundError, match="There is no object"):
        tfr.tfds(on_server, "train")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("s3://somebucket/sets/*/1.0.0", "is a pattern, and tfr.tfds reads the folder of one"),
        ("s3:///sets/little", "names no object"),
        ("hdfs://host/sets/little", "Mount other storages as a folder"),
        ("https://host/set?token=SECRET", "has a query, a fragment or a password"),
        ("https://me:SECRET@host/set", "has a query, a fragment or a password"),
    ],
)
def test_urls_that_name_no_folder_are_refused(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        tfr.tfds(url, "train")
    assert "SECRET" not in str(caught.value)


def test_a_folder_whose_name_looks_like_a_url_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FOLDER, tmp_path / "s3:" / "little")
    monkeypatch.chdir(tmp_path)
    assert_alike(tfr.tfds("s3://little", "test"), tfr.tfds(FOLDER, "test"))


def test_secrets_are_not_shown(server: RangeServer, on_server: str) -> None:
    storage = {"token": "VERY-SECRET", "retries": 0}
    split = tfr.tfds(on_server, "test", storage=storage)
    assert all(each.headers["authorization"] == "Bearer VERY-SECRET" for each in server.seen)
    assert "SECRET" not in repr(split)
    server.trouble = lambda seen, _: Trouble(403, "<Error><Code>No</Code>VERY-SECRET</Error>")
    with pytest.raises(PermissionError, match="Check the credentials") as caught:
        tfr.tfds(on_server, "test", storage=storage)
    assert "SECRET" not in str(caught.value)
