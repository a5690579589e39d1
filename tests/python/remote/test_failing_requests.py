"""Failed requests are repeated within a limit. Then there is one error, without secrets."""

from __future__ import annotations

import contextlib
import errno
import io
import pickle
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrfast as tfr
from patience import PATIENCE_S, at_least_once
from range_server import OLD, RangeServer, Seen, Trouble, fails_at_first
from record_files import write_shard
from tfrfast.storage.remote import failures, silence
from tfrfast.storage.remote.options import Storage

pytest.importorskip("obstore", reason="needs obstore")

QUICK = {"retries": 3}


@pytest.mark.parametrize(
    "how",
    [
        {"status": 500},
        {"status": 503},
        {"status": 429},
        {"reset": True},
        {"short_by": 1},
        {"short_by": 7, "says_less": True},
    ],
    ids=str,
)
def test_what_passes_is_tried_again(
    server: RangeServer, urls: list[str], shards: list[str], how: dict[str, object]
) -> None:
    server.trouble = fails_at_first(2, **how)
    assert list(tfr.Reader(urls, storage=QUICK)) == list(tfr.Reader(shards))


def test_a_server_that_is_silent_is_asked_again(
    server: RangeServer, urls: list[str], shards: list[str]
) -> None:
    # A busy machine may answer late, but not twenty times.
    reader = tfr.Reader(urls, storage={"timeout": 0.5, "retries": 20})
    server.trouble = fails_at_first(1, silent=True)
    assert reader[17] == tfr.Reader(shards)[17]


def test_a_server_that_stays_silent_is_given_up(server: RangeServer, urls: list[str]) -> None:
    readers: list[tfr.Reader] = []
    storage = {"timeout": 0.5, "retries": 2}
    at_least_once(lambda: readers.append(tfr.Reader(urls, storage=storage)))
    server.trouble = lambda *_: Trouble(silent=True)
    with pytest.raises(TimeoutError, match="3 times"):
        readers[0][500]


def test_what_a_server_says_is_printable(server: RangeServer) -> None:
    body = "<Error><Code>\x1b[2J</Code><Message>\u202e\x9bm</Message></Error>"
    server.put("set/x", bytes(1000))
    server.trouble = lambda seen, _: Trouble(400, body) if seen.method == "GET" else None
    with pytest.raises(OSError, match=r"\\x1b\[2J") as caught:
        tfr.Reader(f"{server.url}/set/x", storage=QUICK)
    assert caught.value.strerror.isprintable()


def test_an_error_says_what_was_tried(server: RangeServer, urls: list[str]) -> None:
    reader = tfr.Reader(urls, storage=QUICK)
    server.trouble = lambda seen, _: Trouble(503, "<Error><Code>SlowDown</Code></Error>")
    with pytest.raises(OSError, match="failed") as caught:
        reader.read([310])
    text = str(caught.value)
    frame = reader.locate(310)
    assert caught.value.errno == errno.EIO
    assert caught.value.filename == urls[2]
    assert "record 10 of" in text
    assert urls[2] in text
    assert f"bytes {frame.offset} to {frame.offset + frame.length + 15}" in text
    assert "tried 4 times" in text
    assert "SlowDown" in text
    # The reader still works.
    server.trouble = lambda *_: None
    assert len(reader.read([310])) == 1


def test_the_record_that_could_not_be_read_is_the_one_that_is_named(
    server: RangeServer, urls: list[str], shards: list[str], tmp_path: Path
) -> None:
    records = [bytes([number]) * (90_000 if number % 2 else 100) for number in range(40)]
    server.put("set/apart", Path(write_shard(tmp_path / "apart", records)).read_bytes())
    reader = tfr.Reader([*urls, f"{server.url}/set/apart"], storage={"retries": 0})
    bad = reader.locate(820)
    server.trouble = lambda seen, _: Trouble(500) if seen.begin == bad.offset else None
    with pytest.raises(OSError, match=r"record 20 of .*\(record 820 of all\)"):
        reader.read([810, 804, 305, 820, 802, 830])
    with pytest.raises(OSError, match=r"record 20 of .*\(record 820 of all\)"):
        reader[820]
    # Earlier records of the same batch are intact.
    batches = iter(tfr.Loader(reader, 6, order=tfr.InOrder(indices=[810, 804, 305, 820, 802, 830])))
    with pytest.raises(OSError, match="record 820 of all"):
        next(batches)
    server.trouble = lambda *_: None
    assert [each[:1] for each in next(batches)][3:] == [bytes([20]), bytes([2]), bytes([30])]


def test_a_missing_object_is_a_missing_file(server: RangeServer, urls: list[str]) -> None:
    with pytest.raises(FileNotFoundError, match="There is no object") as caught:
        tfr.Reader([*urls, f"{server.url}/set/none"])
    assert caught.value.filename == f"{server.url}/set/none"
    assert len([each for each in server.seen if each.path == "set/none"]) == 1


@pytest.mark.parametrize("status", [403, 405, 501])
def test_a_server_that_answers_get_alone(
    server: RangeServer, urls: list[str], shards: list[str], status: int
) -> None:
    server.trouble = lambda seen, _: Trouble(status) if seen.method == "HEAD" else None
    assert list(tfr.Reader(urls)) == list(tfr.Reader(shards))
    server.trouble = lambda *_: Trouble(405)
    with pytest.raises(OSError, match="405"):
        tfr.Reader(urls[0].replace("data-000", "another"), storage={"retries": 0})


def test_answers_that_do_not_say_how_long_they_are(
    server: RangeServer, urls: list[str], shards: list[str]
) -> None:
    """Content-Range may state the size."""
    server.trouble = lambda seen, _: Trouble(unsized=seen.method == "HEAD")
    assert list(tfr.Reader(urls[2])) == list(tfr.Reader(shards[2]))
    server.put("set/another", Path(shards[0]).read_bytes())
    server.forget()
    server.trouble = lambda *_: Trouble(unsized=True)
    with pytest.raises(OSError, match="does not state the size .*Content-Encoding"):
        tfr.Reader(f"{server.url}/set/another")
    assert len(server.seen) <= 2


def test_redirects_without_end_are_followed_once(server: RangeServer) -> None:
    url = f"{server.url}/set/x"
    server.trouble = lambda *_: Trouble(302, location=url)
    with pytest.raises(OSError, match="tried once; .* redirects without end"):
        tfr.Reader(url)


def test_a_server_that_is_not_there(server: RangeServer) -> None:
    with refusing() as place:
        began = time.monotonic()
        with pytest.raises(OSError, match="tried 3 times .*: Connection refused"):
            tfr.Reader(f"{place}/set/x", storage={"retries": 2, "timeout": PATIENCE_S})
        assert time.monotonic() - began < PATIENCE_S
    with pytest.raises(OSError, match="failed to lookup address information"):
        tfr.Reader("http://no-such-host.invalid/x", storage={"retries": 0})
    with pytest.raises(OSError, match="the server does not speak TLS"):
        tfr.Reader(f"https{server.url.removeprefix('http')}/x", storage={"retries": 0})


def test_a_certificate_that_is_not_valid() -> None:
    error = Exception(
        "Generic S3 error: HTTP error: error sending request\n\nDebug source:\n"
        "source: reqwest::Error { source: Custom {\n kind: InvalidData,\n"
        " error: InvalidCertificate(\n        UnknownIssuer,\n ) } }"
    )
    assert failures.in_words(error, ()).endswith("certificate is not valid: UnknownIssuer")


@contextlib.contextmanager
def refusing() -> Iterator[str]:
    """The place of a server that no program is, nor becomes meanwhile."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # listens to nobody
        yield f"http://127.0.0.1:{unused.getsockname()[1]}"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("how", ["dead", "silent", "alive"])
def test_a_terminal_is_told_after_two_seconds_that_nothing_answers(
    server: RangeServer, urls: list[str], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "silent":
        server.trouble = lambda seen, number: Trouble(silent=True)
    storage = {"timeout": 4, "retries": 7, "retry_seconds": 4}

    def check(url: str, place: str) -> None:
        monkeypatch.setattr(sys, "stderr", terminal := Terminal())
        monkeypatch.setattr(silence, "_known", set())
        began = time.monotonic()
        for _ in range(2):
            with contextlib.suppress(OSError):
                tfr.Reader([url], storage=storage)
        said = " ".join(terminal.getvalue().split())
        if how == "alive":
            assert said == ""
            return
        cause = ": Connection refused" if how == "dead" else ""
        assert said == (
            f"tfrfast: {place} has not answered for 2 s{cause}. It is tried for up to 4 s; Ctrl-C "
            "ends that."
        )
        assert all(len(line) <= 80 for line in terminal.getvalue().splitlines())
        assert time.monotonic() - began < 40

    with refusing() as dead:
        url, place = (f"{dead}/a", dead) if how == "dead" else (urls[0], server.url)
        at_least_once(lambda: check(url, place))  # a busy machine may take seconds for anything


def test_what_is_refused_is_not_asked_for_often(server: RangeServer, urls: list[str]) -> None:
    reader = tfr.Reader(urls)
    server.forget()
    server.trouble = lambda *_: Trouble(403)
    with pytest.raises(PermissionError, match="Check the credentials"):
        reader[0]
    assert len(server.seen) == 3  # credentials that have expired are read again


def test_a_bucket_in_another_region(server: RangeServer) -> None:
    """The storage names the region only in a header."""
    server.trouble = lambda *_: Trouble(301)
    storage = {"endpoint": server.url, "region": "us-east-1", "anonymous": True}
    for url in ("s3://bucket/set/x", "s3://bucket/set/*"):
        server.forget()
        with pytest.raises(OSError, match="in another region. Set AWS_REGION to"):
            tfr.Reader(url, storage=storage)
        assert len(server.seen) == 1


def test_nobody_has_credentials(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without credentials, the machine's account is requested. Few machines have an account."""
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", server.url)
    server.trouble = lambda *_: Trouble(reset=True)
    storage = {"endpoint": server.url, "region": "us-east-1"}
    with pytest.raises(PermissionError, match="no credentials were found") as caught:
        tfr.Reader("s3://bucket/set/x", storage=storage)
    assert "Check the credentials" in str(caught.value)
    assert len(server.seen) <= 6  # not until the last of the usual attempts


def test_credentials_that_expire_are_read_again(
    server: RangeServer, shards: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "credentials"

    def write_keys(name: str) -> None:
        keys.write_text(
            f"[default]\naws_access_key_id={name}\naws_secret_access_key=secret{name}\n"
        )

    write_keys("FIRSTKEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(keys))
    server.put("bucket/set/x", Path(shards[0]).read_bytes())
    valid = "FIRSTKEY"

    def trouble(seen: Seen, _: int) -> Trouble | None:
        if valid in seen.headers.get("authorization", ""):
            return None
        return Trouble(400, "<Error><Code>ExpiredToken</Code><Message>expired</Message></Error>")

    server.trouble = trouble
    reader = tfr.Reader(
        "s3://bucket/set/x", storage={"endpoint": server.url, "region": "us-east-1"}
    )
    here = tfr.Reader(shards[0])
    assert reader[3] == here[3]
    valid = "OTHERKEY"
    write_keys("OTHERKEY")
    assert reader[4] == here[4]
    valid = "NOKEY"
    with pytest.raises(PermissionError, match="ExpiredToken") as caught:
        reader[5]
    assert "OTHERKEY" not in str(caught.value)


def test_other_secrets_and_another_environment_count_at_once(
    server: RangeServer, shards: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some servers answer 404 to users without permission."""
    server.put("set/x", Path(shards[0]).read_bytes())
    server.trouble = lambda seen, _: (
        None if seen.headers.get("authorization") == "Bearer right" else Trouble(404)
    )
    for storage in (None, {"token": "wrong"}):
        with pytest.raises(FileNotFoundError):
            tfr.Reader(f"{server.url}/set/x", storage=storage)
    assert len(tfr.Reader(f"{server.url}/set/x", storage={"token": "right"})) == 300

    server.put("bucket/set/x", Path(shards[0]).read_bytes())
    server.trouble = lambda seen, _: Trouble(404) if "authorization" in seen.headers else None
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "nobody")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with pytest.raises(FileNotFoundError):
        tfr.Reader("s3://bucket/set/x")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    assert len(tfr.Reader("s3://bucket/set/x")) == 300


@pytest.mark.parametrize("honours", [True, False])
def test_an_object_that_is_replaced_is_never_read(
    server: RangeServer, urls: list[str], shards: list[str], honours: bool
) -> None:
    server.honours_conditions = honours
    reader = tfr.Reader(urls)
    before = reader[310]
    server.put("set/data-002", bytes(reversed(server.objects["set/data-002"].data)), OLD + 5)
    for read in (lambda: reader[310], lambda: reader.read([310, 320]), lambda: list(reader)):
        with pytest.raises(tfr.StaleIndexError, match="was replaced by another object") as caught:
            read()
        assert caught.value.path == urls[2]
    server.put("set/data-002", server.objects["set/data-002"].data[:100], OLD + 9)
    with pytest.raises(tfr.StaleIndexError):
        reader[790]
    server.put("set/data-002", Path(shards[2]).read_bytes(), OLD)
    assert reader[310] == before


def test_secrets_appear_nowhere(server: RangeServer, shards: list[str]) -> None:
    secret = "VERY-SECRET-VALUE"
    server.put("bucket/set/x", Path(shards[0]).read_bytes())
    storage = {
        "endpoint": server.url,
        "region": "us-east-1",
        "access_key_id": "KEY-" + secret,
        "secret_access_key": secret,
        "session_token": "TOKEN-" + secret,
        "retries": 0,
    }
    reader = tfr.Reader("s3://bucket/set/x", storage=storage)
    loader = tfr.Loader(reader, 10)
    server.trouble = lambda seen, _: Trouble(
        403, f"<Error><Code>No</Code><Message>{seen.headers['authorization']}</Message></Error>"
    )
    with pytest.raises(PermissionError) as caught:
        reader[0]
    assert "***" in str(caught.value)
    texts = [
        str(caught.value),
        repr(reader),
        repr(loader),
        repr(reader._options),
        repr(loader.state_dict()),
        repr(pickle.dumps(reader)),
        repr(reader._described()),
        repr(tfr.build_index),
        *(
            Path(index).read_bytes().decode("latin-1")
            for index in [reader.shards[0].index]
            if index
        ),
    ]
    assert not [text for text in texts if secret in text]


@pytest.mark.parametrize(
    "url",
    ["https://user:VERYSECRET@host/x", "https://host/x?sig=VERYSECRET", "s3://VERYSECRET@b/x"],
)
def test_urls_with_secrets_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="storage=") as caught:
        tfr.Reader(url)
    assert "VERYSECRET" not in str(caught.value)


def test_a_password_in_an_endpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://user:VERYSECRET@127.0.0.1:9")
    with pytest.raises(OSError, match=r"http://\*\*\*@127.0.0.1:9/bucket") as caught:
        tfr.Reader("s3://bucket/set/x", storage={"retries": 0, "anonymous": True})
    assert "VERYSECRET" not in str(caught.value)
    cache = tfr.DiskCache(tmp_path, "10M")
    places = [Storage({}, cache).encoded]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://other:VERYSECRET@127.0.0.1:9")
    places.append(Storage({}, cache).encoded)
    assert places[0] != places[1]
    assert not [place for place in places if b"VERYSECRET" in place]
    for endpoint in ("http://user:VERYSECRET@host", "http://host/?sig=VERYSECRET"):
        with pytest.raises(ValueError, match="holds no secrets") as refused:
            tfr.Reader("s3://bucket/set/x", storage={"endpoint": endpoint})
        assert "VERYSECRET" not in str(refused.value)


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ({"regoin": "x"}, "storage has no option 'regoin'"),
        ({"timeout": 0}, "must be above 0"),
        ({"retries": float("inf")}, "must be above 0, up to 1,000,000,000, not inf"),
        ({"retry_seconds": float("nan")}, "must be above 0, up to .*, not nan"),
        ({"retries": "3"}, "is a number"),
        ({"anonymous": 1}, "True or False"),
        ({"region": "eu"}, "says nothing about"),
        ({"token": "VERYSECRET\n"}, "take .strip"),
        ({"access_key_id": "VERYSECRET\r\n"}, "take .strip"),
    ],
)
def test_options_that_mean_nothing(
    urls: list[str], storage: dict[str, object], message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=message) as refused:
        tfr.Reader(urls, storage=storage)
    assert "VERYSECRET" not in str(refused.value)
