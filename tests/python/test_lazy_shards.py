"""Each of many shards is opened at its first read. A shard that has changed is an error."""

import gzip
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from children import is_right_in_child
from tfrecord_model import rested, shard_of

SHARDS = 70
EACH = 3
RECORDS = [b"%03d-%d" % (shard, number) for shard in range(SHARDS) for number in range(EACH)]


def path_of(folder: Path, shard: int) -> Path:
    return folder / f"shard-{shard:03d}"


def make_shards(folder: Path, compress: Callable[[bytes], bytes] = bytes) -> Path:
    folder.mkdir()
    for shard in range(SHARDS):
        path = path_of(folder, shard)
        path.write_bytes(compress(shard_of(RECORDS[shard * EACH : (shard + 1) * EACH])))
        rested(path)
    tfr.build_index(folder / "shard-*")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shared folder. Tests must not change it."""
    return make_shards(tmp_path_factory.mktemp("late") / "data")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return make_shards(tmp_path / "data")


def open_shards(data: Path, **options: Any) -> tfr.Reader:
    return tfr.Reader(data / "shard-*", index="require", **options)


def mapped(data: Path) -> set[str]:
    """The shards that this process maps."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {Path(line.split()[-1]).name for line in lines if f"{data}/" in line}


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_shard_is_opened_when_it_is_first_read(made: Path) -> None:
    with open_shards(made, io="mmap") as reader:
        assert len(reader) == len(RECORDS)
        assert [shard.num_records for shard in reader.shards] == [EACH] * SHARDS
        assert reader.shards[5].path == str(path_of(made, 5))
        assert reader.shards[5].num_bytes == path_of(made, 5).stat().st_size
        assert reader.shards[5].index == f"{made}.tfrfast/index"
        assert reader.skipped == []
        assert reader._described()
        assert mapped(made) == set()
        assert reader.shards[7].lengths.tolist() == [5] * EACH  # from the index
        assert mapped(made) == set()
        assert reader[4 * EACH] == RECORDS[4 * EACH]
        assert reader.read([0, 8 * EACH]).tolist() == [RECORDS[0], RECORDS[8 * EACH]]
        assert mapped(made) == {"shard-000", "shard-004", "shard-008"}
    assert mapped(made) == set()


def test_few_shards_are_opened_at_once(made: Path) -> None:
    few = [path_of(made, shard) for shard in range(64)]
    with tfr.Reader(few, io="mmap", index="require"):
        assert sys.platform != "linux" or len(mapped(made)) == 64


def test_all_ways_to_read_give_the_same(made: Path, io: Any) -> None:
    whole = tfr.Reader(made / "shard-*", index="memory")
    assert list(whole) == RECORDS
    assert list(open_shards(made, io=io)) == RECORDS
    reader = open_shards(made, io=io)
    assert reader._fingerprint == whole._fingerprint
    assert reader._described() == open_shards(made, io=io)._described()
    order = np.random.default_rng(1).permutation(len(RECORDS))
    assert reader.read(order).tolist() == [RECORDS[i] for i in order]
    at_random = open_shards(made, io=io)
    assert [at_random[int(i)] for i in order] == [RECORDS[i] for i in order]
    assert [at_random.locate(int(i)) for i in order] == [whole.locate(int(i)) for i in order]


def test_a_shard_that_is_given_twice_is_opened_once(made: Path) -> None:
    paths = [path_of(made, shard) for shard in range(SHARDS)]
    reader = tfr.Reader([*paths, *paths], index="require", io="mmap")
    assert list(reader) == [*RECORDS, *RECORDS]
    if sys.platform == "linux":
        lines = Path("/proc/self/maps").read_text().splitlines()
        assert sum(f"{made}/" in line for line in lines) == SHARDS


def test_compressed_shards(tmp_path: Path) -> None:
    data = make_shards(tmp_path / "data", gzip.compress)
    reader = open_shards(data)
    assert reader.shards[0].compression == "GZIP"
    assert reader.read([5, 200]).tolist() == [RECORDS[5], RECORDS[200]]
    assert list(reader) == RECORDS
    # Shards that must be plain are examined.
    with pytest.raises((tfr.CorruptRecordError, tfr.StaleIndexError)):
        open_shards(data, compression=None)


def test_relative_paths_are_those_of_the_opening(
    made: Path, monkeypatch: pytest.MonkeyPatch, io: Any
) -> None:
    monkeypatch.chdir(made)
    bare = tfr.Reader("shard-*", index="require", io=io)
    monkeypatch.chdir(made.parent)
    relative = tfr.Reader("data/shard-*", index="require", io=io)
    monkeypatch.chdir("/")
    assert list(bare) == list(relative) == RECORDS
    assert bare.shards[1].path == "shard-001"
    assert relative.shards[1].path == "data/shard-001"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_forked_child_opens_them_itself(made: Path, io: Any) -> None:
    reader = open_shards(made, io=io)
    assert reader[0] == RECORDS[0]
    assert is_right_in_child(lambda: [reader[i] for i in range(len(RECORDS))] == RECORDS)
    assert list(reader) == RECORDS


def test_what_is_missing_or_changed_is_found_at_opening(data: Path) -> None:
    os.utime(path_of(data, 5), ns=(0, 10**18))
    path_of(data, 6).write_bytes(shard_of([b"new"]))
    rested(path_of(data, 6))
    with pytest.raises(tfr.StaleIndexError, match="shard-006"):
        open_shards(data)
    reader = tfr.Reader(data / "shard-*")
    assert list(reader) == [*RECORDS[: 6 * EACH], b"new", *RECORDS[7 * EACH :]]
    paths = [path_of(data, shard) for shard in range(SHARDS)]
    path_of(data, 9).unlink()
    path_of(data, 11).unlink()
    with pytest.raises(FileNotFoundError) as raised:
        tfr.Reader(paths)
    assert raised.value.filename == str(path_of(data, 9))


def remove(path: Path) -> None:
    path.unlink()


def replace_by_others(path: Path) -> None:
    times = os.stat(path)
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().replace(b"-", b"+"))
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    os.replace(other, path)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(shard_of([b"one more"]))


def cut(path: Path) -> None:
    os.truncate(path, 10)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("change", [remove, replace_by_others, grow, cut, replace_by_folder])
def test_what_changes_before_it_is_read_is_stale(
    data: Path, io: Any, change: Callable[[Path], None]
) -> None:
    reader = open_shards(data, io=io)
    assert reader[9 * EACH] == RECORDS[9 * EACH]
    change(path_of(data, 8))
    for read in (lambda: reader[8 * EACH], lambda: reader.read([3, 8 * EACH + 1, 4])):
        for _ in range(2):
            with pytest.raises(tfr.StaleIndexError, match="first read") as raised:
                read()
            assert raised.value.path == str(path_of(data, 8))
    others = [i for i in range(len(RECORDS)) if i // EACH != 8]
    assert reader.read(others).tolist() == [RECORDS[i] for i in others]


def test_what_was_read_before_it_was_replaced_stays(data: Path) -> None:
    reader = open_shards(data, io="mmap")
    assert reader[8 * EACH] == RECORDS[8 * EACH]
    replace_by_others(path_of(data, 8))
    assert reader[8 * EACH + 1] == RECORDS[8 * EACH + 1]


def test_a_loader_says_which_shard_was_removed(data: Path) -> None:
    loader = tfr.Loader(open_shards(data), batch_size=EACH, shuffle=False)
    path_of(data, 50).unlink()
    seen = []
    with pytest.raises(tfr.StaleIndexError, match="shard-050"):
        for batch in loader:
            seen += batch.tolist()
    assert seen == RECORDS[: 50 * EACH]


def test_damage_of_a_section_is_found_when_it_is_read(data: Path) -> None:
    index = Path(f"{data}.tfrfast/index")
    whole = bytearray(index.read_bytes())
    whole[-40] ^= 1  # in the last shard's section of offsets
    index.write_bytes(whole)
    reader = open_shards(data)
    assert reader.read(np.arange(60 * EACH)).tolist() == RECORDS[: 60 * EACH]
    with pytest.raises(tfr.StaleIndexError, match="tfrfast index --force") as raised:
        list(reader)
    assert raised.value.path == str(index)


def test_an_index_may_be_replaced_under_open_readers(data: Path) -> None:
    reader = open_shards(data)
    assert reader[0] == RECORDS[0]
    tfr.build_index(data / "shard-*", force=True)
    shutil.rmtree(f"{data}.tfrfast")
    assert list(reader) == RECORDS


def test_damaged_shards_are_found_at_opening(data: Path) -> None:
    torn = path_of(data, 20)
    torn.write_bytes(torn.read_bytes()[:-3])
    rested(torn)
    tfr.build_index(data / "shard-*")
    with pytest.raises(tfr.TruncatedRecordError, match="shard-020"):
        open_shards(data)
    reader = open_shards(data, on_corruption="skip")
    assert [each.path for each in reader.skipped] == [str(torn)]
    assert len(reader) == len(RECORDS) - 1
