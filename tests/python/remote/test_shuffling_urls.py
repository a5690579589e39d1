"""A shuffle reads objects as it reads files: the same order, in large requests, once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from range_server import RangeServer, Seen
from record_files import some_records, write_shard
from tfrfast.jobs.shuffling import inputs as shuffle_inputs
from tfrfast.jobs.shuffling import job as shuffle_job
from tfrfast.jobs.shuffling import resumable_folder
from tfrfast.jobs.shuffling.publication import Shuffled

pytest.importorskip("obstore", reason="needs obstore")

_REQUEST_BYTES = 8 << 20


def shuffled(paths: Any, out: Path, **options: Any) -> Shuffled:
    return tfr.shuffle(paths, str(out), **{"num_shards": 3, "seed": 5, **options})


def records_of(made: Shuffled) -> list[bytes]:
    return list(tfr.Reader(made.paths))


@pytest.fixture
def bucket_of_shards(server: RangeServer, shards: list[str]) -> dict[str, Any]:
    """The shards once more, in a bucket, and how to reach it."""
    for shard in shards:
        server.put(f"bucket/set/{Path(shard).name}", Path(shard).read_bytes())
    return {"endpoint": server.url, "region": "us-east-1", "anonymous": True}


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shuffles with few records between two checkpoints, and buckets on the disk."""
    monkeypatch.setattr(shuffle_job, "_STEP_BYTES", 100_000)
    monkeypatch.setattr(shuffle_job, "_CHECKPOINT_BYTES", 100_000)
    monkeypatch.setattr("tfrfast.jobs.shuffling.shuffle._MIN_MEMORY_BYTES", 1 << 17)


def test_the_order_is_that_of_the_files(
    server: RangeServer, urls: list[str], shards: list[str], tmp_path: Path
) -> None:
    here = shuffled(shards, tmp_path / "here" / "x")
    server.forget()
    there = shuffled(urls, tmp_path / "there" / "x")
    assert records_of(there) == records_of(here)
    assert there.content_hash == here.content_hash
    # Each object is examined, and read from beginning to end. The empty object has no bytes to
    # read.
    assert sorted(each.method for each in server.seen) == ["GET"] * 2 + ["HEAD"] * 3
    with ThreadPoolExecutor(2) as pool:
        spread = shuffled(urls, tmp_path / "spread" / "x", executor=pool)
    assert records_of(spread) == records_of(here)


def test_more_shards_than_records_are_refused_before_objects_with_indexes_are_read(
    server: RangeServer, urls: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="num_shards is 5,000, but the input has 800 records"):
        shuffled(urls, tmp_path / "out" / "x", num_shards=5000)
    tfr.build_index(urls, progress=False)
    server.forget()
    with pytest.raises(ValueError, match="num_shards is 5,000, but the input has 800 records"):
        shuffled(urls, tmp_path / "out" / "x", num_shards=5000)
    assert not server.reads()
    assert not (tmp_path / "out").exists()


def test_what_was_listed_is_not_asked_for_again(
    server: RangeServer, bucket_of_shards: dict[str, Any], shards: list[str], tmp_path: Path
) -> None:
    made = shuffled("s3://bucket/set/data-*", tmp_path / "there" / "x", storage=bucket_of_shards)
    assert records_of(made) == records_of(shuffled(shards, tmp_path / "here" / "x"))
    assert not [each for each in server.seen if each.method == "HEAD"]


def test_large_objects_are_read_in_large_requests(server: RangeServer, tmp_path: Path) -> None:
    records = [bytes([i % 256]) * 10_000 for i in range(3000)]
    shard = write_shard(tmp_path / "many", records)
    packed = tmp_path / "packed"
    with tfr.Writer(packed, compression="GZIP", level=0, index=False) as writer:
        writer.write_batch(records)
    for path in (shard, packed):
        server.put("set/many", Path(path).read_bytes())
        server.forget()
        made = shuffled(f"{server.url}/set/many", tmp_path / f"out-{Path(path).name}" / "x")
        assert made.num_records == 3000
        # In a compressed object, bytes at the end of a request may be requested twice.
        at_most = -(-Path(path).stat().st_size // _REQUEST_BYTES) * (2 if path == packed else 1)
        assert len(server.reads()) <= at_most


def test_small_objects_are_asked_for_at_the_same_time(server: RangeServer, tmp_path: Path) -> None:
    objects = {f"bucket/set/small-{i:03}": some_records(5, i) for i in range(60)}
    for name, records in objects.items():
        server.put(name, Path(write_shard(tmp_path / "one", records)).read_bytes())
    server.hold_until(9)
    storage = {"endpoint": server.url, "region": "us-east-1", "anonymous": True}
    made = shuffled("s3://bucket/set/small-*", tmp_path / "out" / "x", storage=storage)
    assert sorted(records_of(made)) == sorted(sum(objects.values(), []))
    # All requests except the listing, which has ended by then.
    assert [each.begin for each in server.seen].count(0) == len(server.seen) - 1 == 60
    assert server.most_running > 8


def test_an_object_that_is_replaced_meanwhile_is_an_error(
    server: RangeServer, urls: list[str], tmp_path: Path
) -> None:
    other = Path(write_shard(tmp_path / "other", some_records(300, 9, 3000))).read_bytes()

    def replace(seen: Seen, _: int) -> None:
        if seen.begin is not None and seen.path == "set/data-002":  # before it is answered
            server.put("set/data-002", other)

    server.trouble = replace
    with pytest.raises(tfr.StaleIndexError, match="data-002' was replaced by another object"):
        shuffled(urls, tmp_path / "out" / "x")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("strong", [True, False])
@pytest.mark.parametrize("is_replaced", [True, False])
def test_an_interrupted_shuffle_goes_on_unless_an_object_was_replaced(
    server: RangeServer,
    shards: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_pieces: None,
    strong: bool,
    is_replaced: bool,
) -> None:
    server.strong = strong
    for shard in shards:
        server.put(f"set/{Path(shard).name}", Path(shard).read_bytes())
    urls = [f"{server.url}/set/{Path(shard).name}" for shard in shards]
    add_shard = shuffle_inputs.IntactRecords.add_shard
    left = [8]

    def interrupt_later(*arguments: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return add_shard(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(shuffle_inputs.IntactRecords, "add_shard", interrupt_later)
        with pytest.raises(KeyboardInterrupt):
            shuffled(urls, tmp_path / "there" / "x", max_memory=1 << 20)
    if is_replaced:
        again = write_shard(tmp_path / "again", some_records(300, 7, 3000))
        server.put("set/data-000", Path(again).read_bytes(), modified=1_700_000_009)
        shards = [again, *shards[1:]]
    server.forget()
    there = shuffled(urls, tmp_path / "there" / "x", max_memory=1 << 20)
    assert records_of(there) == records_of(shuffled(shards, tmp_path / "here" / "x"))
    # Records that were dealt before the interruption are not read again.
    assert bool([each for each in server.reads() if each.path == "set/data-000"]) == is_replaced


def test_a_shuffle_to_a_url_goes_on_where_it_was_interrupted(
    bucket: Any,
    moto: str,
    s3_keys: dict[str, str],
    shards: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_pieces: None,
) -> None:
    prefix, work = "s3://somebucket/sets/one/x", tmp_path / "work"
    options: dict[str, Any] = {
        "num_shards": 3,
        "seed": 5,
        "max_memory": 1 << 20,
        "storage": {"endpoint": moto, **s3_keys},
        "work": work,
    }

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shuffle_job.ShuffleJob, "_write_shards", interrupt)
        with pytest.raises(KeyboardInterrupt):
            tfr.shuffle(shards, prefix, **options)
    assert resumable_folder.can_resume(prefix, work)
    (held,) = work.iterdir()
    with resumable_folder.held(str(held)), pytest.raises(BlockingIOError, match="Another process"):
        tfr.shuffle(shards, prefix, **options)
    with monkeypatch.context() as patch:
        patch.setattr(shuffle_inputs.IntactRecords, "add_shard", interrupt)
        made = tfr.shuffle(shards, prefix, **options)
    assert not list(work.iterdir())
    assert not resumable_folder.can_resume(prefix, work)
    here = shuffled(shards, tmp_path / "here" / "x")
    there = tfr.Reader(made.paths, storage=options["storage"], index="require")
    assert list(there) == records_of(here)


def test_what_a_cache_holds_is_not_read_again(
    server: RangeServer, urls: list[str], tmp_path: Path
) -> None:
    cache = tfr.DiskCache(tmp_path / "disk", limit="100M")
    first = shuffled(urls, tmp_path / "first" / "x", cache=cache)
    server.forget()
    second = shuffled(urls, tmp_path / "second" / "x", cache=cache)
    assert records_of(first) == records_of(second)
    assert not server.reads()


def test_a_set_in_a_bucket_is_shuffled_in_its_place(
    bucket: Any, moto: str, s3_keys: dict[str, str], shards: list[str], tmp_path: Path
) -> None:
    storage = {"endpoint": moto, **s3_keys}
    prefix = "s3://somebucket/sets/one/data"
    with tfr.ShardedWriter(prefix, num_shards=2, storage=storage) as writer:
        for shard in shards:
            writer.write_batch(tfr.Reader(shard))
    before = list(tfr.Reader(f"{prefix}-*", storage=storage))
    made = tfr.shuffle(f"{prefix}-*", prefix, num_shards=3, seed=1, overwrite=True, storage=storage)
    after = list(tfr.Reader(f"{prefix}-*", storage=storage, index="require"))
    assert made.paths == [f"{prefix}-0000{i}-of-00003" for i in range(3)]
    assert after != before
    assert sorted(after) == sorted(before)
