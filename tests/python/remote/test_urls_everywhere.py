"""A URL works wherever a path works, or one error gives the reason."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from cli_files import run, write_examples
from range_server import RangeServer
from tfrfast.cli.subcommands import _COMMANDS
from tfrfast.cli.view.server import Server

pytest.importorskip("obstore", reason="needs obstore")

SET = "s3://somebucket/sets/one"
DATA = f"{SET}/train-*"


@pytest.fixture
def examples(bucket: Any, moto: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Two shards of ten Examples, in a bucket that the environment says how to reach."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing-secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    monkeypatch.chdir(tmp_path)
    shards = write_examples(tmp_path / "here")
    for shard in shards:
        bucket.upload_file(shard, f"sets/one/{Path(shard).name}")
    return shards


WORKING = {
    "index": ["index", "--publish", DATA],
    "info": ["info", DATA],
    "count": ["count", DATA],
    "verify": ["verify", DATA],
    "cat": ["cat", "--records", "12", DATA],
    "head": ["head", "-n", "3", DATA],
    "sample": ["sample", "-n", "3", DATA],
    "schema": ["schema", DATA],
    "stats": ["stats", DATA],
    "where": ["where", DATA, "--record", "12"],
    "view": ["view", "--no-open", DATA],
    "shuffle": ["shuffle", DATA, "--out", f"{SET}-mixed/train", "--num-shards", "2"],
    "diff": ["diff", DATA, f"{SET}/", "--key", "label"],
    "copy": ["copy", DATA, "--records", "numbers", "--out", f"{SET}-some/train"],
    "keys": ["keys", DATA, "--by", "label", "--folder", "keys"],
    "export": ["export", DATA, "--out", "out.parquet"],
    "doctor": ["doctor", DATA],
    "bench": ["bench", DATA, DATA, "--weights", "2,1", "--rounds", "1"],
}
#: Functions that take a URL only as one argument, and the error for the other argument.
REFUSED = {
    "delete": (["delete", DATA, "--finish"], "tfr.delete replaces files of this machine"),
    "import": (
        ["import", f"{SET}/x.parquet", "--out", "out"],
        "tfrfast import reads files of this machine",
    ),
    "folder of indexes": (
        ["index", DATA, "--index-folder", SET],
        "written to a folder of this machine",
    ),
    "folder of keys": (
        ["keys", DATA, "--by", "label", "--folder", SET],
        "written to a folder of this machine",
    ),
    "keys beside": (["keys", DATA, "--by", "label"], "--folder ..."),
    "exported": (
        ["export", DATA, "--out", f"{SET}/x.parquet"],
        "written to a folder of this machine",
    ),
    "work": (
        ["shuffle", DATA, "--out", f"{SET}-m/x", "--num-shards", "1", "--work", SET],
        "written to a folder of this machine",
    ),
    "server as output": (
        ["shuffle", DATA, "--out", "https://host/x", "--num-shards", "1"],
        "is read, and not written",
    ),
    "beside files": (
        ["bench", DATA, "here/train-0", "--weights", "1,1"],
        "tfrfast bench times either objects or files of this machine",
    ),
    "cache": (["cache", "--disk", SET], "a URL"),
}
#: These commands take no paths.
WITHOUT_PATHS = {"demo", "run"}


def test_every_command_is_here() -> None:
    assert {*WORKING, *REFUSED} >= set(_COMMANDS) - WITHOUT_PATHS


@pytest.mark.parametrize("name", WORKING)
def test_commands_read_urls(
    examples: list[str],
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def serve(server: Server) -> None:
        assert len(server.data.rows(0, 8, 5)["rows"]) == 5

    monkeypatch.setattr(Server, "serve_forever", serve)
    Path("numbers").write_text("3\n15\n")
    without = {"export": "pyarrow"}.get(name)
    if without and importlib.util.find_spec(without) is None:
        assert run(*WORKING[name]) == 2
        assert without in capsys.readouterr().err.lower()
        return
    assert run(*WORKING[name]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", REFUSED)
def test_commands_say_what_they_do_not_take(
    examples: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, why = REFUSED[name]
    before = sorted(Path().iterdir())
    assert run(*arguments) == 2
    said = capsys.readouterr().err
    assert why in said
    assert len(said.splitlines()) == 1
    assert {*Path().iterdir()} - {*before} <= {Path("texts")}


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "Reader": lambda: len(tfr.Reader(DATA)),
    "Loader": lambda: sum(len(batch) for batch in tfr.Loader(tfr.Reader(DATA), 7)),
    "Mixture": lambda: len(tfr.Mixture({"a": (DATA, 1)}).reader),
    "scan": lambda: len(tfr.scan(DATA)),
    "infer_features": lambda: 20 * bool(tfr.infer_features(tfr.Reader(DATA))),
    "build_index": lambda: sum(each.num_records for each in tfr.build_index(DATA)),
    "build_keys": lambda: 20 * bool(tfr.build_keys(DATA, "label", folder="keys")),
    "diff": lambda: tfr.diff(DATA, f"{SET}/", key="label").same,
    "copy": lambda: tfr.copy(DATA, range(20), f"{SET}-copy/x").num_records,
    "shuffle": lambda: tfr.shuffle(DATA, f"{SET}-mixed/x", num_shards=2).num_records,
    "verify": lambda: tfr.verify(DATA).num_records,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_read_urls(examples: list[str], name: str) -> None:
    assert FUNCTIONS[name]() == 20


REFUSING: dict[str, tuple[Callable[[], Any], str]] = {
    "export": (lambda: tfr.export(DATA, f"{SET}/x"), "written to a folder of this machine"),
    "DiskCache": (lambda: tfr.DiskCache(SET, "1G"), "Name a folder on a local disk"),
    "Reader(index=)": (
        lambda: tfr.Reader(DATA, index_folder=SET),
        "written to a folder of this machine",
    ),
    "Reader.by_key": (
        lambda: tfr.Reader(DATA).by_key("label", folder=SET),
        "written to a folder of this machine",
    ),
}


@pytest.mark.parametrize("name", REFUSING)
def test_functions_say_what_they_do_not_take(examples: list[str], name: str) -> None:
    call, why = REFUSING[name]
    with pytest.raises(ValueError, match=why):
        call()


def test_doctor_looks_at_buckets(
    server: RangeServer, examples: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for shard in examples:
        server.put(f"set/{Path(shard).name}", Path(shard).read_bytes())
    urls = [f"{server.url}/set/{Path(shard).name}" for shard in examples]
    server.delay_s = 0.03
    assert run("doctor", "--json", *urls, examples[0]) == 0
    found = json.loads(capsys.readouterr().out)
    here, there = found["data"]["places"]
    assert (here["shards"], here["request_ms"]) == (1, None)
    assert (there["mounted_at"], there["shards"]) == (server.url, 2)
    assert 30 <= there["request_ms"] < 60_000
    assert there["identity_lasts"]
    assert any("Each request to" in each for each in found["advice"])
    assert run("doctor", *urls) == 0
    assert "a request takes" in capsys.readouterr().out
