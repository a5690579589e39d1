"""s3://, gs:// and az://, with patterns, accounts and options."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from range_server import RangeServer, Trouble
from tfrfast.storage.remote import answers
from tfrfast.storage.remote.listing import find_objects
from tfrfast.storage.remote.options import Storage

pytest.importorskip("obstore", reason="needs obstore")


def test_the_usual_variables_of_the_environment(
    moto: str, bucket: Any, shards: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.upload_file(shards[0], "sets/env")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing-secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    # The facts about a bucket are kept, so this URL reaches the bucket in another way.
    reader = tfr.Reader("s3://somebucket/sets/env", storage={"timeout": 29})
    assert list(reader) == list(tfr.Reader(shards[0]))


def test_a_profile(
    moto: str, bucket: Any, shards: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bucket.upload_file(shards[0], "sets/profile")
    config, credentials = tmp_path / "config", tmp_path / "credentials"
    config.write_text(f"[profile lab]\nregion = us-east-1\nendpoint_url = {moto}\n")
    credentials.write_text(
        "[lab]\naws_access_key_id = testing-key\naws_secret_access_key = testing-secret\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    reader = tfr.Reader("s3://somebucket/sets/profile", storage={"profile": "lab"})
    assert len(reader) == 300
    monkeypatch.setenv("AWS_PROFILE", "lab")
    assert len(tfr.Reader("s3://somebucket/sets/profile", storage={"timeout": 28})) == 300
    with pytest.raises(ValueError, match="There is no profile 'none'"):
        tfr.Reader("s3://somebucket/sets/profile", storage={"profile": "none"})


@pytest.fixture(params=["s3", "gs", "az"])
def kind(request: pytest.FixtureRequest, server: RangeServer) -> tuple[str, str, dict[str, Any]]:
    """A URL's beginning, the server's path for it, and the options."""
    scheme = request.param
    account = "account/" if scheme == "az" else ""
    storage: dict[str, Any] = {"endpoint": server.url, "anonymous": True}
    if scheme == "az":
        storage = {**storage, "endpoint": f"{server.url}/account", "account_name": "account"}
    return f"{scheme}://holder", f"{account}holder", storage


def test_every_kind_reads_the_same(
    server: RangeServer, shards: list[str], kind: tuple[str, str, dict[str, Any]]
) -> None:
    root, path, storage = kind
    for shard in shards:
        server.put(f"{path}/sets/one/{Path(shard).name}", Path(shard).read_bytes())
    here = tfr.Reader(shards)
    for paths in (
        f"{root}/sets/one/data-*",
        [f"{root}/sets/one/{Path(shard).name}" for shard in shards],
    ):
        there = tfr.Reader(paths, storage=storage)
        assert list(there) == list(here)
    server.put(f"{path}/sets/one/data-000", Path(shards[2]).read_bytes())
    with pytest.raises(tfr.StaleIndexError, match="was replaced"):
        there[0]


def test_patterns(server: RangeServer, kind: tuple[str, str, dict[str, Any]]) -> None:
    root, path, storage = kind
    names = ["a-10", "a-9", "b-1", ".a-3", "sub/a-4", "sub/deep/a-5", "x+y/a 6"]
    for name in names:
        server.put(f"{path}/set/{name}", b"")
    server.put(f"{path}/set.tfrfast/index", b"index")
    server.put(f"{path}/a-8", b"")

    def found(pattern: str) -> list[str]:
        reader = tfr.Reader(f"{root}/{pattern}", storage=storage)
        return [shard.path.removeprefix(f"{root}/") for shard in reader.shards]

    assert found("set/a-*") == ["set/a-9", "set/a-10"]
    assert found("set/[!a]-?") == ["set/b-1"]
    assert found("set/*/a*") == ["set/sub/a-4", "set/x+y/a 6"]
    assert found("set/**/a-?") == ["set/a-9", "set/sub/a-4", "set/sub/deep/a-5"]
    assert found("set*/a-9*") == ["set/a-9"]
    assert found("a-*") == ["a-8"]
    deep = ["set/sub/a-4", "set/sub/deep/a-5", "set/x+y/a 6"]
    assert found("set/**") == ["set/a-9", "set/a-10", "set/b-1", *deep]
    assert found("**") == ["a-8", *found("set/**")]
    server.forget()
    found("set/a-*")
    assert len([each for each in server.seen if each.path.rstrip("/") == path]) == 1
    with pytest.raises(FileNotFoundError, match="No shard matches the pattern"):
        found("set/none-*")


def test_a_listing_may_take_longer_than_a_request(
    server: RangeServer, kind: tuple[str, str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, path, storage = kind
    server.put(f"{path}/set/a", b"record")
    server.delay_s = 0.5
    monkeypatch.setattr(answers, "_STUCK_S", -29.9)  # of the 30 s that one request may take
    access = Storage({**storage, "timeout": 30}).access
    for pattern in ("set/*", "**"):
        assert find_objects(f"{root}/{pattern}", access) == [f"{root}/set/a"]


def test_a_listing_that_fails_late_is_tried_again(
    server: RangeServer, kind: tuple[str, str, dict[str, Any]]
) -> None:
    root, path, storage = kind
    server.put(f"{path}/set/a", b"record")

    def fail_late(_: Any, number: int) -> Trouble | None:
        if number > 1:
            return None
        time.sleep(1.5)
        return Trouble(503)

    server.trouble = fail_late
    access = Storage({**storage, "retry_seconds": 1}).access
    assert find_objects(f"{root}/set/*", access) == [f"{root}/set/a"]


def test_marks_of_folders_are_no_shards(
    server: RangeServer, kind: tuple[str, str, dict[str, Any]]
) -> None:
    """Storage consoles make a folder as an empty object whose name ends in a slash."""
    root, path, storage = kind
    for name in ("set/", "set/sub/", "set/sub/a", "set/empty"):
        server.put(f"{path}/{name}", b"")
    for pattern in ("**", "*/**", "set/**/*"):
        reader = tfr.Reader(f"{root}/{pattern}", storage=storage)
        assert [shard.path for shard in reader.shards] == [f"{root}/set/empty", f"{root}/set/sub/a"]


def test_names_that_are_patterns(
    server: RangeServer, kind: tuple[str, str, dict[str, Any]], shards: list[str]
) -> None:
    root, path, storage = kind
    names = ["set/a*", "set/a?b", "set/a[1]", "set/a^b"]
    for name in names:
        server.put(f"{path}/{name}", Path(shards[0]).read_bytes())
    everything = tfr.Reader(f"{root}/set/a*[]1b^]", storage=storage)
    assert [shard.path for shard in everything.shards] == [f"{root}/{name}" for name in names[1:]]
    again = pickle.loads(pickle.dumps(everything))
    assert [shard.path for shard in again.shards] == [f"{root}/{name}" for name in names[1:]]
    for name in names:
        assert len(tfr.Reader(f"{root}/{name}", storage=storage).shards) == 1


def test_a_server_has_no_patterns(server: RangeServer) -> None:
    with pytest.raises(ValueError, match="http:// has no listing"):
        tfr.Reader(f"{server.url}/set/*")
    server.put("set/[1]", b"")
    assert len(tfr.Reader(f"{server.url}/set/[1]")) == 0  # a name like any other


def test_a_token_for_a_server(server: RangeServer, urls: list[str]) -> None:
    tfr.Reader(urls[0], storage={"token": "abcdefgh", "headers": {"X-Team": "sight"}})
    assert server.seen[-1].headers["authorization"] == "Bearer abcdefgh"
    assert server.seen[-1].headers["x-team"] == "sight"


def test_an_index_beside_a_bucket_is_never_looked_for(
    server: RangeServer, shards: list[str], kind: tuple[str, str, dict[str, Any]]
) -> None:
    """The folder beside a bucket would be another bucket, perhaps of another owner."""
    root, path, storage = kind
    server.put(f"{path}/data", Path(shards[0]).read_bytes())
    tfr.Reader(f"{root}/data", storage=storage)
    assert {each.path for each in server.seen} == {f"{path}/data"}


def test_an_endpoint_without_a_scheme_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="has to begin with http:// or https://"):
        tfr.Reader("s3://bucket/x", storage={"endpoint": "minio:9000"})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "minio:9000")
    for name in ("s3://bucket/x", "s3://bucket/x*"):
        with pytest.raises(ValueError, match="bucket cannot be reached: the endpoint has to begin"):
            tfr.Reader(name)


def test_options_that_are_not_a_dict_are_refused() -> None:
    with pytest.raises(TypeError, match="storage is a dict of options, not str"):
        tfr.Reader("s3://bucket/x", storage="us-east-1")  # type: ignore[arg-type]
