"""`tfr.shuffle` as tasks of an executor: the same set, whoever runs the tasks and however often."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from orders import shuffled
from record_files import flip_payload_byte, names_in
from tfrfast import _native
from tfrfast.jobs.shuffling import dividing, spread_job
from tfrfast.jobs.shuffling.sorted_rows import SortedRows
from tfrfast.jobs.shuffling.task_folder import TaskFolder
from twice import Twice

SMALL_MEMORY = 16 << 20


@pytest.fixture(scope="module", params=["twice", "twice at once", "threads", "processes"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param.startswith("twice"):
        yield Twice(at_once=request.param != "twice")
    elif request.param == "threads":
        with ThreadPoolExecutor(3) as pool:
            yield pool
    else:
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
            yield processes


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread_job, "_SMALL_TASK_BYTES", 1 << 20)
    monkeypatch.setattr(spread_job, "_TASKS", 12)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """15 MB in four shards, one of them compressed, with small records before large records."""
    rng = np.random.default_rng(0)
    (tmp_path / "source").mkdir()
    for shard in range(4):
        lengths = np.sort(rng.integers(0, 12_000, 600)).tolist()
        compression: Any = "GZIP" if shard == 2 else None
        path = tmp_path / "source" / f"part-{shard}"
        with tfr.Writer(path, compression=compression, sync=False, index=False) as writer:
            writer.write_batch([b"%d-%d " % (shard, i) + bytes(n) for i, n in enumerate(lengths)])
    return tmp_path / "source"


def contents(made: Any) -> list[tuple[str, bytes]]:
    return [(os.path.basename(path), Path(path).read_bytes()) for path in made.paths]


@pytest.mark.parametrize(
    "how",
    [
        {"num_shards": 5},
        {"num_shards": 300, "compression": "GZIP"},
        {"num_shards": 1},
        {"num_shards": 7, "splits": {"train": 0.9, "test": 0.1}, "index": False},
    ],
    ids=str,
)
def test_the_set_is_that_of_one_machine(
    source: Path, tmp_path: Path, executor: Executor, how: dict[str, Any]
) -> None:
    common: dict[str, Any] = {"seed": 7, "sync": False, **how}
    one = tfr.shuffle(f"{source}/*", tmp_path / "one" / "x", **common)
    many = tfr.shuffle(
        f"{source}/*", tmp_path / "many" / "x", max_memory=SMALL_MEMORY, executor=executor, **common
    )
    assert contents(many) == contents(one)
    assert many[2:] == one[2:]
    assert {k: len(v) for k, v in many.splits.items()} == {k: len(v) for k, v in one.splits.items()}
    assert names_in(tmp_path / "many") == names_in(tmp_path / "one")
    if how.get("index", True):
        assert names_in(tmp_path / "many.tfrfast") == ["index"]
        assert len(tfr.Reader(many.paths, index="require")) == 2400


def test_damage_is_left_out_as_on_one_machine(
    source: Path, tmp_path: Path, executor: Executor
) -> None:
    flip_payload_byte(str(source / "part-0"), tfr.Reader(source / "part-0"), 11)
    flip_payload_byte(str(source / "part-3"), tfr.Reader(source / "part-3"), 599)
    arguments: dict[str, Any] = {"num_shards": 3, "on_corruption": "skip"}
    one = tfr.shuffle(f"{source}/*", tmp_path / "one" / "x", **arguments)
    many = tfr.shuffle(f"{source}/*", tmp_path / "many" / "x", executor=executor, **arguments)
    assert contents(many) == contents(one)
    assert many[2:] == one[2:]
    assert len(many.skipped) == 2
    with pytest.raises(tfr.CorruptRecordError, match="record 11"):
        tfr.shuffle(f"{source}/*", tmp_path / "none" / "x", num_shards=3, executor=executor)
    assert not (tmp_path / "none").exists()


def test_nothing_is_shuffled_to_empty_shards(tmp_path: Path) -> None:
    tfr.Writer(tmp_path / "empty").close()
    made = tfr.shuffle(tmp_path / "empty", tmp_path / "out" / "x", num_shards=2, executor=Twice())
    assert [len(tfr.Reader(path)) for path in made.paths] == [0, 0]


def test_a_driver_that_comes_back_finds_what_is_done(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver ends before each of its tasks in turn, and before the shards get their names."""
    whole = contents(tfr.shuffle(f"{source}/*", tmp_path / "whole" / "x", num_shards=4, seed=1))
    begun: list[str] = []

    class Killed(BaseException):
        pass

    def before(task: Any) -> None:
        if task.name not in begun:
            begun.append(task.name)
            raise Killed

    work = tmp_path / "work"
    arguments: dict[str, Any] = {"num_shards": 4, "seed": 1, "work": work, "sync": False}
    made = None
    for kind, method in ((dividing.Divide, "_divide"), (SortedRows, "write_shard")):
        monkeypatch.setattr(kind, method, counting(getattr(kind, method), calls := []))
        monkeypatch.setattr(kind, "calls", calls, raising=False)
    while made is None:
        try:
            made = tfr.shuffle(
                f"{source}/*", tmp_path / "out" / "x", executor=Twice(before), **arguments
            )
        except Killed:
            assert not (tmp_path / "out").exists()
            assert list(work.glob("*/journal"))
    assert contents(made) == whole
    assert len(begun) > 12
    assert len(dividing.Divide.calls) == sum(name.startswith("divided") for name in begun)  # type: ignore[attr-defined]
    assert len(SortedRows.calls) == 4  # type: ignore[attr-defined]
    assert names_in(work) == []


def counting(function: Any, calls: list[Any]) -> Any:
    def counted(*arguments: Any) -> Any:
        calls.append(arguments[1:])
        return function(*arguments)

    return counted


@pytest.mark.parametrize("lost", ["task", "result", "shard"])
def test_a_task_that_left_a_part_of_its_work_runs_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    expected = contents(tfr.shuffle(f"{source}/*", tmp_path / "whole" / "x", num_shards=2, seed=1))
    arguments: dict[str, Any] = {"num_shards": 2, "seed": 1, "work": tmp_path / "work"}

    def fail(folder: Any, name: str = "", _: Any = None, file: str = "") -> None:
        if lost == "result":
            os.replace(file, folder.path(name))
        raise OSError("killed")

    out = tmp_path / "out" / "x"
    with monkeypatch.context() as patch:
        if lost == "shard":  # before publication
            patch.setattr(spread_job.SpreadJob, "_check_totals", fail)
        else:  # before or after a file has its name
            patch.setattr(TaskFolder, "keep", fail)
        with pytest.raises(OSError, match="killed"):
            tfr.shuffle(f"{source}/*", out, executor=Twice(), **arguments)
    assert not [path for path in tmp_path.glob("work/*/*") if path.name.startswith(".")]
    if lost == "shard":
        for path in tmp_path.glob("work/*/shards/*"):
            path.unlink()
    (folder,) = {path.parent for path in tmp_path.glob("work/*/*")} - {
        *tmp_path.glob("work/shards")
    }
    (folder / ".killed").write_bytes(b"left")
    (folder / "divided-0.json").write_bytes(b"")
    assert contents(tfr.shuffle(f"{source}/*", out, executor=Twice(), **arguments)) == expected
    assert names_in(tmp_path / "work") == []


@pytest.mark.parametrize("at", [0, 1])
def test_input_that_changes_is_an_error_that_names_it(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Before its records are read, and between the first and the last of them."""
    victim = source / "part-1"

    def change(*_: Any) -> None:
        data = victim.read_bytes()
        victim.unlink()
        victim.write_bytes(data)

    checks = iter(range(1000))
    original = dividing.Divide._check_versions

    def check(self: Any) -> None:
        if str(victim) in self.shards and next(checks) == at:
            change()
        original(self)

    monkeypatch.setattr(dividing.Divide, "_check_versions", check)
    with pytest.raises(tfr.StaleIndexError, match="has changed since") as raised:
        tfr.shuffle(f"{source}/*", tmp_path / "out" / "x", num_shards=2, executor=Twice())
    assert raised.value.path == str(victim)
    made = tfr.shuffle(f"{source}/*", tmp_path / "out" / "x", num_shards=2, executor=Twice())
    assert contents(made) == contents(
        tfr.shuffle(f"{source}/*", tmp_path / "one" / "x", num_shards=2)
    )


def test_a_damaged_piece_is_an_error_that_names_it(source: Path, tmp_path: Path) -> None:
    def damage(task: Any) -> None:
        if task.name == "joined-0":
            (piece,) = tmp_path.glob("work/*/*/divided-3")
            data = bytearray(piece.read_bytes())
            data[40] ^= 1
            piece.write_bytes(data)

    with pytest.raises(tfr.CorruptRecordError, match=r"divided-3' is damaged at byte") as raised:
        tfr.shuffle(
            f"{source}/*",
            tmp_path / "out" / "x",
            num_shards=1,
            work=tmp_path / "work",
            executor=Twice(damage),
        )
    assert raised.value.path is not None
    assert raised.value.path.endswith("divided-3")
    assert not (tmp_path / "out").exists()


def test_no_task_holds_more_than_half_of_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the mean size of a record says little: 30 MB follow 20,000 tiny records."""
    with tfr.Writer(tmp_path / "source", sync=False) as writer:
        writer.write_batch([b"tiny"] * 20_000)
        writer.write_batch([bytes(30_000)] * 1000)
    held: list[int] = []

    bucket = _native.ShuffledBucket

    class Watched(bucket):
        @staticmethod
        def read(places: Any, *others: Any) -> Any:
            held.append(sum(size for _, _, size in places))
            return bucket.read(places, *others)

    original = dividing.Divide._read

    def reading(self: Any, numbers: Any, costs: Any, run: range) -> Any:
        held.append(int(costs[run.start : run.stop].sum()))
        return original(self, numbers, costs, run)

    monkeypatch.setattr(dividing.Divide, "_read", reading)
    monkeypatch.setattr(_native, "ShuffledBucket", Watched)
    tfr.shuffle(
        tmp_path / "source",
        tmp_path / "out" / "x",
        num_shards=1,
        max_memory=SMALL_MEMORY,
        executor=ThreadPoolExecutor(1),
    )
    assert len(held) >= 10
    assert SMALL_MEMORY // 4 < max(held) <= SMALL_MEMORY // 2


@pytest.mark.parametrize("count", [0, 1, 2, 1000, 300_001])
def test_first_keys_of_places_are_those_of_sorted_keys(count: int) -> None:
    keys = np.sort(shuffled(2**62, 5, last=count))
    places = np.linspace(0, count, min(count, 700) + 1).astype(int).tolist()
    expected = [int(keys[place]) if place < count else 2**62 for place in places]
    assert _native.shuffle_keys_at(places, count, 5) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_bytes": 100}, "num_shards counts the shards"),
        ({"num_shards": 10**6}, "but the input has 2,400 records"),
        ({"num_shards": 2, "out": "s3://bucket/x"}, "Name that folder: work="),
    ],
)
def test_a_call_that_cannot_be_spread_is_refused(
    source: Path, tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    out = arguments.pop("out", tmp_path / "out" / "x")
    with pytest.raises(ValueError, match=message):
        tfr.shuffle(f"{source}/*", out, executor=Twice(), **arguments)
    assert not (tmp_path / "out").exists()
