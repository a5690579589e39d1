"""The server of `tfrfast view`: who may ask, and what the answers hold."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from cli_files import damage, run_shown
from patience import PATIENCE_S
from record_files import write_rows
from step_files import write_episodes
from tfrfast.base.contents import contents_of
from tfrfast.cli import main
from tfrfast.cli.view import data_set
from tfrfast.cli.view.data_set import DataSet
from tfrfast.cli.view.server import Server
from tfrfast.columns.shown import png_of
from tfrfast.tfds_folder.kinds import kinds_of

GOLDEN = Path(__file__).parents[1] / "golden" / "tfds" / "little" / "1.0.0"
PNG = png_of(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
COUNT = 300
Ask = Callable[..., Any]


def record_of(number: int) -> dict[str, Any]:
    return {
        "picture": PNG,
        "number": [number, 2**53 + 1],
        "float": np.array([0.5, np.nan, np.inf], np.float32),
        "text": f"<b>{number}</b> ä",
        "page": b"<!doctype html><script>alert(1)</script>",
        "bytes": b"\xff\xfe%d" % number,
        "long": "aä" * 30_000,
        "inner": tfr.encode_example({"a": [1, 2]}),
        "": PNG,
    }


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("view") / "x"
    write_rows(path, map(record_of, range(COUNT)))
    tfr.build_keys([str(path)], "bytes")
    return str(path)


@contextlib.contextmanager
def served(*paths: str, steps: str | None = None, split: str | None = None) -> Iterator[Server]:
    data = DataSet(list(paths), steps=steps, split=split)
    with Server(data) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
            data.close()


def got(server: Server, target: str, **headers: str) -> tuple[int, Any, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    connection.request("GET", target, headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, answer.headers, content


def asker(server: Server) -> Ask:
    def ask(name: str, **facts: object) -> Any:
        _, _, content = got(server, f"/{server.token}/{name}?{urllib.parse.urlencode(facts)}")
        return json.loads(content, parse_constant=pytest.fail)

    return ask


@pytest.fixture(scope="module")
def server(shard: str) -> Iterator[Server]:
    with served(shard) as server:
        yield server


@pytest.fixture
def ask(server: Server) -> Ask:
    return asker(server)


def test_nobody_else_is_answered(server: Server, shard: str) -> None:
    token = server.token
    for target in ("/", "/set", f"/{token}x/set", f"/{token[:-1]}/set", "//set", f"/x/{token}/set"):
        assert got(server, target)[0] == 403
    for host in ("evil.example", f"evil.example:{server.server_port}", "127.0.0.1", "", "[::1]"):
        assert got(server, f"/{token}/set", Host=host)[0] == 403
    for name in ("../set", "%2e%2e/%2e%2e/etc/passwd", "page.html", urllib.parse.quote(shard, "")):
        assert got(server, f"/{token}/{name}")[0] == 404
    for method in ("POST", "PUT", "OPTIONS", "HEAD"):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
        connection.request(method, f"/{token}/set")
        assert connection.getresponse().status == 501
        connection.close()
    assert server.server_address[0] == "127.0.0.1"


def test_no_other_page_can_read_an_answer(server: Server) -> None:
    for name in ("", "set", "value?record=0&feature=picture", "no"):
        _, headers, _ = got(server, f"/{server.token}/{name}", Origin="http://evil.example")
        assert not [each for each in headers if each.lower().startswith("access-control")]
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
    _, headers, page = got(server, f"/{server.token}/")
    nonce = headers["Content-Security-Policy"].partition("script-src 'nonce-")[2].partition("'")[0]
    assert page.count(nonce.encode()) == 2
    assert b"http:" not in page.replace(b"http://www.w3.org/2000/svg", b"")
    assert b"https:" not in page
    assert b"innerHTML" not in page


@pytest.mark.parametrize(
    ("feature", "mime"),
    [
        ("picture", "image/png"),
        ("page", "application/octet-stream"),
        ("bytes", "application/octet-stream"),
        (None, "application/octet-stream"),
        ("", "image/png"),
    ],
)
def test_bytes_are_given_as_pictures_or_to_be_saved(
    server: Server, feature: str | None, mime: str
) -> None:
    target = f"/{server.token}/value?record=3" + ("" if feature is None else f"&feature={feature}")
    status, headers, content = got(server, target)
    assert (status, headers["Content-Type"]) == (200, mime)
    record = tfr.encode_example(record_of(3))
    assert content == (record if feature is None else record_of(3)[feature])
    assert ("attachment" in headers.get("Content-Disposition", "")) == (mime[0] == "a")
    for given, expected in (
        ("bytes=1-2", content[1:3]),
        ("bytes=1-", content[1:]),
        ("bytes=0-999999999", content),
        ("bytes=-2", content),
    ):
        status, headers, part = got(server, target, Range=given)
        assert part == expected
        assert status == (200 if given == "bytes=-2" else 206)
    assert got(server, target, Range="bytes=9999999-")[0] == 416


def test_rows_and_a_record(ask: Ask, shard: str) -> None:
    facts = ask("set")
    assert (facts["records"], facts["shards"], facts["damage"]) == (COUNT, 1, [])
    found = ask("rows", chosen=0, at=290, count=50)["rows"]
    assert [row["record"] for row in found] == list(range(290, COUNT))
    record = ask("record", record=7)
    assert record["place"]["path"] == shard
    assert record["place"]["offset"] == tfr.Reader(shard).locate(7).offset
    features = {each["name"]: each for each in record["features"]}
    assert features["number"]["values"] == [7, str(2**53 + 1)]
    assert features["float"]["values"] == [0.5, "nan", "inf"]
    assert features["text"]["values"][0]["text"] == "<b>7</b> ä"
    assert features["picture"]["values"][0]["is_picture"]
    long = features["long"]["values"][0]
    assert long["text"] == "aä" * (65536 // 3) + "a"
    assert long["is_cut"]
    assert features["picture"]["values"][0]["form"] == "PNG 4x4"
    (inner,) = features["inner"]["values"]
    assert inner["features"] == [{"name": "a", "type": "int64", "count": 2, "values": [1, 2]}]


def test_chosen_records(ask: Ask) -> None:
    def chosen(**facts: object) -> list[int]:
        choice = ask("choose", **facts)
        rows = ask("rows", chosen=choice["chosen"], at=0, count=64)["rows"]
        assert choice["records"] == len(rows)
        return [row["record"] for row in rows]

    sample = chosen(by="sample", count=20, seed=3)
    assert sample == chosen(by="sample", count=20, seed=3) == sorted(set(sample))
    plan = tfr.Plan(tfr.Shuffle(seed=5), 32, num_records=COUNT, rank=1, world=2)
    step = chosen(by="step", seed=5, size=32, epoch=2, step=1, rank=1, world=2)
    assert step == plan.indices(2, 1).tolist()
    assert chosen(by="key", feature="bytes", key="") == []
    for facts, said in (
        ({"by": "step", "step": "x"}, "whole number"),
        ({"by": "step", "step": 10**6}, "step"),
        ({"by": "key", "feature": "text", "key": "a"}, "build_keys"),
        ({"by": "no"}, "missing"),
    ):
        assert said in ask("choose", **facts)["error"]
    assert "no longer" in ask("rows", chosen=999, at=0, count=1)["error"]
    for number in (-1, COUNT):
        assert f"{COUNT}" in ask("record", record=number)["error"]
    assert ask("rows", chosen=0, at=0, count=-1)["rows"] == []
    assert chosen(by="sample", count=-5) == []


def test_statistics_are_counted_once(ask: Ask) -> None:
    while "features" not in (found := ask("statistics")):
        assert found["done"] <= COUNT
    assert found["records"] == COUNT
    features = {each["name"]: each for each in found["features"]}
    assert [*features] == sorted(record_of(0))
    assert features["number"]["max"] == str(2**53 + 1)


def test_statistics_of_many_features_are_the_first(
    shard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_set, "_SHOWN_STATISTICS", 2)
    with served(shard) as server:
        while "features" not in (found := asker(server)("statistics")):
            pass
    assert [each["name"] for each in found["features"]] == sorted(record_of(0))[:2]
    assert found["left_out"] == len(record_of(0)) - 2


def test_damage_is_shown_at_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    with tfr.Writer(path, index=False) as writer:
        for number in range(20):
            writer.write_example({"n": number, "room": b"-" * 100})
    damage(str(path), 11, byte=40)  # its payload, which a read finds
    damage(str(path), 4, byte=0)  # its length, so no later record is where it was
    with served(str(path)) as server:
        ask = asker(server)
        rows = ask("rows", chosen=0, at=0, count=64)["rows"]
        found = ask("set")
        again = ask("rows", chosen=0, at=0, count=64, num_damaged=found["num_damaged"])
        assert "damage" not in again
        assert ask("rows", chosen=0, at=0, count=64)["damage"] == found["damage"]
        monkeypatch.setattr(data_set, "_SHOWN_DAMAGE", 1)
        few = ask("set")
        assert (few["num_damaged"], few["damage"]) == (2, found["damage"][:1])
    values = [row["features"][0]["values"][0] for row in rows if "features" in row]
    (lost,) = [at for at, row in enumerate(rows) if "damaged" in row]
    assert values == [n for n in range(20) if n not in (4, 11)]
    assert str(path) in rows[lost]["damaged"]
    assert lost in [each["at"] for each in found["damage"]]
    assert 4 in [each["at"] for each in found["damage"]]


def test_records_of_other_kinds(tmp_path: Path) -> None:
    def framed(field: int, content: bytes) -> bytes:
        return bytes([field << 3 | 2, len(content)]) + content

    feature = framed(3, framed(1, bytes([5, 6])))
    entry = framed(1, framed(1, b"x") + framed(2, framed(1, feature) + framed(1, feature)))
    path = tmp_path / "x"
    with tfr.Writer(path) as writer:
        for record in (
            framed(2, entry),
            b"plain text",
            b"\xff\xfe",
            b"",
            tfr.encode_example({"a": 1}),
        ):
            writer.write(record)
    with served(str(path)) as server:
        ask = asker(server)
        sequence, text, other, empty, example = ask("rows", chosen=0, at=0, count=9)["rows"]
    assert [(each["name"], each["values"]) for each in sequence["features"]] == [
        ("x[0]", [5, 6]),
        ("x[1]", [5, 6]),
    ]
    assert text["raw"]["text"] == "plain text"
    assert other["raw"]["hex"] == "ff fe"
    assert empty["features"] == []
    assert example["features"][0]["values"] == [1]


def test_strings_of_a_sequence_example(tmp_path: Path) -> None:
    def framed(*fields: tuple[int, bytes]) -> bytes:
        return b"".join(bytes([number << 3 | 2, len(each)]) + each for number, each in fields)

    def entry(name: bytes, content: bytes) -> bytes:
        return framed((1, framed((1, name), (2, content))))

    gif = b"GIF89a\1\0\1\0"
    picture, other, text = (framed((1, framed((1, each)))) for each in (gif, b"\xff\xfe", b"text"))
    steps = framed((1, other), (1, picture))
    path = tmp_path / "x"
    with tfr.Writer(path) as writer:
        writer.write(framed((1, entry(b"id", text)), (2, entry(b"frames", steps))))
    with served(str(path)) as server:
        features = asker(server)("record", record=0)["features"]
        assert [each["name"] for each in features] == ["id", "frames[0]", "frames[1]"]
        target = f"/{server.token}/value?record=0&feature="
        found = [got(server, target + each["name"])[2] for each in features]
        assert found == [b"text", b"\xff\xfe", gif]
        for forged in ("frames[2]", "frames[0]&at=1", "frames[0]&at=-1"):
            status, _, error = got(server, target + forged)
            assert status == 400
            assert b"that the page shows, and no value" in error


def test_large_and_odd_records_take_little_time(tmp_path: Path) -> None:
    nested = b""
    for _ in range(1000):
        nested = tfr.encode_example({"a": nested})
    odd = {
        "many names": [tfr.encode_example({f"{n}/{i}": i for i in range(300)}) for n in range(64)],
        "many fields": [tfr.encode_example({"a": b"\x18\1" * (2 << 20)})] * 6,
        "many strings": [tfr.encode_example({"a": [b"a" * (1 << 14)] * 2048})],
        "many features": [tfr.encode_example({f"{n}": [b"\n"] * 9 for n in range(10_000)})],
        "a long name": [tfr.encode_example({"a" * (1 << 24): 1})],
        "examples in examples": [nested],
    }
    for name, records in odd.items():
        with tfr.Writer(tmp_path / name) as writer:
            for record in records:
                writer.write(record)
        begin = time.process_time()
        with served(str(tmp_path / name)) as server:
            content = asker(server)("rows", chosen=0, at=0, count=64)
            whole = asker(server)("record", record=0)
        assert len(content["rows"]) == len(records)
        assert time.process_time() - begin < 60
        assert max(len(json.dumps(content)), len(json.dumps(whole))) < 8 << 20
        if name == "many strings":
            assert len(whole["features"][0]["values"]) == 2048
            assert whole["features"][0]["values"][0]["is_cut"]
        if name == "many features":
            assert len(whole["features"]) + whole["left_out"] == 10_000


def test_episodes(tmp_path: Path) -> None:
    with served(write_episodes(tmp_path / "x"), steps="steps/") as server:
        ask = asker(server)
        found = ask("set")
        assert found["steps"] == 100
        assert set(found["along"]) == {"steps/a", "steps/image", "steps/n"}
        assert ask("record", record=0)["steps"] == 30
    damage(str(tmp_path / "x"), 0, byte=60)
    with served(str(tmp_path / "x"), steps="steps/") as server:
        ask = asker(server)
        found = ask("set")
        assert (found["steps"], found["without_steps"]) == (70, "")
        rows = ask("rows", chosen=0, at=0, count=9)["rows"]
        assert ["damaged" in row for row in rows] == [True, False, False, False]


def tfds_of(split: str) -> Any:
    return tfr.tfds(str(GOLDEN), split)


def test_hostile_descriptions(tmp_path: Path) -> None:
    described: dict[str, Any] = {"featuresDict": {"features": {}}}
    features = described["featuresDict"]["features"]
    features["a"] = {"classLabel": {"numClasses": float("inf")}}
    assert kinds_of(str(tmp_path), described) == {}
    features["a"] = {"image": {"shape": {"dimensions": [float("inf")]}}}
    assert kinds_of(str(tmp_path), described) == {}
    with pytest.raises(ValueError, match="--split"):
        DataSet([write_episodes(tmp_path / "x")], steps=None, split="train")


def test_names_of_labels_end_with_their_lines(tmp_path: Path) -> None:
    described = {"featuresDict": {"features": {"a": {"classLabel": {"numClasses": 3}}}}}
    text = "one\u2028half\r\n\n two\x0c2\nthree\n"
    (tmp_path / "a.labels.txt").write_bytes(text.encode())
    names = kinds_of(str(tmp_path), described)["a"].labels
    assert names == ["one\u2028half", "two\x0c2", "three"]


def test_a_folder_of_tfds_says_what_its_features_are(tmp_path: Path) -> None:
    folder = shutil.copytree(GOLDEN, tmp_path / "1.0.0")  # a step file is made beside it
    with served(str(folder), split="train[1:3]") as server:
        ask = asker(server)
        found = ask("set")
        expected = tfds_of("train[1:3]").indices.tolist()
        rows = ask("rows", chosen=0, at=0, count=64)["rows"]
        assert [row["record"] for row in rows] == expected
        assert (found["records"], found["is_split"]) == (2, True)
        for facts in ({"by": "sample", "count": 9}, {"by": "step", "size": 9}):
            choice = ask("choose", **facts)
            rows = ask("rows", chosen=choice["chosen"], at=0, count=64)["rows"]
            assert sorted(row["record"] for row in rows) == expected
        while "features" not in (counted := ask("statistics")):
            pass
        assert counted["records"] == 2
    described = json.loads((GOLDEN / "features.json").read_text())
    assert found["kinds"] == {
        name: each._asdict() for name, each in kinds_of(str(GOLDEN), described).items()
    }
    assert found["kinds"]["label"]["labels"] == (GOLDEN / "label.labels.txt").read_text().split()
    assert "classes" in found["kinds"]["label"]["text"]


def test_the_command_says_where_and_ends_with_ctrl_c(
    shard: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # A shell lets processes in the background ignore Ctrl-C.
    code = "signal.signal(signal.SIGINT, signal.default_int_handler); raise SystemExit(cli.main())"
    code = f"import signal; from tfrfast import cli; {code}"
    command = [sys.executable, "-c", code, "view", "--no-open", shard]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = urllib.parse.urlsplit(process.stdout.readline().strip())
            connection = http.client.HTTPConnection(address.netloc)
            connection.request("GET", f"{address.path}set")
            assert json.load(connection.getresponse())["records"] == COUNT
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, _, error = run_shown(capsys, "view", "--no-open", "--port", port, shard)
    assert status == 2
    assert f"Port {port}" in error
    assert "--port" in error


def test_a_browser_is_given_the_token_by_a_file(
    shard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url))

    def serve(server: Server) -> None:
        while not opened:
            time.sleep(0.01)
        path = Path(urllib.parse.urlsplit(opened[0]).path)
        assert server.token not in opened[0]
        assert server.address in path.read_text()
        assert path.stat().st_mode & 0o77 == 0

    monkeypatch.setattr(Server, "serve_forever", serve)
    assert main(["view", shard]) == 0
    assert not Path(urllib.parse.urlsplit(opened[0]).path).exists()


def wave(rate: int) -> bytes:
    form = struct.pack("<HHIIHH", 1, 1, rate, rate * 2, 2, 16)
    return b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", 16) + form + bytes(rate)


@pytest.mark.parametrize(
    ("value", "kind", "form"),
    [
        (PNG, "picture", "PNG 4x4"),
        (b"\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x0b\x08\0\x20\0\x30\1", "picture", "JPEG 48x32"),
        (b"\xff\xd8\xff", "picture", "JPEG"),
        (b"\0\0\0\x1cftypavif", "picture", "AVIF"),
        (b"\0\0\0\x1cftypisom", "video", "MP4"),
        (b"abcdftypxx", "text", ""),
        (b"ID3\4abc", "sound", "MP3"),
        (b"ID3 tags", "text", ""),
        ("a\xa0b\u3000日本\u2028\ufeff👩\u200d🚀".encode(), "text", ""),
        (b"\x18\1" * 1000 + b"\xff", "bytes", ""),
        (b"GIF89a\x05\0\x07\0", "picture", "GIF 5x7"),
        (b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x0f\0\0\x1f\0\0", "picture", "WebP 16x32"),
        (wave(8000), "sound", "WAV 8,000 Hz, mono, 0.5 s"),
        (
            b"\x08\1\x12\x08\x12\2\x08\2\x12\2\x08\3\x22\x18" + bytes(24),
            "tensor",
            "tensor float32 [2, 3]",
        ),
        (b"\x08\1\x12\x08\x12\2\x08\2\x12\2\x08\3\x22\x04" + bytes(4), "bytes", ""),
        (b"\x1f\x8b\x08\0", "compressed", "GZIP"),
        ("ein Täxt\n".encode() * 999, "text", ""),
        (b"", "text", ""),
        (b"\xffabc", "bytes", ""),
        (b"a\0b", "bytes", ""),
    ],
)
def test_what_bytes_hold(value: bytes, kind: str, form: str) -> None:
    found = contents_of(value)
    assert (found.kind, found.form) == (kind, form)
    for cut in range(0, len(value), 1 + len(value) // 50):
        contents_of(value[:cut])
