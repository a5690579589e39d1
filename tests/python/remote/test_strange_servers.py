"""Hostile servers: redirects to other hosts, listings without end, unusable names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from range_server import RangeServer, Trouble, range_server
from tfrfast.storage.remote import listing

pytest.importorskip("obstore", reason="needs obstore")


ELSEWHERE = "http://127.0.0.1:2"  # nothing listens there


@pytest.fixture
def another(shards: list[str]) -> Iterator[RangeServer]:
    with range_server() as running:
        for path in ("set/x", "bucket/set/x"):
            running.put(path, Path(shards[0]).read_bytes())
        yield running


@pytest.fixture(
    autouse=True,
    params=[
        {},
        {"https_proxy": ELSEWHERE},
        {"all_proxy": ELSEWHERE, "no_proxy": "127.0.0.1,localhost"},
    ],
)
def proxies_of_other_hosts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in request.param.items():
        monkeypatch.setenv(name, value)


def test_headers_for_one_host_go_to_no_other(
    server: RangeServer, another: RangeServer, urls: list[str]
) -> None:
    elsewhere = another.url.replace("127.0.0.1", "localhost")
    storage: dict[str, Any] = {"headers": {"X-Api-Key": "key"}}
    server.trouble = lambda seen, _: Trouble(307, location=f"{elsewhere}/{seen.path}")
    assert len(tfr.Reader(f"{server.url}/set/x")) == 300
    assert len(tfr.Reader(f"{server.url}/set/x", storage={"token": "secret"})) == 300
    assert not [each for each in another.seen if "authorization" in each.headers]
    another.forget()
    with pytest.raises(OSError, match="tried once; .* redirects to another host"):
        tfr.Reader(f"{server.url}/set/x", storage=storage)
    assert not another.seen
    server.trouble = lambda *_: None
    assert len(tfr.Reader(urls[0], storage=storage)) == 300


@pytest.mark.parametrize("is_in_environment", [False, True])
def test_a_session_token_goes_to_no_other_host(
    server: RangeServer,
    another: RangeServer,
    s3_keys: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    is_in_environment: bool,
) -> None:
    elsewhere = another.url.replace("127.0.0.1", "localhost")
    server.put("bucket/set/y", another.objects["set/x"].data)
    storage: dict[str, Any] = {"endpoint": server.url, **s3_keys}
    if is_in_environment:
        monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    else:
        storage["session_token"] = "token"
    assert len(tfr.Reader("s3://bucket/set/y", storage=storage)) == 300
    assert all("x-amz-security-token" in each.headers for each in server.seen)
    server.trouble = lambda seen, _: Trouble(307, location=f"{elsewhere}/{seen.path}")
    with pytest.raises(OSError, match="redirects to another host"):
        tfr.Reader("s3://bucket/set/x", storage=storage)
    assert not another.seen


def test_a_listing_without_end_ends(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(500):
        server.put(f"bucket/set/{number}", b"")
    server.lists_without_end = True
    storage = {"endpoint": server.url, "region": "us-east-1", "anonymous": True}
    monkeypatch.setattr(listing, "_MAX_LISTED", 50)
    with pytest.raises(OSError, match="has more than 50 objects"):
        tfr.Reader("s3://bucket/**/y", storage=storage)
    with pytest.raises(OSError, match="did not end in 0.5 s.*retry_seconds"):
        tfr.Reader("s3://bucket/set/*", storage={**storage, "retry_seconds": 0.1})


@pytest.mark.parametrize("name", ["a\x01b", "..", "./z", "/z"])
def test_a_name_that_cannot_be_used_is_an_error(
    bucket: Any, moto: str, s3_keys: dict[str, str], shards: list[str], name: str
) -> None:
    for key in ("set/x", "set/y"):
        bucket.upload_file(shards[0], key)
    bucket.put_object(Key=f"set/{name}", Body=b"strange")
    storage = {"endpoint": moto, **s3_keys}
    try:
        with pytest.raises(OSError, match="Listing 's3://somebucket/set'"):
            tfr.Reader("s3://somebucket/set/**", storage=storage)
        urls = ["s3://somebucket/set/x", "s3://somebucket/set/y"]
        assert len(tfr.Reader(urls, storage=storage)) == 600
    finally:  # the fixture that empties the bucket cannot name this object
        bucket.Object(f"set/{name}").delete()
