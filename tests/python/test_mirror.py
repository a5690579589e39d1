"""`decompressed_cache=tfr.DiskCache(...)`: inflated bytes are kept, and read like plain files."""

from __future__ import annotations

import os
import pickle
import random
import warnings
from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from compressed_files import deflated
from tfrecord_model import rested, shard_of
from tfrfast import _native
from tfrfast.loading import shuffle_costs

RNG = random.Random(3)
RECORDS = [RNG.randbytes(1500) + b"ab" * RNG.randrange(900) for _ in range(2500)]
ORDER = list(np.random.default_rng(1).permutation(len(RECORDS)))
SHUFFLED = [RECORDS[i] for i in ORDER]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tfr.DiskCache:
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(tmp_path / "indexes"))
    return tfr.DiskCache(tmp_path / "mirror", "64M")


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "shard"
    path.parent.mkdir()
    path.write_bytes(deflated(shard_of(RECORDS), "GZIP"))
    rested(path)
    return path


def kept_files(cache: tfr.DiskCache) -> list[Path]:
    _native.finish_cache_writes()
    return [path for path in Path(cache.folder).rglob("*") if path.parent.parent.name == "v2"]


def fill(shard: Path, cache: tfr.DiskCache) -> tfr.Reader:
    """Each span was inflated, kept, and compared once."""
    reader = tfr.Reader(shard, decompressed_cache=cache)
    for _ in range(2):
        assert list(reader.read(ORDER)) == SHUFFLED
        kept_files(cache)
    assert list(reader.read(ORDER)) == SHUFFLED
    return reader


def spoil(path: Path) -> None:
    """Damages the file in place, so that processes that map the file see the damage."""
    with path.open("r+b") as file:
        for at in range(4096 + 2000, path.stat().st_size, 50_000):
            file.seek(at)
            file.write(b"\xa5" * 16)


def test_what_was_inflated_is_not_inflated_again(shard: Path, cache: tfr.DiskCache) -> None:
    reader, without = fill(shard, cache), tfr.Reader(shard)
    assert pickle.loads(pickle.dumps(reader))._options["storage"].inflated == cache
    spoil(shard)
    loader = tfr.Loader(reader, 100, seed=1)
    batches = [list(batch) for batch in loader]
    assert sorted(record for batch in batches for record in batch) == sorted(RECORDS)
    with pytest.raises(tfr.RecordError):
        without.read(range(len(RECORDS)))


@pytest.mark.parametrize("when", ["before", "mapped"])
def test_damage_of_the_mirror_is_noticed(shard: Path, cache: tfr.DiskCache, when: str) -> None:
    reader = fill(shard, cache)
    if when == "before":
        reader.close()
    for path in kept_files(cache):
        spoil(path)
    if when == "before":
        reader = tfr.Reader(shard, decompressed_cache=cache)
    for _ in range(2):
        assert list(reader.read(ORDER)) == SHUFFLED
        assert [reader[i] for i in range(0, 2500, 9)] == RECORDS[::9]
        kept_files(cache)


def test_a_shard_that_changed_is_another_object(shard: Path, cache: tfr.DiskCache) -> None:
    fill(shard, cache).close()
    status = shard.stat()
    others = [record[::-1] for record in RECORDS]
    shard.write_bytes(deflated(shard_of(others), "GZIP"))
    os.utime(shard, ns=(status.st_atime_ns, status.st_mtime_ns))
    reader = tfr.Reader(shard, decompressed_cache=cache, index="memory")
    for _ in range(2):
        assert list(reader.read(ORDER)) == [others[i] for i in ORDER]
        assert len(kept_files(cache)) == 1


def test_what_finds_no_room_is_inflated_again(shard: Path, tmp_path: Path) -> None:
    cache = tfr.DiskCache(tmp_path / "small", "2M")
    reader = tfr.Reader(shard, decompressed_cache=cache)
    for _ in range(3):
        assert list(reader.read(ORDER)) == SHUFFLED
        # A file system takes a block more to list the parts of a file in many places.
        most = (2 << 20) + 4096 * len(kept_files(cache))
        assert sum(path.stat().st_blocks * 512 for path in kept_files(cache)) <= most


def test_the_cost_of_a_shuffle_is_said_once_with_the_remedy(
    shard: Path, cache: tfr.DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffle_costs, "_said", set())
    monkeypatch.setattr(shuffle_costs, "_MUCH_INFLATED_BYTES", 1 << 20)
    monkeypatch.setattr(_native, "inflated_bytes", lambda: 0)
    with pytest.warns(
        tfr.SlowPathWarning, match=r"decompressed_cache=tfr\.DiskCache\(folder, limit\)"
    ):
        tfr.Loader(shard, 10, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.Loader(shard, 10, seed=1)
        monkeypatch.setattr(shuffle_costs, "_said", set())
        tfr.Loader(shard, 10, shuffle=False)
        tfr.Loader(tfr.Reader(shard, decompressed_cache=cache), 10, seed=1)


def test_inflated_has_to_be_a_cache(shard: Path) -> None:
    with pytest.raises(TypeError, match=r"decompressed_cache is a tfr\.DiskCache, not str"):
        tfr.Reader(shard, decompressed_cache="/tmp/mirror")  # type: ignore[arg-type]
