"""Objects are read like files: the same bytes, order, damage and states."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from orders import order_of
from patience import at_least_once
from range_server import OLD, RangeServer
from record_files import (
    cut,
    flip_payload_byte,
    frame_starts,
    some_records,
    write_shard,
    write_shards,
)
from tfrfast.cli import main
from tfrfast.jobs.indexing import objects
from tfrfast.jobs.running import Workers
from tfrfast.jobs.verifying import plan_verification
from tfrfast.storage.remote.options import Storage

pytest.importorskip("obstore", reason="needs obstore")


def batches(loader: tfr.Loader) -> list[list[bytes]]:
    return [list(batch) for batch in loader]


def test_records_are_those_of_the_files(urls: list[str], shards: list[str]) -> None:
    here, there = tfr.Reader(shards), tfr.Reader(urls)
    assert len(there) == len(here) == 800
    assert list(there) == list(here)
    numbers = np.random.default_rng(0).permutation(800)
    assert list(there.read(numbers)) == list(here.read(numbers))
    assert [there[i] for i in (799, 0, 0, 300)] == [here[i] for i in (799, 0, 0, 300)]
    assert there._fingerprint == here._fingerprint
    assert [shard.path for shard in there.shards] == urls


@pytest.mark.parametrize("shuffle", [True, False, tfr.BlockShuffle(64, 4)])
def test_batches_and_states_are_those_of_the_files(
    urls: list[str], shards: list[str], shuffle: bool | tfr.BlockShuffle
) -> None:
    here = tfr.Loader(shards, 32, order=order_of(shuffle, 5))
    there = tfr.Loader(tfr.Reader(urls), 32, order=order_of(shuffle, 5))
    assert batches(there) == batches(here)
    expected = batches(here)
    begun = iter(there)
    got = [list(next(begun)) for _ in range(7)]
    state = there.state_dict()
    there.close()
    # Each loader continues from the state of the other.
    onward = tfr.Loader(shards, 32, order=order_of(shuffle, 5))
    onward.load_state_dict(state)
    assert got + batches(onward) == expected


def test_damage_is_the_same_as_in_files(
    server: RangeServer, urls: list[str], shards: list[str]
) -> None:
    records = some_records(500, 2, 3000)
    flip_payload_byte(shards[2], records, 7)
    cut(shards[2], frame_starts(records)[490] + 20)
    server.put("set/data-002", Path(shards[2]).read_bytes())
    with pytest.raises(tfr.TruncatedRecordError) as there:
        tfr.Reader(urls)
    with pytest.raises(tfr.TruncatedRecordError) as here:
        tfr.Reader(shards)
    assert str(there.value) == str(here.value).replace(shards[2], urls[2])
    skipping = [tfr.Reader(each, on_corruption="skip") for each in (urls, shards)]
    assert list(skipping[0]) == list(skipping[1])
    assert [each[1:] for each in skipping[0].skipped] == [each[1:] for each in skipping[1].skipped]


def test_an_index_is_built_once_from_large_requests(server: RangeServer, tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "many", [bytes([i % 256]) * 10_000 for i in range(3000)])
    server.put("set/many", Path(shard).read_bytes())
    url = f"{server.url}/set/many"
    assert len(tfr.Reader(url)) == 3000
    scanning = server.reads()
    # One request fetches the beginning of the object, and the others are as large as possible.
    assert len(scanning) <= 2 + 30_048_000 // (8 << 20) + 1
    server.forget()
    again = tfr.Reader(url)
    assert len(again) == 3000
    assert again.shards[0].index is not None
    assert [each.method for each in server.seen] == ["HEAD"]


def test_other_processes_build_indexes_that_this_one_keeps(
    urls: list[str], tmp_path: Path, cache: Path
) -> None:
    elsewhere = ("TFRFAST_CACHE_DIR", str(tmp_path / "theirs"))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, spawn, os.putenv, elsewhere) as pool:
        built = tfr.build_index(urls, executor=pool)
        assert [(each.shard, each.num_records) for each in built] == list(
            zip(urls, [300, 0, 500], strict=True)
        )
        assert all(each.was_built and Path(each.path).is_relative_to(cache) for each in built)
        for shard in tfr.Reader(urls, index="require").shards:
            assert shard.index is not None
        assert [path.name for path in cache.rglob("*") if path.is_file()] == ["index"]
        assert not any(each.was_built for each in tfr.build_index(urls, executor=pool))
        assert all(each.was_built for each in tfr.build_index(urls, executor=pool, force=True))
        named = tfr.build_index(urls, executor=pool, index_folder=tmp_path / "indexes")
        assert {each.path for each in named} == {str(tmp_path / "indexes" / "index")}
        assert not any(each.was_built for each in named)
    assert not (tmp_path / "theirs").exists()  # the built indexes are only on this machine


def test_objects_are_not_read_to_plan_who_verifies_them(
    server: RangeServer, urls: list[str]
) -> None:
    with ThreadPoolExecutor(3) as pool:
        server.forget()
        tasks = plan_verification(urls, Workers(pool), Storage(None))
        assert server.seen == []
        assert len(tasks) == 3
        assert tfr.verify(urls, executor=pool)[:2] == (3, 800)


def test_indexes_get_into_a_folder_before_the_cache_is_full(
    urls: list[str], tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = objects._keep

    def keep_alone(made: Any) -> Any:
        tfr._native.prune_index_cache(0)
        return keep(made)

    monkeypatch.setattr(objects, "_keep", keep_alone)
    with ThreadPoolExecutor(1) as pool:
        tfr.build_index(urls, executor=pool, index_folder=tmp_path / "indexes")
    reader = tfr.Reader(urls, index_folder=tmp_path / "indexes")
    assert {shard.index for shard in reader.shards} == {str(tmp_path / "indexes" / "index")}


def test_indexes_that_cannot_be_kept_are_an_error(
    urls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").touch()
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(tmp_path / "taken"))
    with ThreadPoolExecutor(1) as pool, pytest.raises(OSError, match="taken"):
        tfr.build_index(urls, executor=pool)


def test_a_folder_of_indexes_that_is_a_url_is_not_made(
    urls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = os.listdir()
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="is a URL"):
        tfr.build_index(urls, executor=pool, index_folder="s3://bucket/indexes")
    assert os.listdir() == before


def test_many_requests_run_at_once(server: RangeServer, tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "apart", [bytes(100_000)] * 200)
    server.put("set/apart", Path(shard).read_bytes())
    reader = tfr.Reader(f"{server.url}/set/apart")
    server.forget()
    server.hold_until(25)
    reader.read(np.arange(0, 200, 4))
    assert len(server.reads()) == 50
    assert server.most_running >= 25


def test_iterating_takes_few_requests_that_run_at_once(server: RangeServer, tmp_path: Path) -> None:
    records = [bytes([number]) * (1 << 20) for number in range(20)]
    server.put("set/large", Path(write_shard(tmp_path / "large", records)).read_bytes())
    reader = tfr.Reader(f"{server.url}/set/large")
    server.hold_until(3)
    server.forget()
    assert list(reader) == records
    assert len(server.reads()) == 3  # of 8 MiB at most
    assert server.most_running == 3


def test_the_loader_asks_for_batches_before_it_needs_them(
    server: RangeServer, tmp_path: Path
) -> None:
    shard = write_shard(tmp_path / "apart", [bytes(40_000)] * 300)
    server.put("set/apart", Path(shard).read_bytes())
    reader = tfr.Reader(f"{server.url}/set/apart")
    loader = tfr.Loader(
        reader, 8, order=tfr.Shuffle(indices=np.arange(0, 300, 3)), threads=1, prefetch=6
    )
    server.forget()
    server.hold_until(17)
    next(iter(loader))
    assert server.most_running > 16  # more than two batches
    loader.close()


def test_small_batches_in_order_share_large_requests(server: RangeServer, tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "in-order", [bytes([i]) * 100_000 for i in range(200)])
    server.put("set/in-order", Path(shard).read_bytes())
    reader = tfr.Reader(f"{server.url}/set/in-order")
    for size in (1, 2, 7):
        server.forget()
        read = [each for batch in tfr.Loader(reader, size, shuffle=False) for each in batch]
        assert len(server.reads()) < 30
        assert read == list(reader)
    assert [list(batch) for batch in tfr.Loader(reader, 2, order=tfr.InOrder(indices=[7, 3]))] == [
        [reader[7], reader[3]]
    ]


def test_iterating_asks_for_the_shards_that_follow(server: RangeServer, tmp_path: Path) -> None:
    shards = write_shards(tmp_path, [20] * 12, longest=20_000)
    for shard in shards:
        server.put(f"many/{Path(shard).name}", Path(shard).read_bytes())
    reader = tfr.Reader([f"{server.url}/many/{Path(shard).name}" for shard in shards])
    for _ in range(2):
        server.forget()
        server.hold_until(7)
        assert list(reader) == list(tfr.Reader(shards))
        assert server.most_running > 6
        # Each byte was requested once, and no request is left.
        size = sum(len(server.objects[f"many/{Path(shard).name}"].data) for shard in shards)
        assert (
            sum(seen.end - seen.begin for seen in server.reads() if seen.begin is not None) == size
        )
    server.forget()
    next(iter(reader))
    assert len(list(reader)) == 240


def test_records_of_the_same_blocks_share_requests(server: RangeServer, tmp_path: Path) -> None:
    """The records of a set that is read ahead as a whole share requests, too."""
    shard = write_shard(tmp_path / "x", [bytes([i % 256]) * 5_000 for i in range(6_000)])
    server.put("set/x", Path(shard).read_bytes())
    reader = tfr.Reader(f"{server.url}/set/x")
    for world, shuffle in ((1, True), (1, tfr.BlockShuffle(200, 2)), (8, tfr.BlockShuffle(200, 2))):
        server.forget()
        loaders = [
            tfr.Loader(reader, 32, order=order_of(shuffle, 1), rank=rank, world=world)
            for rank in range(min(world, 2))
        ]
        read = sum(len(batch) for loader in loaders for batch in loader)
        assert read == 6_000 * len(loaders) // world
        asked = [seen.end - seen.begin for seen in server.reads() if seen.begin is not None]
        assert len(asked) <= 20
        assert sum(asked) <= 1.3 * 5_016 * read


@pytest.mark.parametrize(
    ("size", "batch_size"), [(600, 4096), (600, 32), (8_000, 64), (50_000, 32)]
)
def test_the_requests_that_are_said_are_those_that_come(size: int, batch_size: int) -> None:
    from tfrfast.loading.shuffle_costs import _shared

    records = 400_000
    order = np.random.default_rng(0).permutation(records)
    near = (64 << 10) // size + 1
    asked = 0
    for first in range(0, 100 * batch_size, batch_size):
        batch = np.sort(order[first : first + batch_size])
        asked += 1 + int((np.diff(batch) > near).sum())
    asked = asked * records // (100 * batch_size)
    assert 0.9 * asked < _shared(records, size, batch_size) < 1.1 * asked


def test_the_next_epoch_is_read_ahead_once_it_is_known_to_come(
    server: RangeServer, tmp_path: Path
) -> None:
    shard = write_shard(tmp_path / "x", [bytes([i]) * 200_000 for i in range(50)])
    server.put("set/x", Path(shard).read_bytes())

    def check() -> None:
        loader = tfr.Loader(tfr.Reader(f"{server.url}/set/x"), 4, seed=1)
        server.forget()
        assert sorted(each[0] for batch in loader for each in batch) == list(range(50))
        time.sleep(0.1)
        asked = [seen.end - seen.begin for seen in server.reads() if seen.begin is not None]
        assert sum(asked) < 10_001_000  # no byte twice
        assert len([*loader]) == 13
        time.sleep(0.1)
        server.forget()
        assert len(next(iter(loader))) == 4
        assert not server.reads()
        loader.close()

    at_least_once(check)  # a busy machine may take longer to ask


def test_a_request_a_record_is_said_once(
    server: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfrfast.loading import shuffle_costs

    shuffle_costs._said.clear()
    monkeypatch.setattr(shuffle_costs, "_shared", lambda records, *_: records)
    shard = write_shard(tmp_path / "small", [b"small"] * 12_000)
    server.put("set/small", Path(shard).read_bytes())
    reader = tfr.Reader(f"{server.url}/set/small")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shuffle in (False, tfr.BlockShuffle(1000, 2)):
            tfr.Loader(reader, 10, order=order_of(shuffle))
        tfr.Loader(shard, 10)
    with pytest.warns(tfr.SlowPathWarning, match="about 12,000 requests an epoch") as said:
        tfr.Loader(reader, 10)
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.Loader(reader, 10)


def test_what_is_compressed_is_asked_for_once_if_memory_holds_it(
    server: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfrfast.loading import shuffle_costs

    shuffle_costs._said.clear()
    with tfr.Writer(tmp_path / "small.gz", compression="GZIP") as writer:
        for _ in range(12_000):
            writer.write(b"small")
    server.put("set/small.gz", (tmp_path / "small.gz").read_bytes())
    reader = tfr.Reader(f"{server.url}/set/small.gz")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.Loader(reader, 10)
    monkeypatch.setattr(shuffle_costs._native, "inflated_bytes", lambda: 12_000 * 21 // 10)
    with pytest.warns(tfr.SlowPathWarning, match="10,800 requests an epoch, each for about a MiB"):
        tfr.Loader(reader, 10)


def test_bench_times_the_network(
    urls: list[str], shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--rounds", "1", "--max-bytes", "100k", "--json", *urls]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["shards"] == urls[:1]
    assert [each["work"] for each in found["comparisons"]] == [
        "records, in order",
        "records, shuffled",
    ]
    for each in found["comparisons"]:
        assert each["records"] == 300
        assert set(each["seconds"]) >= {"requests", "tfr.Loader"}
        assert each["records_per_s"]["tfr.Loader"] > 0
    assert main(["bench", "--rounds", "1", *urls]) == 0
    assert "of 3 shards" in capsys.readouterr().out


def test_objects_without_version_tags(server: RangeServer, shards: list[str]) -> None:
    server.strong = False
    server.put("set/plain", Path(shards[2]).read_bytes(), modified=OLD)
    url = f"{server.url}/set/plain"
    assert list(tfr.Reader(url)) == list(tfr.Reader(shards[2]))
    reader = tfr.Reader(url)
    assert reader.shards[0].index is not None
    # The same length, but modified later.
    server.put("set/plain", Path(shards[2]).read_bytes(), modified=OLD + 1)
    with pytest.raises(tfr.StaleIndexError, match="was replaced by another object"):
        reader[3]
