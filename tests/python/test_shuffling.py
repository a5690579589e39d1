import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from children import printed_by
from orders import shuffled
from record_files import names_in
from tfrfast import _native
from tfrfast.base.sizes import parse_bytes
from tfrfast.cli import main
from tfrfast.jobs.shuffling import publication
from tfrfast.jobs.shuffling.job import ShuffleJob
from tfrfast.jobs.shuffling.resumable_folder import resumable_folder_path

SMALL_MEMORY = 16 << 20
KILLS = int(os.environ.get("TFRFAST_KILLS", "15")) // 3


def write(path: Path, records: Sequence[bytes]) -> None:
    path.parent.mkdir(exist_ok=True)
    with tfr.Writer(path, sync=False, index=False) as writer:
        writer.write_batch(records)


def read(paths: Any) -> list[bytes]:
    with tfr.Reader(paths, index="memory") as reader:
        return list(reader)


def numbered(count: int, length: int = 0) -> list[bytes]:
    return [b"%d " % i + bytes(length) for i in range(count)]


def expected_order(count: int, seed: int) -> list[int]:
    """The contract: records sorted by their numbers' places in one huge permutation."""
    keys = shuffled(2**62, seed, last=count)
    return [int(i) for i in np.argsort(keys)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Three shards of 1000 small records in all."""
    records = numbered(1000)
    write(tmp_path / "source" / "part-0", records[:300])
    write(tmp_path / "source" / "part-1", [])
    write(tmp_path / "source" / "part-2", records[300:])
    return tmp_path / "source"


@pytest.fixture
def large_source(tmp_path: Path) -> Path:
    """About 60 MB, more than ten buckets under SMALL_MEMORY."""
    rng = np.random.default_rng(0)
    for shard in range(4):
        lengths = rng.integers(0, 12_000, 2500)
        records = [b"%d-%d " % (shard, i) + bytes(n) for i, n in enumerate(lengths.tolist())]
        write(tmp_path / "source" / f"part-{shard}", records)
    return tmp_path / "source"


class TestOrder:
    def test_is_that_of_the_seed(self, source: Path, tmp_path: Path) -> None:
        for seed in (0, 1, 2**64 - 1):
            made = tfr.shuffle(
                f"{source}/part-*", tmp_path / f"out-{seed}/train", num_shards=3, seed=seed
            )
            records = numbered(1000)
            assert read(made.paths) == [records[i] for i in expected_order(1000, seed)]

    def test_does_not_depend_on_memory_or_shards(self, large_source: Path, tmp_path: Path) -> None:
        ways: list[dict[str, Any]] = [
            {"num_shards": 5, "max_memory": "4GiB"},
            {"num_shards": 3, "max_memory": SMALL_MEMORY},
            {"max_bytes": 7_000_000, "max_memory": 2 * SMALL_MEMORY},
        ]
        results = []
        for number, way in enumerate(ways):
            made = tfr.shuffle(
                f"{large_source}/*", tmp_path / f"out{number}" / "train", seed=7, sync=False, **way
            )
            results.append((read(made.paths), made.content_hash, made.num_bytes))
        assert results[0] == results[1] == results[2]
        assert Counter(results[0][0]) == Counter(read(f"{large_source}/*"))


class TestShards:
    def test_differ_by_at_most_one_record(self, source: Path, tmp_path: Path) -> None:
        made = tfr.shuffle(f"{source}/*", tmp_path / "out" / "train", num_shards=7)
        assert names_in(tmp_path / "out") == [f"train-{i:05}-of-00007" for i in range(7)]
        assert made.paths == [f"{tmp_path}/out/{name}" for name in names_in(tmp_path / "out")]
        with tfr.Reader(made.paths, index="require") as reader:
            assert {shard.num_records for shard in reader.shards} == {142, 143}
        assert (made.num_records, made.splits) == (1000, {})
        assert made.num_bytes == sum(map(os.path.getsize, made.paths))

    def test_have_at_most_max_bytes(self, large_source: Path, tmp_path: Path) -> None:
        made = tfr.shuffle(
            f"{large_source}/*",
            tmp_path / "out" / "train",
            max_bytes=10_000_000,
            max_memory=SMALL_MEMORY,
        )
        sizes = [os.path.getsize(path) for path in made.paths]
        assert max(sizes) <= 10_000_000
        assert min(sizes[:-1]) > 9_900_000

    def test_of_nothing_are_empty(self, tmp_path: Path) -> None:
        write(tmp_path / "source" / "empty", [])
        for how in ({"num_shards": 2}, {"max_bytes": 100}):
            made = tfr.shuffle(
                tmp_path / "source" / "empty", tmp_path / "out" / "x", overwrite=True, **how
            )
            assert read(made.paths) == []

    def test_are_counted_before_anything_is_dealt_out(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(tmp_path / "source", [b"%d" % i for i in range(2000)])
        monkeypatch.delattr("tfrfast._native.ShuffleBuckets")
        with pytest.raises(ValueError, match="num_shards is 1,000,000, but .* 2,000 records"):
            tfr.shuffle(tmp_path / "source", tmp_path / "out" / "x", num_shards=10**6)
        assert names_in(tmp_path) == ["source"]

    def test_may_hold_records_larger_than_a_bucket(self, tmp_path: Path) -> None:
        records = [bytes([i]) * size for i, size in enumerate([20_000_000, 10, 3_000_000, 0] * 4)]
        write(tmp_path / "source" / "part", records)
        made = tfr.shuffle(
            tmp_path / "source" / "part",
            tmp_path / "out" / "x",
            num_shards=2,
            max_memory=SMALL_MEMORY,
        )
        assert read(made.paths) == [records[i] for i in expected_order(16, 0)]


class TestSplits:
    def test_partition_the_records_by_their_shares(self, source: Path, tmp_path: Path) -> None:
        made = tfr.shuffle(
            f"{source}/*",
            f"{tmp_path}/out/",
            num_shards=10,
            splits={"train": 0.8, "validation": 0.15, "test": 0.05},
        )
        assert {name: len(paths) for name, paths in made.splits.items()} == {
            "train": 8,
            "validation": 1,
            "test": 1,
        }
        parts = {name: read(paths) for name, paths in made.splits.items()}
        assert {name: len(part) for name, part in parts.items()} == {
            "train": 800,
            "validation": 150,
            "test": 50,
        }
        everything = [record for part in parts.values() for record in part]
        records = numbered(1000)
        assert everything == [records[i] for i in expected_order(1000, 0)]
        assert names_in(tmp_path / "out")[0] == "test-00000-of-00001"

    def test_may_each_have_their_own_number_of_shards(self, source: Path, tmp_path: Path) -> None:
        made = tfr.shuffle(
            f"{source}/*",
            tmp_path / "out" / "birds",
            splits={"a": 0.5, "b": 0.5},
            num_shards={"a": 3, "b": 2},
        )
        assert [os.path.basename(path) for path in made.paths] == [
            *(f"birds-a-{i:05}-of-00003" for i in range(3)),
            *(f"birds-b-{i:05}-of-00002" for i in range(2)),
        ]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"splits": {"a": 0.5}, "num_shards": 2}, "add up to 1"),
            ({"splits": {"a": 1.5, "b": -0.5}, "num_shards": 2}, "add up to 1"),
            ({"splits": {"a": 0.5, "b": 0.5}, "num_shards": 1}, "num_shards"),
            ({"splits": {"a": 0.5, "b": 0.5}, "num_shards": {"a": 1}}, "same splits"),
            ({"splits": {"a": float("nan")}, "num_shards": 2}, "add up to 1"),
            ({"splits": {"a/b": 1}, "num_shards": 1}, "file's name"),
            ({}, "either num_shards or max_bytes"),
            ({"num_shards": 1, "max_memory": "1 parsec"}, "expected a size"),
            (
                {"num_shards": 1, "max_memory": 100},
                "max_memory is 100, but must be at least 16,777,216.",
            ),
        ],
    )
    def test_that_make_no_sense_are_refused(
        self, source: Path, tmp_path: Path, arguments: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(ValueError, match=message):
            tfr.shuffle(f"{source}/*", tmp_path / "out" / "x", **arguments)


class TestNames:
    def test_that_are_taken_are_an_error_before_any_work(
        self, source: Path, tmp_path: Path
    ) -> None:
        write(tmp_path / "out" / "train-00000-of-00009", [b"precious"])
        with pytest.raises(FileExistsError, match="overwrite=True"):
            tfr.shuffle(f"{source}/*", tmp_path / "out" / "train", num_shards=2)
        assert names_in(tmp_path / "out") == ["train-00000-of-00009"]

    def test_that_are_taken_may_be_replaced(self, source: Path, tmp_path: Path) -> None:
        for count in (4, 2):
            tfr.shuffle(f"{source}/*", tmp_path / "out" / "train", num_shards=count, overwrite=True)
        assert names_in(tmp_path / "out") == ["train-00000-of-00002", "train-00001-of-00002"]
        assert names_in(tmp_path / "out.tfrfast") == ["index"]
        assert len(tfr.Reader(tmp_path / "out" / "train-*", index="require").shards) == 2

    def test_of_a_folder_alone_are_refused(self, source: Path, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="beginning of their names"):
            tfr.shuffle(f"{source}/*", f"{tmp_path}/out/", num_shards=2)


class TestDamage:
    def test_of_a_source_is_an_error_that_names_it(self, source: Path, tmp_path: Path) -> None:
        data = bytearray((source / "part-2").read_bytes())
        data[13] ^= 1
        (source / "part-2").write_bytes(data)
        with pytest.raises(tfr.CorruptRecordError, match="record 0 at byte 0") as caught:
            tfr.shuffle(f"{source}/*", tmp_path / "out" / "train", num_shards=2)
        assert caught.value.path == str(source / "part-2")
        assert names_in(tmp_path) == ["source"]
        (source / "part-2").write_bytes(data[:15])
        with pytest.raises(tfr.TruncatedRecordError):
            tfr.shuffle(f"{source}/*", tmp_path / "out" / "train", num_shards=2)

    def test_of_an_intermediate_file_is_found(
        self, large_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        work = tmp_path / "work"
        original = ShuffleJob._write_shards

        def damage_first(self: Any, buckets: Any) -> None:
            (bucket,) = work.glob("*/bucket-1")
            data = bytearray(bucket.read_bytes())
            data[1000] ^= 1
            bucket.write_bytes(data)
            original(self, buckets)

        monkeypatch.setattr(ShuffleJob, "_write_shards", damage_first)
        with pytest.raises(tfr.CorruptRecordError, match="intermediate file"):
            tfr.shuffle(
                f"{large_source}/*",
                tmp_path / "out" / "x",
                num_shards=2,
                max_memory=SMALL_MEMORY,
                work=work,
            )
        assert not (tmp_path / "out").exists()


SCRIPT = """
import sys
from concurrent.futures import ProcessPoolExecutor
import tfrfast as tfr
from tfrfast.jobs.shuffling import job
job._STEP_BYTES = 1 << 20
job._CHECKPOINT_BYTES = 4 << 20
executor = ProcessPoolExecutor(2) if sys.argv[3] == "processes" else None
options = {"max_memory": 16 << 20, "executor": executor, "sync": False}
tfr.shuffle(sys.argv[1], sys.argv[2], num_shards=20, seed=3, **options)
"""


def interrupted_at(owner: Any, name: str, call: Callable[[], object]) -> None:
    """Interrupts the call where it calls the function of this name."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, interrupt)
        with pytest.raises(KeyboardInterrupt):
            call()


def start_shuffling(source: Path, out: Path, on: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", SCRIPT, f"{source}/*", str(out), on]
    return subprocess.Popen(command, start_new_session=True)


def end_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # workers of a killed process go on without it
        os.killpg(pid, signal.SIGKILL)


class TestInterruption:
    @pytest.mark.parametrize("on", ["this process", "processes"])
    def test_by_a_kill_at_any_moment_goes_on_to_the_same_result(
        self, large_source: Path, tmp_path: Path, on: str, request: pytest.FixtureRequest
    ) -> None:
        whole = tfr.shuffle(f"{large_source}/*", tmp_path / "whole" / "x", num_shards=20, seed=3)
        expected = [Path(path).read_bytes() for path in whole.paths]
        out = tmp_path / "out" / "x"
        state = tmp_path / "out.tfrfast" / "shuffle-x" / "journal"
        rng = np.random.default_rng(0)
        for _ in range(KILLS):
            process = start_shuffling(large_source, out, on)
            request.addfinalizer(functools.partial(end_group, process.pid))
            while not state.exists() and process.poll() is None:
                time.sleep(0.002)
            time.sleep(rng.uniform(0, 0.15 if on == "this process" else 0.6))
            process.send_signal(signal.SIGKILL)
            process.wait()
            published = sorted(out.parent.glob("*"))
            for path in published:
                assert path.read_bytes() == expected[int(path.name[2:7])]
            if not state.exists():  # it was done
                assert len(published) == len(expected)
                for path in published:
                    path.unlink()
        assert start_shuffling(large_source, out, on).wait() == 0
        assert [path.read_bytes() for path in sorted(out.parent.iterdir())] == expected
        assert "shuffle-x" not in names_in(tmp_path / "out.tfrfast")
        with tfr.Reader(f"{out}-*", index="require") as reader:
            assert len(reader) == whole.num_records

    @pytest.mark.parametrize("left", [None, b"", bytes(832)], ids=["no", "an empty", "a zeroed"])
    def test_and_a_loss_of_the_new_index_keeps_no_record_from_its_place(
        self, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: bytes | None
    ) -> None:
        def interrupt(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        arguments: dict[str, Any] = {"num_shards": 3, "overwrite": True}
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(publication, "publish", interrupt)
            tfr.shuffle(f"{source}/part-*", source / "part", **arguments)
        (index,) = tmp_path.glob("source.tfrfast/shuffle-part/index/index")
        index.unlink() if left is None else index.write_bytes(left)
        made = tfr.shuffle(f"{source}/part-*", source / "part", **arguments)
        assert sorted(tfr.Reader(made.paths)) == sorted(numbered(1000))

    @pytest.mark.parametrize(
        ("owner", "name", "next_seed"),
        [(ShuffleJob, "_write_shards", 2), (_native, "move_file", 1)],
    )
    def test_before_a_shard_has_its_name_leaves_no_mistake_to_the_next(
        self, large_source: Path, tmp_path: Path, owner: Any, name: str, next_seed: int
    ) -> None:
        work = tmp_path / "work"
        arguments: dict[str, Any] = {"num_shards": 2, "max_memory": SMALL_MEMORY, "work": work}
        call = functools.partial(
            tfr.shuffle, f"{large_source}/*", tmp_path / "out" / "x", **arguments
        )
        interrupted_at(owner, name, functools.partial(call, seed=1))
        assert list(work.glob("*/journal"))
        assert not (tmp_path / "out").exists()
        records = read(f"{large_source}/*")
        assert read(call(seed=next_seed).paths) == [
            records[i] for i in expected_order(len(records), next_seed)
        ]
        assert names_in(work) == []

    @pytest.mark.parametrize("listed", [False, True])
    def test_while_it_replaces_its_own_input_loses_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: bool
    ) -> None:
        records = numbered(100)
        prefix = tmp_path / "data" / "x"
        source: Any = [f"{prefix}-{i:05}-of-00006" for i in range(6)] if listed else f"{prefix}-*"
        arguments: dict[str, Any] = {"num_shards": 4, "overwrite": True, "sync": False}
        steps = 0
        for stop_after in range(100):
            with tfr.ShardedWriter(prefix, num_shards=6, overwrite=True, sync=False) as writer:
                writer.write_batch(records)
            steps = 0

            def step_or_stop(function: Any, stop_after: int = stop_after) -> Any:
                def stepping(*arguments: Any, **more: Any) -> Any:
                    nonlocal steps
                    steps += 1
                    if steps > stop_after:
                        raise KeyboardInterrupt
                    return function(*arguments, **more)

                return stepping

            with monkeypatch.context() as patch:
                patch.setattr(_native, "move_file", step_or_stop(_native.move_file))
                patch.setattr(os, "unlink", step_or_stop(os.unlink))
                patch.setattr(os, "replace", step_or_stop(os.replace))
                try:
                    tfr.shuffle(source, prefix, **arguments)
                    break
                except KeyboardInterrupt:
                    pass
            assert sorted(records) == sorted(
                {*read(f"{prefix}-*"), *(r for p in tmp_path.glob("*/*/shards/*") for r in read(p))}
            )
            try:
                tfr.shuffle(source, prefix, seed=1, **arguments)
            except ValueError as error:
                assert "replaced its own input" in str(error)
                made = tfr.shuffle(source, prefix, **arguments)
                assert len(made.paths) == 4
            except FileNotFoundError:
                assert listed  # only tidying up was left, and the input is gone
            assert names_in(prefix.parent) == [f"x-{i:05}-of-00004" for i in range(4)]
            assert sorted(read(f"{prefix}-*")) == sorted(records)
        assert steps > 10

    def test_leaves_other_files_in_the_work_folder_alone(
        self, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        work = tmp_path / "work"
        (work / "shards").mkdir(parents=True)
        for name in ("precious", "journal", "shards/0", "bucket-0"):
            (work / name).write_text("{}")
        for out in ("a", "b"):
            tfr.shuffle(f"{source}/*", tmp_path / out / "x", num_shards=2, work=work)
        assert names_in(work) == ["bucket-0", "journal", "precious", "shards"]

    def test_of_an_earlier_version_keeps_its_records(self, source: Path, tmp_path: Path) -> None:
        folder = Path(resumable_folder_path(str(tmp_path / "out" / "x"), tmp_path / "work"))
        (folder / "shards").mkdir(parents=True)
        (folder / "state.json").write_text("{}")
        with pytest.raises(FileExistsError, match="earlier version"):
            tfr.shuffle(f"{source}/*", tmp_path / "out" / "x", num_shards=2, work=tmp_path / "work")
        assert names_in(folder) == ["shards", "state.json"]

    def test_with_a_damaged_journal_keeps_the_shards(self, source: Path, tmp_path: Path) -> None:
        call: Any = functools.partial(
            tfr.shuffle, f"{source}/*", tmp_path / "out" / "x", num_shards=2, work=tmp_path / "work"
        )
        interrupted_at(_native, "move_file", call)
        (journal,) = (tmp_path / "work").glob("*/journal")
        journal.write_bytes(bytes(99))
        with pytest.raises(ValueError, match=r"read.* If the input is whole, delete that folder"):
            call()
        journal.unlink()
        with pytest.raises(ValueError, match=r"is missing\. If the input is whole, delete that"):
            call()
        shards = list((journal.parent / "shards").iterdir())
        assert sorted(read(shards)) == sorted(numbered(1000))
        for shard in shards:
            shard.unlink()
        assert sorted(read(call().paths)) == sorted(numbered(1000))

    def test_and_other_arguments_to_names_that_are_taken_keep_what_was_done(
        self, large_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        arguments: dict[str, Any] = {"num_shards": 2, "max_memory": SMALL_MEMORY, "sync": False}
        move_file = _native.move_file
        moved: list[bytes] = []

        def move_one(source: bytes, target: bytes, overwrite: bool) -> None:
            if moved:
                raise KeyboardInterrupt
            moved.append(target)
            move_file(source, target, overwrite)

        with monkeypatch.context() as patch:
            patch.setattr(_native, "move_file", move_one)
            with pytest.raises(KeyboardInterrupt):
                tfr.shuffle(f"{large_source}/*", tmp_path / "out" / "x", seed=1, **arguments)
        assert len(names_in(tmp_path / "out")) == 1
        with pytest.raises(FileExistsError):
            tfr.shuffle(f"{large_source}/*", tmp_path / "out" / "x", seed=2, **arguments)
        made = tfr.shuffle(f"{large_source}/*", tmp_path / "out" / "x", seed=1, **arguments)
        records = read(f"{large_source}/*")
        assert read(made.paths) == [records[i] for i in expected_order(len(records), 1)]


def test_the_memory_that_more_buckets_take_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    with open(tmp_path / "source" / "huge", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match=r"takes max_memory=(\d+) or more") as raised:
        tfr.shuffle(
            tmp_path / "source" / "huge", tmp_path / "out" / "x", num_shards=2, max_memory="64MiB"
        )
    needed = int(str(raised.value).split("max_memory=")[1].split()[0])
    assert needed > 1 << 28
    with pytest.raises(tfr.CorruptRecordError):  # reading begins, and the input is zeros
        tfr.shuffle(
            tmp_path / "source" / "huge", tmp_path / "out" / "x", num_shards=2, max_memory=needed
        )
    assert not (tmp_path / "out").exists()


def test_without_sync_nothing_is_flushed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    for sync in (False, True):
        tfr.shuffle(f"{source}/*", tmp_path / f"{sync}" / "x", num_shards=2, sync=sync)
        assert bool(flushed) is sync


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """Shuffles 200 MB in 48 MiB, beside the memory of the interpreter, NumPy and the module."""
    for shard in range(4):
        write(tmp_path / "source" / str(shard), [bytes(1000)] * 50_000)
    script = """
import resource, sys
import tfrfast as tfr
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
shuffle = tfr.shuffle  # imports what it needs
before = peak()
shuffle(sys.argv[1], sys.argv[2], num_shards=3, max_memory=48 << 20, sync=False)
print(peak() - before)
"""
    grown = printed_by(script, f"{tmp_path}/source/*", f"{tmp_path}/out/x")
    assert int(grown) < 48 << 10


@pytest.mark.parametrize(
    ("text", "count"),
    [("1GiB", 2**30), ("512M", 2**29), ("200 mb", 200 * 2**20), ("1000", 1000), ("1.5K", 1536)],
)
def test_sizes_are_read_as_people_write_them(text: str, count: int) -> None:
    assert parse_bytes(text) == count


def test_the_command_does_what_the_function_does(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tfr.shuffle(f"{source}/*", f"{tmp_path}/a/x", num_shards=2, seed=5)
    command = ["shuffle", f"{source}/*", "--out", f"{tmp_path}/b/x", "--seed", "5"]
    assert main([*command, "--num-shards", "2", "--max-memory", "64M"]) == 0
    assert f"content hash {made.content_hash}" in capsys.readouterr().out
    assert read(f"{tmp_path}/b/*") == read(made.paths)
    assert main([*command, "--num-shards", "2"]) == 2  # the names are taken
    assert "overwrite" in capsys.readouterr().err
    options = ["--max-bytes", "5K", "--splits", "a=0.5,b=0.5", "--json", "--overwrite"]
    assert main([*command, *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["content_hash"] == made.content_hash
    assert sorted(printed["splits"]) == ["a", "b"]
    assert printed["skipped"] == []
