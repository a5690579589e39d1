"""The command line, as a user or a script meets it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from cli_files import damage, run, write_examples
from record_files import flip_payload_byte
from tfrfast.cli.ray import joined_addresses
from tfrfast.columns.shown import png_of


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    return write_examples(tmp_path / "data")


def test_index_builds_beside_the_data_and_keeps_what_fits(
    shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("index", *shards) == 0
    assert "2 shards, 20 records; 2 indexes built, 0 kept" in capsys.readouterr().out
    folder = Path(shards[0]).parent.with_name("data.tfrfast")
    assert sorted(each.name for each in folder.iterdir()) == ["index"]
    assert run("index", "--json", *shards) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [(each["was_built"], each["num_records"]) for each in facts] == [(False, 10)] * 2
    assert run("index", "--force", *shards) == 0
    assert "2 indexes built" in capsys.readouterr().out


def test_info_counts_and_draws(shards: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("info", *shards) == 0
    out = capsys.readouterr().out
    assert "records      20" in out
    assert "#" in out
    assert run("info", "--json", *shards) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["records"] == 20
    assert sum(bucket["records"] for bucket in facts["histogram"]) == 20
    assert [shard["path"] for shard in facts["shards"]] == shards


def test_info_of_an_empty_shard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").touch()
    assert run("info", str(tmp_path / "empty")) == 0
    assert "records      0" in capsys.readouterr().out


def test_verify_lists_payloads_headers_and_tails(
    shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    place = damage(shards[0], 3)
    data = Path(shards[1]).read_bytes()
    Path(shards[1]).write_bytes(data[:-5])
    assert run("verify", *shards) == 1
    out = capsys.readouterr().out
    assert "18 good records, 2 damaged places" in out
    assert run("verify", "--json", *shards) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["good_records"] == 18
    assert [(each["path"], each["begin"], each["records"]) for each in facts["damage"]] == [
        (shards[0], place.offset, 1),
        (shards[1], len(data) - place.length - 16, 1),
    ]


def test_cat_shows_examples_by_feature(
    shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("cat", "--records", "-1", *shards) == 0
    out = capsys.readouterr().out
    assert "record 19:" in out
    assert "label: 19" in out
    assert "weights: 0.5, 0.5, 0.5" in out
    assert "name: b'number 9'" in out


def test_cat_json_is_one_object_a_line(
    shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("cat", "--json", "--records", "8:12", *shards) == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["record"] for each in objects] == [8, 9, 10, 11]
    assert objects[2]["features"] == {
        "label": [10],
        "name": ["number 0"],
        "raw": [{"hex": "ff00"}],
        "weights": [0.5, 0.5, 0.5],
    }


def test_cat_shows_other_records_as_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tfr.Writer(tmp_path / "other") as writer:
        writer.write(b"\xff" * 100)
        writer.write(b"")
    assert run("cat", str(tmp_path / "other")) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("record 0: 100 bytes  b'\\xff")
    assert out[1].startswith("record 1: 0 bytes")
    assert run("cat", "--json", str(tmp_path / "other")) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["hex"] == "ff" * 100


def test_schema_is_a_table_and_python(
    shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("schema", *shards) == 0
    out = capsys.readouterr().out
    source = out[out.index("features = {") :]
    names: dict[str, object] = {}
    exec(source, {"tfr": tfr}, names)
    with tfr.Reader(shards) as reader:
        batch = tfr.parse_example(reader[:], names["features"])  # type: ignore[arg-type]
    assert batch["label"].tolist() == list(range(20))
    assert batch["weights"].shape == (20, 3)
    assert run("schema", "--json", *shards) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["features"]["weights"] == {"kind": "fixed", "dtype": "float32", "shape": [3]}


def test_pictures_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x"
    with tfr.Writer(path) as writer:
        for side in (2, 3):
            picture = png_of(np.zeros((2, side, 3), np.uint8))
            writer.write_example({"p": picture, "many": [picture] * side, "text": b"words"})
    assert run("schema", str(path)) == 0
    out = capsys.readouterr().out
    assert """    'p': tfr.Image(),  # PNG; as it is stored: tfr.FixedLen((), "bytes")""" in out
    assert """    'many': tfr.VarLen("bytes"),  # PNG""" in out
    assert """    'text': tfr.FixedLen((), "bytes"),\n""" in out
    assert run("schema", "--json", str(path)) == 0
    assert json.loads(capsys.readouterr().out)["features"]["p"]["holds"] == "PNG"
    assert run("cat", "-n1", str(path)) == 0
    assert "  p: PNG 2x2, " in capsys.readouterr().out


def test_cache_lists_and_prunes(
    shards: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(tmp_path / "cache"))
    assert run("cache") == 0
    assert "0 files" in capsys.readouterr().out
    tfr.Reader(shards).close()
    assert run("cache", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["files"]) == 1
    assert facts["folder"] == str(tmp_path / "cache" / "index")
    assert run("cache", "--prune", "1G") == 0
    assert "0 files removed" in capsys.readouterr().out
    assert run("cache", "--prune") == 0
    assert "1 file removed" in capsys.readouterr().out
    tfr.Reader(shards).close()


def test_cache_lists_an_index_for_each_data_folder(
    shards: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for shard in shards:
        tfr.Reader(shard).close()
    (tmp_path / "namesake").mkdir()
    namesake = write_examples(tmp_path / "namesake" / Path(shards[0]).parent.name)
    tfr.Reader(namesake).close()
    assert run("cache") == 0
    lines = [line.split()[2:] for line in capsys.readouterr().out.splitlines()[2:]]
    name = Path(shards[0]).parent.name
    assert [(line[0], re.sub("^[0-9a-f]{16}-", "", line[-1])) for line in lines] == 2 * [
        ("1", name)
    ]
    assert run("cache", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {Path(each["path"]).name for each in found["files"]} == {"index"}
    assert len({each["folder"] for each in found["folders"]}) == 2
    assert run("cache", "--files") == 0
    assert capsys.readouterr().out.count("/index\n") == 2


def test_cache_without_a_home(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrfast._native.index_cache_folder", lambda: "")
    assert run("cache") == 0
    assert capsys.readouterr().out.startswith("There is no cache: you have no home folder.")


def test_what_cannot_be_done_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("info", str(tmp_path / "nothing-*")) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tfrfast: No shard matches the pattern")
    assert captured.err.count("\n") == 1
    assert run("info", str(tmp_path / "missing")) == 2
    assert str(tmp_path / "missing") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nonsense"], "usage: tfrfast [-h]"),
        (["nonsense"], "There is no command 'nonsense'. `tfrfast` lists all."),
        (["verfy", "a"], "There is no command 'verfy'. Did you mean verify?"),
        (["cat", "--records", "x", "a"], "usage: tfrfast cat"),
        (["cat", "--nonsense", "a"], "usage: tfrfast cat"),
        (["cat", "--records", "9" * 20, "a"], "no data set has 99999999999999999999 records"),
    ],
)
def test_bad_usage_is_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ending:
        run(*arguments)
    assert ending.value.code == 2
    assert said in capsys.readouterr().err


def test_a_reader_of_its_output_that_goes_early_is_no_error(shards: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tfrfast", "cat", "--json", "--records", ":", *shards * 500],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert json.loads(command.stdout.readline())["record"] == 0
        command.stdout.close()
        assert command.stderr.read() == ""


@pytest.mark.parametrize(
    ("given", "joined"),
    [
        (["verify", "--ray", "data/a"], ["verify", "--ray=", "data/a"]),
        (["verify", "--ray", "auto", "a"], ["verify", "--ray=auto", "a"]),
        (["verify", "--ray", "local", "a"], ["verify", "--ray=local", "a"]),
        (["verify", "a", "--ray", "10.0.0.1:6379"], ["verify", "a", "--ray=10.0.0.1:6379"]),
        (["verify", "--ray", "ray://head:10001", "a"], ["verify", "--ray=ray://head:10001", "a"]),
        (["verify", "--ray", "s3://bucket/a:1", "b"], ["verify", "--ray=", "s3://bucket/a:1", "b"]),
        (["verify", "--ray", "--json", "a"], ["verify", "--ray=", "--json", "a"]),
        (["verify", "a", "--ray"], ["verify", "a", "--ray"]),
        (["verify", "--ray=local", "a"], ["verify", "--ray=local", "a"]),
    ],
)
def test_paths_are_not_taken_for_addresses(
    given: list[str], joined: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("auto", "local"):
        (tmp_path / folder).mkdir()
    assert joined_addresses(given) == joined


def test_steps_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "data")
    with tfr.Writer(path) as writer:
        writer.write(tfr.encode_example({"steps/a": [1, 2, 3], "id": [7]}))
    assert run("index", "--steps", "steps/", path) == 0
    assert ".steps, " in capsys.readouterr().out
    assert len(tfr.Steps(path, along="steps/", index="require")) == 3
    assert run("index", "--steps", "episodes/", path) == 2
    assert "No record has any step" in capsys.readouterr().err


def test_keys_are_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "shard")
    with tfr.Writer(path) as writer:
        writer.write_batch(tfr.encode_examples({"id": [b"a", b"b", b"c"]}))
    assert run("keys", "--by", "id", "--folder", str(tmp_path / "keys"), "--json", path) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["bytes"] == Path(made["path"]).stat().st_size
    reader = tfr.Reader(path)
    assert reader.by_key("id", folder=tmp_path / "keys")[b"b"] == reader[1]
    assert run("keys", "--by", "label", path) == 2
    assert "label" in capsys.readouterr().err
    flip_payload_byte(path, reader, 1)
    keys = ["keys", "--by", "id", path]
    assert run(*keys) == 2
    capsys.readouterr()
    assert run(*keys, "--on-corruption", "skip", "--json") == 1
    assert [each["records"] for each in json.loads(capsys.readouterr().out)["skipped"]] == [1]


def ids_of(pattern: Path) -> list[int]:
    batch = tfr.Reader(str(pattern))[:]
    found: list[int] = tfr.parse_example(batch, {"id": tfr.FixedLen((), "int64")})["id"].tolist()
    return found


def test_copy_reshards_samples_and_drops_duplicates(tmp_path: Path) -> None:
    with tfr.ShardedWriter(tmp_path / "data" / "x", num_shards=3) as writer:
        for number in range(1000):
            key = {} if number % 100 == 50 else {"key": number // 2}
            writer.write_example({"id": number, **key})
    everything = ids_of(tmp_path / "data" / "x-*")

    def copied(*arguments: str) -> list[int]:
        out = tmp_path / "out" / "y"
        options = ["--out", str(out), "--num-shards", "4", "--overwrite", *arguments]
        assert run("copy", str(tmp_path / "data"), *options) == 0
        assert len(list(out.parent.glob("y-*-of-00004"))) == 4
        return ids_of(tmp_path / "out" / "y-*")

    assert copied() == everything
    sample = copied("--sample", "2.5%", "--seed", "3")
    assert (len(sample), copied("--sample", "25", "--seed", "3")) == (25, sample)
    assert sample == [each for each in everything if each in sample]
    assert copied("--sample", "25", "--seed", "4") != sample
    assert copied("--sample", "100%") == everything
    seen: set[int] = set()
    once = []
    for number in everything:
        if number % 100 == 50 or number // 2 not in seen:
            once.append(number)
        if number % 100 != 50:
            seen.add(number // 2)
    assert copied("--drop-duplicates", "key") == once
    # The first of the chosen records stays, even if it repeats the key of a record left out.
    chosen = tmp_path / "numbers"
    repeat = next(n for n, each in enumerate(everything) if each not in once)
    chosen.write_text(f"{repeat} {repeat} 2")
    assert copied("--records", str(chosen), "--drop-duplicates", "key") == [
        everything[repeat],
        everything[2],
    ]


@pytest.mark.parametrize(
    ("sample", "why"),
    [
        ("21", "more than all 20 records"),
        ("101%", "a part"),
        ("-1", "a part"),
        ("1.5", "1% or"),
        ("1/0%", "1% or"),
    ],
)
def test_samples_that_no_set_has_are_refused(
    shards: list[str], sample: str, why: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    try:
        assert run("copy", *shards, "--out", str(tmp_path / "x"), f"--sample={sample}") == 2
    except SystemExit as error:
        assert error.code == 2
    assert why in capsys.readouterr().err
