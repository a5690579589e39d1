"""Shards, sets and indexes in buckets: whole or not there, and found by every reader."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import remote_child
import tfrfast as tfr
from buckets import keys, unfinished
from patience import PATIENCE_S
from range_server import RangeServer, Seen, Trouble
from record_files import some_records, write_shard
from tfrfast.jobs.shuffling.publication import Shuffled
from tfrfast.storage.remote import objects

pytest.importorskip("obstore", reason="needs obstore")

ROOT = "s3://somebucket/sets/one"


@pytest.fixture
def other_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Forgets all facts about the written objects."""
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(tmp_path / "other-cache"))


@pytest.fixture(autouse=True)
def own_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))


@pytest.fixture
def keys_in_environment(monkeypatch: pytest.MonkeyPatch, storage: dict[str, Any]) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing-secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", storage["endpoint"])


def test_a_shard(bucket: Any, storage: dict[str, Any], tmp_path: Path) -> None:
    records = some_records(300)
    with tfr.Writer(f"{ROOT}/shard", storage=storage) as writer:
        for record in records:
            writer.write(record)
        assert writer.path == f"{ROOT}/shard"
        assert keys(bucket) == []
    assert keys(bucket) == ["sets/one.tfrfast/index", "sets/one/shard"]
    assert list(tfr.Reader(f"{ROOT}/shard", storage=storage, index="require")) == records
    assert not list((tmp_path / "tmp").iterdir())
    with pytest.raises(FileExistsError, match="overwrite=True"):
        tfr.Writer(f"{ROOT}/shard", overwrite=False, storage=storage)
    with tfr.Writer(f"{ROOT}/shard", compression="GZIP", storage=storage, overwrite=True) as writer:
        writer.write_batch(records[:200])
    assert list(tfr.Reader(f"{ROOT}/shard", storage=storage, index="require")) == records[:200]


class Idle(Executor):
    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("It was asked to work.")


def test_one_machine_writes_copies(bucket: Any, storage: dict[str, Any], tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard", [b"zero", b"one", b"two"])
    made = tfr.copy(shard, [2, 0], f"{ROOT}/x", executor=Idle(), storage=storage)
    assert made.paths == [f"{ROOT}/x-00000-of-00001"]
    assert list(tfr.Reader(made.paths, storage=storage, index="require")) == [b"two", b"zero"]


def test_what_was_published_or_given_up_is_not_published_again(
    bucket: Any, storage: dict[str, Any]
) -> None:
    with tfr.Writer(f"{ROOT}/shard", storage=storage) as writer:
        writer.write(b"record")
    given_up = tfr.Writer(f"{ROOT}/other", storage=storage)
    given_up.abort()
    before = keys(bucket)
    for each in (writer, given_up):
        each.close()
        # A second thread closes at the same time.
        each._output.publish(each._core.paths())
    assert keys(bucket) == before == ["sets/one.tfrfast/index", "sets/one/shard"]


def test_a_set_and_its_index(
    bucket: Any, storage: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    records = some_records(500)
    prefix = f"{ROOT}/train"
    with tfr.ShardedWriter(prefix, num_shards=3, storage=storage) as writer:
        writer.write_batch(records)
    assert writer.paths == [f"{prefix}-0000{i}-of-00003" for i in range(3)]
    with tfr.Writer(f"{ROOT}/alone", storage=storage) as alone:
        alone.write(b"alone")
    request.getfixturevalue("other_machine")
    # Another writer's index removes no entry.
    reader = tfr.Reader(f"{prefix}-*", storage=storage, index="require")
    assert sorted(reader) == sorted(records)
    assert {shard.index for shard in reader.shards} == {f"{ROOT}.tfrfast/index"}
    assert len(tfr.Reader(f"{ROOT}/alone", storage=storage, index="require")) == 1

    with pytest.raises(FileExistsError, match="3 shards named like"):
        tfr.ShardedWriter(prefix, num_shards=2, storage=storage)
    with tfr.ShardedWriter(prefix, num_shards=2, overwrite=True, storage=storage) as writer:
        writer.write_batch(records[:100])
    assert [key for key in keys(bucket) if "train" in key] == [
        f"sets/one/train-0000{i}-of-00002" for i in range(2)
    ]
    assert len(tfr.Reader(f"{prefix}-*", storage=storage, index="require")) == 100


def test_copies_without_index_or_with_one_elsewhere(
    bucket: Any, storage: dict[str, Any], shards: list[str], tmp_path: Path
) -> None:
    made = tfr.copy(shards, np.arange(50), f"{ROOT}/copy", index=False, storage=storage)
    assert made.paths == [f"{ROOT}/copy-00000-of-00001"]
    assert keys(bucket) == ["sets/one/copy-00000-of-00001"]
    folder = tmp_path / "indexes"
    made = tfr.copy(
        made.paths[0], slice(10), f"{ROOT}/few", index_folder=folder, storage=storage, num_shards=2
    )
    assert not [key for key in keys(bucket) if "tfrfast" in key]
    (tmp_path / "cache").rename(tmp_path / "gone")
    assert len(tfr.Reader(made.paths, index_folder=folder, storage=storage)) == 10


def test_a_shuffle_with_splits(
    bucket: Any, storage: dict[str, Any], shards: list[str], tmp_path: Path
) -> None:
    def shuffled(out: str, **options: Any) -> Shuffled:
        splits = {"train": 0.9, "test": 0.1}
        return tfr.shuffle(shards, out, num_shards=4, splits=splits, seed=3, **options)

    here = shuffled(str(tmp_path / "out/x"))
    there = shuffled(f"{ROOT}/x", storage=storage)
    assert [Path(path).name for path in there.paths] == [Path(path).name for path in here.paths]
    assert there.content_hash == here.content_hash
    read = tfr.Reader(there.splits["train"], storage=storage, index="require")
    assert list(read) == list(tfr.Reader(here.splits["train"]))
    with ThreadPoolExecutor(2) as pool:
        spread = shuffled(
            f"{ROOT}/y", storage=storage, executor=pool, work=tmp_path / "work", max_memory="16MiB"
        )
    assert list(tfr.Reader(spread.splits["test"], storage=storage, index="require")) == list(
        tfr.Reader(here.splits["test"])
    )
    assert not (tmp_path / "work").exists()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        shuffled(f"{ROOT}/x", storage=storage)
    assert not list((tmp_path / "tmp").iterdir())


def test_indexes_are_published_on_request(
    bucket: Any,
    storage: dict[str, Any],
    shards: list[str],
    request: pytest.FixtureRequest,
) -> None:
    for shard in shards:
        bucket.upload_file(shard, f"sets/one/{Path(shard).name}")
    built = tfr.build_index(f"{ROOT}/data-*", storage=storage, publish=True)
    assert [each.path for each in built] == [f"{ROOT}.tfrfast/index"] * 3
    assert all(each.was_built for each in built)
    request.getfixturevalue("other_machine")
    there = tfr.Reader(f"{ROOT}/data-*", storage=storage, index="require")
    assert list(there) == list(tfr.Reader(shards))
    assert not any(each.was_built for each in tfr.build_index(f"{ROOT}/data-*", storage=storage))
    assert all(
        each.was_built for each in tfr.build_index(f"{ROOT}/data-*", storage=storage, force=True)
    )
    # A replaced object has no fitting index.
    bucket.upload_file(shards[2], "sets/one/data-000")
    with pytest.raises(tfr.StaleIndexError):
        tfr.Reader(f"{ROOT}/data-000", storage=storage, index="require")


def test_sections_that_another_writer_adds_meanwhile_are_kept(
    bucket: Any,
    storage: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setattr("tfrfast.storage.remote.publishing._ATTEMPTS", 2)
    publish = objects.replace_by_file
    between = [lambda: write("between")]

    def write(name: str) -> None:
        with tfr.Writer(f"{ROOT}/{name}", storage=storage) as writer:
            writer.write(name.encode())

    def publish_late(*arguments: Any) -> bool:
        if between:
            between.pop()()
        return publish(*arguments)

    write("first")
    monkeypatch.setattr(objects, "replace_by_file", publish_late)
    write("last")
    request.getfixturevalue("other_machine")
    names = ["first", "between", "last"]
    reader = tfr.Reader([f"{ROOT}/{x}" for x in names], storage=storage, index="require")
    assert list(reader) == [name.encode() for name in names]


def test_an_index_that_no_request_can_replace_is_refused(
    bucket: Any, storage: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_MAX_PUT_BYTES", 100)
    with (
        pytest.raises(OSError, match="at most 100 bytes in one request. Divide the shards"),
        tfr.Writer(f"{ROOT}/x", storage=storage) as writer,
    ):
        writer.write(b"record")


def test_an_index_folder_beside_a_data_folder_keeps_the_indexes_of_urls(
    bucket: Any, storage: dict[str, Any], shards: list[str], tmp_path: Path, cache: Path
) -> None:
    """Merging drops entries of shards that left the data folder. URLs were never in that folder."""
    for shard in shards:
        bucket.upload_file(shard, f"sets/one/{Path(shard).name}")
    urls = [f"{ROOT}/{Path(shard).name}" for shard in shards]
    folder = tmp_path / "local.tfrfast"
    (tmp_path / "local").mkdir()
    for _ in range(2):
        for url in urls:
            tfr.build_index(url, index_folder=folder, storage=storage, force=True)
        with tfr.Writer(tmp_path / "local" / "data-000", overwrite=True) as writer:
            writer.write(b"a shard of the same name")
        tfr.build_index(tmp_path / "local" / "data-000", force=True)
    cache.rename(tmp_path / "gone")
    assert len(tfr.Reader(urls, index_folder=folder, storage=storage)) == 800
    reader = tfr.Reader(urls, index_folder=folder, storage=storage)
    assert {shard.index for shard in reader.shards} == {str(folder / "index")}
    assert len(tfr.Reader(tmp_path / "local" / "data-000", index="require")) == 1


def test_requests_that_fail_are_tried_again(server: RangeServer) -> None:
    storage = {"endpoint": server.url, "region": "us-east-1", "anonymous": True}
    failures = {"left": 2}

    def trouble(seen: Seen, _: int) -> Trouble | None:
        if seen.method != "PUT" or not failures["left"]:
            return None
        failures["left"] -= 1
        return Trouble(503)

    server.trouble = trouble
    with tfr.Writer("s3://bucket/set/x", storage=storage) as writer:
        writer.write(b"record")
    assert sorted(server.objects) == ["bucket/set.tfrfast/index", "bucket/set/x"]
    assert tfr.Reader("s3://bucket/set/x", storage=storage)[0] == b"record"


def test_an_upload_that_fails_keeps_the_shards(server: RangeServer, tmp_path: Path) -> None:
    storage = {
        "endpoint": server.url,
        "region": "us-east-1",
        "access_key_id": "testing-key",
        "secret_access_key": "VERY-SECRET",
        "retries": 0,
    }
    server.trouble = lambda seen, _: (
        Trouble(403, "<Error><Code>AccessDenied</Code></Error>") if seen.method == "PUT" else None
    )
    writer = tfr.Writer("s3://bucket/set/x", storage=storage)
    writer.write(b"record")
    with pytest.raises(PermissionError, match="Nothing appeared under that name") as caught:
        writer.close()
    assert "AccessDenied" in str(caught.value)
    assert "SECRET" not in str(caught.value)
    kept = str(caught.value).partition("All shards are complete in '")[2].partition("'")[0]
    assert list(tfr.Reader(Path(kept) / "x")) == [b"record"]


def test_a_storage_that_does_not_name_versions(server: RangeServer) -> None:
    server.strong = False
    storage = {"endpoint": server.url, "region": "us-east-1", "anonymous": True}
    for name in ("x", "y"):  # the index is written, and replaced
        with tfr.Writer(f"s3://bucket/set/{name}", storage=storage) as writer:
            writer.write(name.encode())
    reader = tfr.Reader([f"s3://bucket/set/{name}" for name in "xy"], storage=storage)
    assert list(reader) == [b"x", b"y"]


def test_what_cannot_be_written(storage: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is read, and not written"):
        tfr.Writer("https://host/x")
    with pytest.raises(ValueError, match="in another bucket"):
        tfr.Writer("s3://somebucket/x", storage=storage)
    with pytest.raises(ValueError, match="names a folder"):
        tfr.Writer("s3://somebucket/x/", storage=storage)


def test_a_writer_that_is_killed_while_it_uploads(
    bucket: Any,
    storage: dict[str, Any],
    keys_in_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The upload's object does not appear, also if another object of that name exists."""
    from moto.s3.models import S3Backend

    with tfr.Writer(f"{ROOT}/x", storage=storage) as writer:
        writer.write(b"what was there before")
    are_some_there, may_go_on = threading.Event(), threading.Event()
    store_part = S3Backend.upload_part

    def store_slowly(backend: Any, *arguments: Any, **named: Any) -> Any:
        stored = store_part(backend, *arguments, **named)
        are_some_there.set()
        may_go_on.wait(PATIENCE_S)
        return stored

    monkeypatch.setattr(S3Backend, "upload_part", store_slowly)
    command = [sys.executable, remote_child.__file__, "writes_a_large_object"]
    child = subprocess.Popen(
        [*command, f"{ROOT}/x", storage["endpoint"]],
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert are_some_there.wait(PATIENCE_S)
    child.kill()
    child.wait(PATIENCE_S)
    may_go_on.set()
    assert list(tfr.Reader(f"{ROOT}/x", storage=storage)) == [b"what was there before"]
    assert unfinished(bucket) == 1
