"""hf://: datasets on the Hugging Face Hub, and a token that no other server gets."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import tfrfast as tfr
from cli_files import run, write_examples
from hub_server import Hub
from range_server import Trouble

pytest.importorskip("obstore", reason="needs obstore")

ROOT = "hf://datasets/org/set"


@pytest.fixture
def here(hub: Hub, shards: list[str]) -> tfr.Reader:
    """The shards once more, on the Hub."""
    for shard in shards:
        hub.put(f"data/{Path(shard).name}", Path(shard).read_bytes())
    return tfr.Reader(shards)


def test_a_dataset_reads_like_its_files(hub: Hub, here: tfr.Reader) -> None:
    for paths in (
        f"{ROOT}/data/data-*",
        f"{ROOT}@main/**",
        [f"{ROOT}/data/{Path(shard.path).name}" for shard in here.shards],
    ):
        there = tfr.Reader(paths)
        assert list(there) == list(here)
        assert there._fingerprint == here._fingerprint
    numbers = [list(batch) for batch in tfr.Loader(there, 50, seed=4)]
    assert numbers == [list(batch) for batch in tfr.Loader(here, 50, seed=4)]
    hub.put("data/data-000", here[5])
    with pytest.raises(tfr.StaleIndexError, match="was replaced"):
        there[0]


def test_patterns_over_pages(hub: Hub) -> None:
    names = ["a-10", "a-9", "b-1", ".a-3", "sub/a-4", "sub/deep/a-5", "x+y/a 6#7", "s%2F/a-8"]
    for name in names:
        hub.put(f"set/{name}", b"")
    hub.put("a-8", b"")

    def found(pattern: str) -> list[str]:
        return [
            shard.path.removeprefix(f"{ROOT}/") for shard in tfr.Reader(f"{ROOT}/{pattern}").shards
        ]

    assert found("set/a-*") == ["set/a-9", "set/a-10"]
    assert found("set/*/a*") == ["set/s%2F/a-8", "set/sub/a-4", "set/x+y/a 6#7"]
    assert found("set/x+y/*") == ["set/x+y/a 6#7"]
    assert found("set/**/a-?") == ["set/a-9", "set/s%2F/a-8", "set/sub/a-4", "set/sub/deep/a-5"]
    assert found("a-*") == ["a-8"]
    assert len(found("**")) == 8
    for pattern in ("set/none-*", "none/*"):
        with pytest.raises(FileNotFoundError, match="No shard matches the pattern"):
            found(pattern)


def test_revisions_are_written_as_the_hub_writes_them(hub: Hub) -> None:
    kinds = {
        "v1": "v1",
        "refs/pr/7": "refs/pr/7",
        "refs/convert/tf.v2": "refs/convert/tf.v2",
        "a%2Fb": "a/b",
    }
    for written, revision in kinds.items():
        data = tfr.encode_example({"revision": [revision.encode()]})
        with tfr.Writer("shard", index=False, overwrite=True) as writer:
            writer.write(data)
        hub.put("sub/x", Path("shard").read_bytes(), revision=revision)
        for name in ("sub/x", "sub/*"):
            assert tfr.Reader(f"{ROOT}@{written}/{name}")[0] == data
    with pytest.raises(OSError, match="There is no object"):
        tfr.Reader(f"{ROOT}@v3/sub/x")
    with pytest.raises(OSError, match="Invalid rev id: v3"):
        tfr.Reader(f"{ROOT}@v3/sub/*")


@pytest.mark.parametrize(
    "source", ["storage", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "file", "HF_TOKEN_PATH"]
)
def test_the_token_is_found_and_goes_to_the_hub_alone(
    hub: Hub, here: tfr.Reader, source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hub.token = "hf_topsecret"
    storage = None
    if source == "storage":
        storage = {"token": hub.token}
    elif source in ("file", "HF_TOKEN_PATH"):
        path = tmp_path / ("home/token" if source == "file" else "elsewhere")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{hub.token}\n")
        if source == "HF_TOKEN_PATH":
            monkeypatch.setenv(source, str(path))
    else:
        monkeypatch.setenv(source, hub.token)
    # A process keeps the secrets that it was given for a dataset.
    for shard in here.shards:
        hub.put(Path(shard.path).name, Path(shard.path).read_bytes(), repo=f"org/{source}")
    reader = tfr.Reader(f"hf://datasets/org/{source}/data-*", storage=storage)
    assert list(reader) == list(here)
    assert {told for _, _, told in hub.seen} == {"Bearer hf_topsecret"}
    assert hub.store.seen
    assert not [each for each in hub.store.seen if "authorization" in each.headers]
    kept = [
        path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file() and path.suffix == ".index"
    ]
    texts = [
        repr(reader).encode(),
        str(tfr.Loader(reader, 5).state_dict()).encode(),
        pickle.dumps(reader),
    ]
    assert not [text for text in (*texts, *kept) if b"topsecret" in text]


def test_a_page_elsewhere_is_asked_for_without_the_token(
    hub: Hub, here: tfr.Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_topsecret")
    for name in range(4):
        hub.put(f"data/{name}", b"")
    hub.redirects_trees = hub.url
    assert len(tfr.Reader(f"{ROOT}/data/data-*")) == len(here)
    assert {told for _, path, told in hub.seen if "/tree/" in path} == {"Bearer hf_topsecret"}
    for leads_to, redirects in ((hub.store.url, ""), ("", hub.store.url)):
        hub.leads_to, hub.redirects_trees = leads_to, redirects
        hub.store.forget()
        with pytest.raises(OSError, match="Listing 'hf://datasets/org/set/data' failed"):
            tfr.Reader(f"{ROOT}/data/*", storage={"retries": 0})
        assert [each.path for each in hub.store.seen if "tree" in each.path]
        assert not [each for each in hub.store.seen if "authorization" in each.headers]
    hub.leads_to = "file://"
    with pytest.raises(OSError, match="goes on at no address of a server"):
        tfr.Reader(f"{ROOT}/data/*", storage={"retries": 0})


@pytest.mark.parametrize(
    "page", [b"", b"{}", b'""', b'[{"path": "data/data-009", "type": "file", "size": null}]']
)
def test_a_later_page_that_is_no_page_loses_no_shard(
    hub: Hub, here: tfr.Reader, page: bytes
) -> None:
    for name in range(4):
        hub.put(f"data/{name}", b"")
    hub.later_page = page
    with pytest.raises(OSError, match=r"not a listing of the Hub|does not exist.* code: 404"):
        tfr.Reader(f"{ROOT}/data/data-*", storage={"retries": 0})


def test_errors_name_the_cause_and_no_secret(
    hub: Hub, here: tfr.Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.token = "hf_right"
    monkeypatch.setenv("HF_TOKEN", "hf_topsecret")
    for name in ("data/data-000", "data/*"):
        with pytest.raises(OSError, match="check the name, and log in, set HF_TOKEN") as refused:
            tfr.Reader(f"{ROOT}/{name}", storage={"retries": 0})
        assert "topsecret" not in str(refused.value)
    monkeypatch.setenv("HF_TOKEN", hub.token)
    hub.store.trouble = lambda *_: Trouble(500)
    with pytest.raises(OSError, match="tried once") as failed:
        tfr.Reader(f"{ROOT}/data/data-000", storage={"retries": 0})
    assert "hf_right" not in str(failed.value)
    assert "signed" not in str(failed.value)


@pytest.mark.parametrize(
    "name", ["hf://org/model/x", "hf://datasets/org", "hf://datasets/org/set", f"{ROOT}@/x"]
)
def test_what_names_no_dataset(name: str) -> None:
    with pytest.raises(ValueError, match="Write hf://datasets/ORG/NAME/path, or"):
        tfr.Reader(name)


def test_options_for_others_are_refused(hub: Hub) -> None:
    for option in ({"headers": {"X": "y"}}, {"region": "here"}):
        with pytest.raises(ValueError, match="cannot be reached"):
            tfr.Reader(f"hf://datasets/org/other-{next(iter(option))}/x", storage=option)


def test_nothing_is_written(hub: Hub, tmp_path: Path) -> None:
    shard = write_examples(tmp_path)[0]
    for write in (
        lambda: tfr.Writer(f"{ROOT}/x"),
        lambda: tfr.ShardedWriter(f"{ROOT}/x", num_shards=2),
        lambda: tfr.copy(shard, [0], f"{ROOT}/x"),
        lambda: tfr.shuffle(shard, f"{ROOT}/x", num_shards=1),
    ):
        with pytest.raises(ValueError, match="a dataset on the Hub changes by commits"):
            write()
    assert not hub.seen


def test_an_index_in_the_dataset_is_used(hub: Hub, shards: list[str]) -> None:
    for shard in shards:
        hub.put(f"data/{Path(shard).name}", Path(shard).read_bytes())
        hub.put(Path(shard).name, Path(shard).read_bytes())
    tfr.build_index(shards)
    folder = Path(shards[0]).parent
    hub.put("data.tfrfast/index", Path(f"{folder}.tfrfast/index").read_bytes())
    assert tfr.Reader(f"{ROOT}/data/*", index="require")[0] == tfr.Reader(shards)[0]
    hub.seen.clear()
    tfr.Reader(f"{ROOT}/data-*")
    assert {path.split("/org/")[1].split("/")[0] for _, path, _ in hub.seen} == {"set"}


def test_the_command_line_and_a_cache(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for shard in write_examples(tmp_path / "examples"):
        hub.put(f"data/{Path(shard).name}", Path(shard).read_bytes())
    for command in ("info", "head", "doctor", "schema"):
        assert run(command, f"{ROOT}/data/*") == 0, capsys.readouterr().err
    cache = tfr.DiskCache(tmp_path / "cache", "64M")
    assert len(list(tfr.Reader(f"{ROOT}/data/*", cache=cache))) == 20
    hub.store.trouble = lambda seen, _: Trouble(500) if seen.method == "GET" else None
    assert len(list(tfr.Reader(f"{ROOT}/data/*", cache=cache))) == 20
