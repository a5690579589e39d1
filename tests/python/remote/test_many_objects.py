"""After a listing of many objects, each object is opened at its first read."""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from patience import PATIENCE_S
from range_server import RangeServer, Trouble
from record_files import some_records, write_shard
from tfrfast.cli import main

pytest.importorskip("obstore", reason="needs obstore")

PATTERN = "s3://bucket/set/data-*"
COUNT = 90


@pytest.fixture
def storage(server: RangeServer, s3_keys: dict[str, str]) -> dict[str, Any]:
    return {"endpoint": server.url, **s3_keys}


@pytest.fixture
def here(
    server: RangeServer,
    storage: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> tfr.Reader:
    """The same shards as files. Those of the bucket have a published index."""
    shards = []
    for number in range(COUNT):
        name = f"data-{number:03d}"
        compression = "GZIP" if number % 30 == 1 else None
        path = str(tmp_path / name)
        if compression:
            with tfr.Writer(path, compression="GZIP", index=False) as writer:
                for record in some_records(number % 7, number, 500):
                    writer.write(record)
        else:
            write_shard(tmp_path / name, some_records(number % 7, number, 500))
        shards.append(path)
        server.put(f"bucket/set/{name}", Path(path).read_bytes())
    tfr.build_index(PATTERN, storage=storage, publish=True)
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(tmp_path / "another machine"))
    server.forget()
    return tfr.Reader(shards)


def asked_for(server: RangeServer) -> Counter[str]:
    return Counter(f"{each.method} {each.path}" for each in server.seen)


def test_opening_asks_for_the_listing_and_the_index(
    server: RangeServer, storage: dict[str, Any], here: tfr.Reader
) -> None:
    there = tfr.Reader(PATTERN, storage=storage)
    assert {each.path for each in server.seen} == {"bucket", "bucket/set.tfrfast/index"}
    assert len(server.seen) == 4  # the listing; the index's size, header and directory
    assert len(there) == len(here)
    assert there._fingerprint == here._fingerprint
    assert [each.num_records for each in there.shards] == [each.num_records for each in here.shards]
    assert len(server.seen) == 4


def test_records_and_batches_are_those_of_files(
    server: RangeServer, storage: dict[str, Any], here: tfr.Reader
) -> None:
    def opened() -> tfr.Reader:
        return tfr.Reader(PATTERN, storage=storage)

    numbers = np.random.default_rng(0).permutation(len(here))
    server.forget()
    there = opened()
    assert list(there.read(numbers)) == list(here.read(numbers))
    heads = [each for each in server.seen if each.method == "HEAD"]
    assert [each.path for each in heads] == ["bucket/set.tfrfast/index"]
    assert list(opened()) == list(here)
    assert [opened()[i] for i in (-1, 0, 100)] == [here[i] for i in (-1, 0, 100)]
    for shuffle in (True, False):
        ours, theirs = (tfr.Loader(each, 16, shuffle=shuffle, seed=3) for each in (opened(), here))
        assert [list(batch) for batch in ours] == [list(batch) for batch in theirs]
    lengths = np.concatenate([each.lengths for each in opened().shards])
    assert lengths.tolist() == [len(record) for record in here]


def test_a_key_opens_the_shard_of_its_record(
    server: RangeServer, storage: dict[str, Any], tmp_path: Path
) -> None:
    for number in range(COUNT):
        path = tmp_path / f"data-{number:03d}"
        with tfr.Writer(path, index=False) as writer:
            writer.write_example({"id": number})
        server.put(f"bucket/set/{path.name}", path.read_bytes())
    tfr.build_index(PATTERN, storage=storage, publish=True)
    tfr.build_keys(tfr.Reader(PATTERN, storage=storage), "id", folder=tmp_path)
    there = tfr.Reader(PATTERN, storage=storage)
    assert there.by_key("id", folder=tmp_path)[7] == there[7]


def test_shards_of_one_batch_are_opened_at_once(
    server: RangeServer, storage: dict[str, Any], here: tfr.Reader
) -> None:
    there = tfr.Reader(PATTERN, storage={**storage, "timeout": PATIENCE_S})
    server.forget()
    server.hold_until(17)
    there.read(np.arange(len(here)))
    assert server.most_running >= 17


def test_a_loader_is_closed_while_it_opens_shards(
    server: RangeServer, storage: dict[str, Any], here: tfr.Reader
) -> None:
    loader = tfr.Loader(tfr.Reader(PATTERN, storage=storage), 16, seed=3, threads=2)
    asked = threading.Event()

    def trouble(*_: object) -> Trouble:
        asked.set()
        return Trouble(silent=True)

    def close() -> None:
        asked.wait(PATIENCE_S)
        loader.close()

    server.trouble = trouble
    closer = threading.Thread(target=close)
    closer.start()
    with pytest.raises(ValueError, match="closed"):
        next(iter(loader))
    closer.join()


def test_another_object_than_the_listed_one_is_never_read(
    server: RangeServer, storage: dict[str, Any], here: tfr.Reader
) -> None:
    there = tfr.Reader(PATTERN, storage=storage)
    server.put("bucket/set/data-002", server.objects["bucket/set/data-003"].data)
    with pytest.raises(tfr.StaleIndexError, match=r"data-002' was replaced by another object"):
        list(there)
    # The facts of a listing are used once, because the object may change later.
    url = PATTERN.replace("*", "002")
    assert len(tfr.Reader([url], storage=storage)) == 3


def test_an_object_that_is_not_as_its_index_says_is_indexed_again(
    server: RangeServer, storage: dict[str, Any], here: tfr.Reader
) -> None:
    server.put("bucket/set/data-002", server.objects["bucket/set/data-003"].data)
    there = tfr.Reader(PATTERN, storage=storage)
    expected = [each.num_records for each in here.shards]
    expected[2] = 3
    assert [each.num_records for each in there.shards] == expected
    assert list(there)[1:4] == list(here)[3:6]


def _read_all(reader: tfr.Reader, results: Any) -> None:
    results.put(list(reader))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_open_what_their_parent_has_not(
    server: RangeServer, storage: dict[str, Any], here: tfr.Reader, method: str
) -> None:
    there = tfr.Reader(PATTERN, storage=storage)
    context = multiprocessing.get_context(method)
    results = context.Queue()
    child = context.Process(target=_read_all, args=(there, results))
    child.start()
    assert results.get(timeout=PATIENCE_S) == list(here)
    child.join()
    assert list(there) == list(here)


def test_what_is_not_read_yet_stays_in_the_cache(
    storage: dict[str, Any], here: tfr.Reader, tmp_path: Path
) -> None:
    cache = tfr.DiskCache(tmp_path / "cache", "1G")

    def kept() -> int:
        return len(list(Path(cache.folder).glob("v2/*/*")))

    with tfr.Reader(PATTERN, storage=storage, cache=cache) as reader:
        assert list(reader.read(range(len(here)))) == list(here.read(range(len(here))))
    assert kept() > COUNT / 2
    with tfr.Reader(PATTERN, storage=storage, cache=cache):
        before = kept()
        assert main(["cache", "--disk", cache.folder, "--clear"]) == 0
        assert kept() == before
    assert main(["cache", "--disk", cache.folder, "--clear"]) == 0
    assert kept() == 0
