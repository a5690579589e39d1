"""A cache on a local disk: the same records, fetched once, within its limit."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import cache_child
import tfrfast as tfr
from orders import order_of, shuffled
from patience import PATIENCE_S
from range_server import RangeServer, Seen, Trouble
from record_files import flip_payload_byte, some_records, write_shard
from tfrfast import _native
from tfrfast.cli import main
from tfrfast.loading import shuffle_costs
from tfrfast.storage.remote.options import Storage, place_of

pytest.importorskip("obstore", reason="needs obstore")

LARGE = 1 << 30
#: A file system takes a block more to list the parts of a file that the disk has in many places.
PARTS_BYTES = 4096


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def settle(folder: Path) -> None:
    """Waits until all received bytes are on the disk."""
    _native.finish_cache_writes()


def disk_bytes(folder: Path) -> int:
    paths = [folder, *folder.rglob("*")]
    return sum(path.stat().st_blocks * 512 for path in paths if path.exists())


def fetched(server: RangeServer) -> int:
    return sum((each.end or 0) - (each.begin or 0) for each in server.reads())


def put(server: RangeServer, paths: list[str]) -> list[str]:
    for path in paths:
        server.put(f"set/{Path(path).name}", Path(path).read_bytes())
    return [f"{server.url}/set/{Path(path).name}" for path in paths]


def kept_files(folder: Path) -> list[Path]:
    """Returns the files of objects: a page that names the object, lines, and the bytes."""
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("shuffle", [True, False, tfr.BlockShuffle(64, 4)])
def test_records_are_those_of_the_files_and_come_once(
    server: RangeServer,
    urls: list[str],
    shards: list[str],
    folder: Path,
    shuffle: bool | tfr.BlockShuffle,
) -> None:
    tfr.build_index(urls)
    here = tfr.Reader(shards)
    server.forget()
    for _ in range(2):
        with tfr.Reader(urls, cache=tfr.DiskCache(folder, LARGE)) as there:
            for epoch in range(3):
                loader = tfr.Loader(there, 32, order=order_of(shuffle, 5))
                loader.set_epoch(epoch)
                expected = tfr.Loader(here, 32, order=order_of(shuffle, 5))
                expected.set_epoch(epoch)
                assert [list(batch) for batch in loader] == [list(batch) for batch in expected]
                settle(folder)
            assert [there[i] for i in (799, 0, 300)] == [here[i] for i in (799, 0, 300)]
            assert list(there) == list(here)
    size = sum(os.path.getsize(path) for path in shards)
    assert fetched(server) <= size


def test_a_state_goes_on_with_a_cache_and_without(
    urls: list[str], shards: list[str], folder: Path
) -> None:
    reader = tfr.Reader(urls, cache=tfr.DiskCache(folder, LARGE))
    expected = [list(batch) for batch in tfr.Loader(shards, 32, seed=5)]
    loader = tfr.Loader(reader, 32, seed=5)
    begun = iter(loader)
    got = [list(next(begun)) for _ in range(7)]
    state = loader.state_dict()
    loader.close()
    onward = tfr.Loader(pickle.loads(pickle.dumps(reader)), 32, seed=5)
    onward.load_state_dict(state)
    assert got + [list(batch) for batch in onward] == expected


@pytest.mark.parametrize("epochs", [1, 2])
def test_damage_of_the_object_is_damage(
    server: RangeServer, urls: list[str], shards: list[str], folder: Path, epochs: int
) -> None:
    tfr.build_index(urls)
    flip_payload_byte(shards[2], some_records(500, 2, 3000), 7)
    urls = put(server, shards)
    reader = tfr.Reader(urls, cache=tfr.DiskCache(folder, LARGE))
    skipping = tfr.Reader(urls, on_corruption="skip", cache=tfr.DiskCache(folder, LARGE))
    for _ in range(epochs):
        with pytest.raises(tfr.CorruptRecordError, match="record 7 of"):
            reader.read(range(800))
        assert sum(len(list(batch)) for batch in tfr.Loader(skipping, 50)) == 799
        settle(folder)


@pytest.mark.parametrize("when", ["before", "while"])
@pytest.mark.parametrize("how", ["flipped", "cut short", "without lines"])
def test_damage_of_the_cache_is_fetched_again(
    server: RangeServer, urls: list[str], shards: list[str], folder: Path, when: str, how: str
) -> None:
    here = list(tfr.Reader(shards))
    reader = tfr.Reader(urls, cache=tfr.DiskCache(folder, LARGE))
    for _ in range(2):
        assert list(reader.read(range(800))) == here
        settle(folder)
    server.forget()
    assert list(reader.read(range(800))) == here
    assert not server.reads()
    if when == "before":
        reader.close()
    for path in kept_files(folder):
        if how == "flipped":
            data = bytearray(path.read_bytes())
            for at in range(2000, len(data), 50_000):
                data[at] ^= 4
            path.write_bytes(data)
        elif how == "cut short":
            os.truncate(path, path.stat().st_size * 7 // 8)
        else:
            with path.open("r+b") as file:
                file.seek(4096)
                file.write(bytes(4096))
    if when == "before":
        reader = tfr.Reader(urls, cache=tfr.DiskCache(folder, LARGE))
    for _ in range(2):
        assert list(reader.read(range(800))) == here
        assert [reader[i] for i in range(0, 800, 9)] == here[::9]
        settle(folder)


_READ_AGAIN = """
import sys
from pathlib import Path

import tfrfast as tfr
from record_files import some_records
from tfrfast import _native

url, folder = sys.argv[1:]
records = some_records(2000, 2, 3000)
reader = tfr.Reader(url, cache=tfr.DiskCache(folder, "1G"))
for _ in range(3):
    assert list(reader.read(range(2000))) == records
    _native.finish_cache_writes()
for path in Path(folder).glob("v2/*/*"):
    data = bytearray(path.read_bytes())
    for at in range(2000, len(data), 50_000):
        data[at] ^= 4
    path.write_bytes(data)
assert list(reader.read(range(2000))) == records
"""


def test_damage_of_what_is_compressed_in_the_cache_is_fetched_again(
    server: RangeServer, tmp_path: Path, folder: Path
) -> None:
    with tfr.Writer(tmp_path / "packed.gz", compression="GZIP") as writer:
        for record in some_records(2000, 2, 3000):
            writer.write(record)
    (url,) = put(server, [str(tmp_path / "packed.gz")])
    # No inflated bytes stay in memory.
    environment = {
        **os.environ,
        "TFRFAST_INFLATED_BYTES": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    command = [sys.executable, "-c", _READ_AGAIN, url, str(folder)]
    subprocess.run(command, env=environment, check=True, timeout=PATIENCE_S)


def flip_on_the_way(server: RangeServer, path: str, begin: int, times: int) -> None:
    """Flips a bit of that byte in the answers to its first `times` requests."""
    right = server.objects[path].data
    wrong = bytearray(right)
    wrong[begin] ^= 16
    left = [times]

    def watch(seen: Seen, _: int) -> Trouble | None:
        if seen.path.endswith(path) and seen.begin is not None and seen.end is not None:
            is_hit = seen.begin <= begin < seen.end and left[0] > 0
            left[0] -= is_hit
            server.objects[path].data = bytes(wrong) if is_hit else right
        return None

    server.trouble = watch


@pytest.mark.parametrize("mapped", [False, True])
def test_a_bit_that_flipped_on_its_way_does_not_stay(
    server: RangeServer, urls: list[str], shards: list[str], folder: Path, mapped: bool
) -> None:
    tfr.build_index(urls)
    here = list(tfr.Reader(shards))
    cache = tfr.DiskCache(folder, LARGE)
    flip_on_the_way(server, "set/data-002", 50_000, 1)
    with tfr.Reader(urls, cache=cache, verify="header" if mapped else "full") as reader:
        # Without payload checksums the damage is not noticed, and the cache keeps it.
        assert (list(reader.read(range(800))) == here) != mapped
        settle(folder)
    for _ in range(2):
        server.forget()
        with tfr.Reader(urls, cache=cache) as reader:
            assert list(reader.read(range(800))) == here
            assert [reader[i] for i in range(0, 800, 7)] == here[::7]
        assert fetched(server) <= 2 * (64 << 10)
    assert not server.reads()


def test_an_index_that_was_damaged_on_its_way_is_fetched_again(
    server: RangeServer, urls: list[str], shards: list[str], folder: Path
) -> None:
    """An index that is built through the cache. The flipped bit is in a record's length."""
    cache = tfr.DiskCache(folder, LARGE)
    at = int(tfr.Reader(shards[2]).shards[0].offsets[20])
    flip_on_the_way(server, "set/data-002", at + 1, 1)
    with tfr.Reader(urls, cache=cache, index="memory") as reader:
        assert list(reader.read(range(800))) == list(tfr.Reader(shards))


def test_an_object_that_was_replaced_is_another_one(
    server: RangeServer, urls: list[str], tmp_path: Path, folder: Path
) -> None:
    cache = tfr.DiskCache(folder, LARGE)
    with tfr.Reader(urls[0], cache=cache) as reader:
        old = list(reader)
    other = write_shard(tmp_path / "data-000", some_records(300, 9, 3000))
    put(server, [other])
    with tfr.Reader(urls[0], cache=cache) as reader:
        assert list(reader) == some_records(300, 9, 3000) != old
        settle(folder)
    with tfr.Reader(urls[0], cache=cache) as reader:
        # The pages of the old version were evicted.
        assert len(kept_files(folder)) == 1


@pytest.fixture
def large(server: RangeServer, tmp_path: Path) -> list[str]:
    """400 records of 20 kB in two shards."""
    (tmp_path / "large").mkdir()
    rng = np.random.default_rng(3)
    paths = [
        write_shard(tmp_path / "large" / f"part-{i}", [rng.bytes(20_000) for _ in range(200)])
        for i in range(2)
    ]
    urls = put(server, paths)
    tfr.build_index(urls)
    server.forget()
    return urls


def test_half_of_a_set_is_read_from_a_cache_of_half_its_size(
    server: RangeServer, large: list[str], folder: Path
) -> None:
    size = sum(len(server.objects[f"set/{Path(url).name}"].data) for url in large)
    limit = size // 2
    used = []

    def watch(seen: Seen, _: int) -> Trouble | None:
        used.append(disk_bytes(folder))
        return None

    server.trouble = watch
    reader = tfr.Reader(large, cache=tfr.DiskCache(folder, limit))
    from_cache = []
    for epoch in range(4):
        server.forget()
        before = _native.cache_bytes_read()
        # Not a Loader, which would read the next epoch ahead.
        plan = shuffled(len(reader), 7, epoch).tolist()
        for begin in range(0, len(reader), 10):
            reader.read(plan[begin : begin + 10])
        settle(folder)
        from_cache.append((_native.cache_bytes_read() - before) / size)
    # In an epoch, no cache hits more than it holds at the beginning of the epoch.
    for share in from_cache[1:]:
        assert limit / size - 0.05 <= share <= limit / size
    assert 0 < max(used) <= limit + len(large) * PARTS_BYTES
    assert disk_bytes(folder) <= limit + len(large) * PARTS_BYTES


def start(task: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, cache_child.__file__, task, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def begin(children: list[subprocess.Popen[str]]) -> None:
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()


def test_processes_fetch_few_bytes_twice(
    server: RangeServer, large: list[str], folder: Path
) -> None:
    server.delay_s = 0.02
    children = [start("steps", folder, LARGE, seed, *large) for seed in (1, 1, 2, 3)]
    begin(children)
    for child in children:
        _, error = child.communicate(timeout=PATIENCE_S)
        assert child.returncode == 0, error
    size = sum(len(server.objects[f"set/{Path(url).name}"].data) for url in large)
    # Processes may fetch the same block at the same time. Without a cache there would be 4 sizes.
    assert 0.9 * size < fetched(server) < 3 * size
    server.forget()
    reader = tfr.Reader(large, cache=tfr.DiskCache(folder, LARGE))
    assert len(list(reader)) == 400
    assert fetched(server) == 0


def test_a_process_that_is_killed_while_it_writes_does_no_harm(
    server: RangeServer, large: list[str], folder: Path
) -> None:
    expected = list(tfr.Reader(large))
    limit = 6 << 20
    for after in (5, 15, 30):
        kept = folder / str(after)
        server.forget()
        victim = start("steps", kept, limit, after, *large)

        def kill(_: Seen, number: int, victim=victim, after=after) -> Trouble | None:  # type: ignore[no-untyped-def]
            if number == after + 4:
                victim.send_signal(signal.SIGKILL)
            return None

        server.trouble = kill
        begin([victim])
        victim.communicate(timeout=PATIENCE_S)
        assert victim.returncode == -signal.SIGKILL
        server.trouble = lambda _, number: None
        with tfr.Reader(large, cache=tfr.DiskCache(kept, limit)) as reader:
            assert list(reader.read(range(400))) == expected
            settle(kept)
            assert disk_bytes(kept) <= limit + len(large) * PARTS_BYTES


def test_a_disk_that_cannot_be_written_is_told_of_once(
    server: RangeServer, urls: list[str], shards: list[str], folder: Path, tmp_path: Path
) -> None:
    tfr.build_index(urls)
    reader = tfr.Reader(urls, cache=tfr.DiskCache(folder, LARGE))
    (data_set,) = (path for path in (folder / "v2").iterdir() if path.is_dir())
    shutil.rmtree(data_set)
    data_set.write_text("in the way")
    got = list(reader.read(range(800)))
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        here = tfr.Reader(shards)  # shows the core's warnings
    assert got == list(here)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(reader.read(range(800))) == got
        tfr.Reader(shards)
    with pytest.raises(OSError, match="in-the-way"):
        (tmp_path / "in-the-way").write_text("")
        tfr.Reader(urls, cache=tfr.DiskCache(tmp_path / "in-the-way", LARGE))


def test_a_cache_keeps_endpoints_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    cache = tfr.DiskCache("/cache", "1G")
    chosen = ({}, {"endpoint": "http://one"}, {"endpoint": "http://two"}, {"account_name": "one"})
    places = [place_of(each) for each in chosen]
    assert places[0] == place_of({"timeout": 5}) == ""
    usual = Storage({}, cache)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://three")
    places.append(place_of({}))
    assert len(set(places)) == 5
    # Places count only if there is a cache.
    assert Storage({}, cache) != usual
    assert b"three" not in Storage({}).encoded


def test_what_a_cache_may_be(tmp_path: Path) -> None:
    cache = tfr.DiskCache(tmp_path, "200G")
    assert (cache.folder, cache.limit) == (str(tmp_path), 200 << 30)
    assert pickle.loads(pickle.dumps(cache)) == cache
    for limit, error in ((1000, ValueError), (2.5, TypeError), ("much", ValueError)):
        with pytest.raises(error, match="limit|size"):
            tfr.DiskCache(tmp_path, limit)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"tfr\.DiskCache"):
        tfr.Reader("x", cache=tmp_path)  # type: ignore[arg-type]


def test_the_command_shows_and_clears_it(
    urls: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tfr.Reader(urls, cache=tfr.DiskCache(folder, "1G")) as reader:
        list(reader)
        settle(folder)
        assert main(["cache", "--disk", str(folder)]) == 0
        shown = capsys.readouterr().out
        assert "1.2 MiB" in shown
        assert urls[0].rpartition("/")[0] in shown
        assert main(["cache", "--disk", str(folder), "--json"]) == 0
        (data_set,) = json.loads(capsys.readouterr().out)["data_sets"]
        assert data_set["in_use"]
        assert urls[0].startswith(data_set["url"])
        assert main(["cache", "--disk", str(folder), "--clear"]) == 0
        assert "in use" in capsys.readouterr().out
    assert main(["cache", "--disk", str(folder), "--clear"]) == 0
    assert not kept_files(folder)
    assert main(["cache", "--disk", str(folder / "none")]) == 2


def test_small_records_that_fit_are_no_slow_path(
    server: RangeServer, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffle_costs, "_said", set())
    urls = put(server, [write_shard(tmp_path / "small", [bytes(100)] * 30_000)])
    tfr.build_index(urls)
    with tfr.Reader(urls, cache=tfr.DiskCache(folder, LARGE)) as reader:
        server.forget()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert sum(len(batch) for batch in tfr.Loader(reader, 100, seed=1)) == 30_000
    # requests of 64 KiB, not of a record
    assert len(server.reads()) <= 30_000 * 116 / (64 << 10) + 1
