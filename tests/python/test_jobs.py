"""Jobs as pure splits: tasks run by threads, by processes, twice, or not to their end."""

import gc
import multiprocessing
import os
import pickle
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrfast as tfr
from endless_task import EndlessTask
from patience import PATIENCE_S
from record_files import flip_payload_byte
from tfrecord_model import write_shard
from tfrfast import _native
from tfrfast.base.job_threads import JobThreads
from tfrfast.jobs import copying, cutting, running, verifying
from tfrfast.jobs.chosen_records import ChosenRecords, ShardSizes, cut_rows
from tfrfast.jobs.cutting import grouped, part_bytes
from tfrfast.jobs.running import Advance, Workers, run_tasks
from tfrfast.reader import Skipped
from tfrfast.storage.remote.options import Storage
from twice import Twice


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(params=["threads", "thread pool", "twice", "processes"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor | None]:
    if request.param == "threads":
        yield None
    elif request.param == "twice":
        yield Twice()
    elif request.param == "processes":
        yield request.getfixturevalue("processes")
    else:
        with ThreadPoolExecutor(3) as pool:
            yield pool


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of some kilobytes are cut into many parts."""
    monkeypatch.setattr(cutting, "_SMALLEST", 1 << 10)
    monkeypatch.setattr(cutting, "_OPENING", 0)


@pytest.fixture
def shards(tmp_path: Path, small_parts: None) -> list[str]:
    """Small shards, an empty shard, and a large shard that is divided."""
    folder = tmp_path / "data"
    folder.mkdir()
    counts = [5, 3000, 0, 40, 1]
    return [
        write_shard(folder / f"s{number}", [b"%d of %d" % (i, number) for i in range(count)])
        for number, count in enumerate(counts)
    ]


# -- how tasks run


class Numbered:
    amount = 1

    def __init__(self, number: int) -> None:
        self.number = number

    def run(self, advance: Advance) -> int:
        advance(1)
        return self.number


class Failing:
    amount = 1

    def run(self, advance: Advance) -> int:
        raise LookupError("no 7")


class FailingAfter(Failing):
    def __init__(self, other: EndlessTask) -> None:
        self.other = other

    def run(self, advance: Advance) -> int:
        self.other.wait()
        return super().run(advance)


class Counting(ThreadPoolExecutor):
    """Counts the submitted tasks, and the submitted tasks that have not ended."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.lock = threading.Lock()
        self.submitted = self.running = self.most = 0
        self.is_full = threading.Event()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        with self.lock:
            self.submitted += 1
            self.running += 1
            self.most = max(self.most, self.running)
            if self.submitted == 16:
                self.is_full.set()
        future = super().submit(fn, *args, **kwargs)
        future.add_done_callback(self.ended)
        return future

    def ended(self, _: Future[Any]) -> None:
        with self.lock:
            self.running -= 1


class NumberedAfter(Numbered):
    def __init__(self, number: int, event: threading.Event) -> None:
        super().__init__(number)
        self.event = event

    def run(self, advance: Advance) -> int:
        assert self.event.wait(PATIENCE_S)
        return super().run(advance)


def ignore(newly: int) -> None:
    pass


@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_results_are_in_order(executor: Executor | None, count: int) -> None:
    told: list[int] = []
    results = run_tasks([Numbered(n) for n in range(count)], executor, 4, told.append)
    assert list(results) == list(range(count))
    assert sum(told) == count


def test_the_first_error_is_raised_as_it_is(executor: Executor | None) -> None:
    tasks = [Numbered(0), Failing(), *(Numbered(n) for n in range(100))]
    with pytest.raises(LookupError, match="no 7"):
        list(run_tasks(tasks, executor, 2, ignore))


def test_an_error_ends_the_others() -> None:
    endless = EndlessTask()
    with pytest.raises(LookupError, match="no 7"):
        list(run_tasks([endless, FailingAfter(endless)], None, 2, ignore))
    assert endless.ended.is_set()


def test_whoever_stops_listening_ends_the_tasks() -> None:
    endless = EndlessTask()
    results = run_tasks([Numbered(0), endless], None, 2, ignore)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert endless.ended.is_set() or not endless.begun.is_set()


class Stubborn(Future[Any]):
    """Continues after the first cancellation, like a task on another machine."""

    def __init__(self, is_running: bool) -> None:
        super().__init__()
        self.cancelled_times = 0
        if is_running:
            self.set_running_or_notify_cancel()
        else:
            self.set_exception(LookupError("no 7"))

    def cancel(self) -> bool:
        self.cancelled_times += 1
        return False


def test_a_survey_of_local_records_ends_with_its_job(shards: list[str]) -> None:
    reader = tfr.Reader(shards)
    with JobThreads(1) as pool:
        pool.end_waits()
        survey = pool.submit(_native.Survey(reader._core).read, 0, len(reader))
        with pytest.raises(KeyboardInterrupt):
            survey.result()


def test_a_second_interruption_cancels_again(monkeypatch: pytest.MonkeyPatch) -> None:
    futures = [Stubborn(is_running=True), Stubborn(is_running=False)]
    waiting = iter(futures)

    class Elsewhere(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            return next(waiting)

    def wait(left: list[Future[Any]]) -> None:
        assert left == futures[:1]
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        list(run_tasks([Numbered(0), Numbered(1)], Elsewhere(), None, ignore))
    assert futures[0].cancelled_times == 2


def test_few_tasks_are_in_flight() -> None:
    with Counting(2) as pool:
        first = NumberedAfter(0, pool.is_full)  # the others overtake it
        tasks = [first, *(Numbered(number) for number in range(1, 1000))]
        for number, result in enumerate(run_tasks(tasks, pool, None, ignore)):
            assert result == number
            assert pool.submitted <= number + 16
        assert pool.submitted == 1000
        assert pool.most == 4


# -- how jobs are cut


def test_parts_are_about_as_large_as_they_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_SMALLEST", 100)
    monkeypatch.setattr(cutting, "_LARGEST", 100)
    monkeypatch.setattr(cutting, "_OPENING", 0)
    sizes = [1, 2, 900, 3, 40, 50, 60, 5000, 1]
    groups = grouped("abcdefghi", sizes, 1)
    assert ["".join(group) for group, _ in groups] == ["ab", "c", "def", "g", "h", "i"]
    assert [size for _, size in groups] == [3, 900, 93, 60, 5000, 1]


def test_parts_are_neither_tiny_nor_huge() -> None:
    assert part_bytes(10 << 40, 2) == 256 << 20
    assert part_bytes(0, 2) == 8 << 20


def test_many_small_shards_are_several_parts() -> None:
    names = [str(number) for number in range(10_000)]
    groups = grouped(names, [100] * 10_000, 2)
    assert [name for group, _ in groups for name in group] == names
    assert 16 <= len(groups) <= 20
    assert len(grouped(names[:3], [100] * 3, 2)) == 1


@pytest.mark.parametrize("target", [1, 100, 5000, 10**9])
def test_ranges_hold_each_record_once(shards: list[str], target: int) -> None:
    known = ShardSizes(tfr.Reader(shards))
    ranges = list(cut_rows(known, target))
    assert [number for each in ranges for number in each] == list(range(3046))
    total = sum(os.path.getsize(shard) for shard in shards)
    assert sum(map(known.bytes_of, ranges)) == total
    assert len(ranges) == 1 or max(map(known.bytes_of, ranges)) <= 2 * target + 40


def sizes_of(shards: list[tuple[int, int]]) -> ShardSizes:
    """Shards of (records, bytes of each record)."""
    facts = [SimpleNamespace(num_records=n, num_bytes=n * size) for n, size in shards]
    reader: Any = SimpleNamespace(
        shards=facts, _makes_records=False, _absolute_paths=list, _options={}
    )
    return ShardSizes(reader)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(16, 1000)), max_size=12),
    st.integers(1, 40),
)
def test_every_record_is_in_one_part_and_every_part_in_its_shards(
    shards: list[tuple[int, int]], count: int
) -> None:
    some = sizes_of(shards)
    parts = some.divided(count)
    assert [number for part in parts for number in part] == list(range(some.starts[-1]))
    assert all(len(part) > 0 for part in parts)
    assert len(parts) <= count
    owner = np.repeat(np.arange(len(shards)), [records for records, _ in shards])
    for part in parts:
        holders = range(len(shards))[some.holders_of(part)]
        assert (holders[0], holders[-1]) == (owner[part[0]], owner[part[-1]])


def test_parts_have_about_as_many_bytes_each() -> None:
    shards = [(1000, 10), (10, 1000), (0, 5), (1, 10_000), (100, 100)]
    sizes = np.repeat([10, 1000, 5, 10_000, 100], [records for records, _ in shards])
    for part in sizes_of(shards).divided(4):
        assert sizes[part.start : part.stop].sum() == 10_000


def test_one_huge_shard_becomes_many_parts_and_many_small_ones_share_one() -> None:
    assert sizes_of([(100, 1)]).divided(4) == [range(n, n + 25) for n in range(0, 100, 25)]
    assert len(sizes_of([(1, 7)] * 1000).divided(10)) == 10
    assert sizes_of([(3, 1)]).divided(10) == [range(1), range(1, 2), range(2, 3)]
    assert sizes_of([]).divided(2) == sizes_of([(0, 1)]).divided(2) == []


@pytest.mark.parametrize(
    "numbers", [range(3, 10), range(5, 3005), range(3045, 3046), range(0), [3040, 2, 2, 3004, 3005]]
)
def test_pickled_rows_open_only_what_they_need(shards: list[str], numbers: Any) -> None:
    reader = tfr.Reader(shards)
    numbers = numbers if isinstance(numbers, range) else np.array(numbers)
    rows = pickle.loads(pickle.dumps(ChosenRecords(ShardSizes(reader), numbers)))
    assert [rows.reader[int(i)] for i in rows.numbers] == [reader[int(i)] for i in numbers]
    assert [int(i) + rows.base for i in rows.numbers] == list(numbers) or rows.base == 0
    assert len(rows.reader.shards) < 5


def test_rows_are_handed_on(shards: list[str]) -> None:
    rows: Any = ChosenRecords(ShardSizes(tfr.Reader(shards)), range(3000, 3010))
    for _ in range(3):
        rows = pickle.loads(pickle.dumps(rows))
    assert rows.base + rows.numbers.start == 3000
    assert [rows.reader[i] for i in rows.numbers] == list(tfr.Reader(shards)[3000:3010])


def test_a_name_that_is_a_pattern_elsewhere_is_an_error(tmp_path: Path, small_parts: None) -> None:
    named = write_shard(tmp_path / "s[12]", [b"record"] * 3)
    pickled = pickle.dumps(ChosenRecords(ShardSizes(tfr.Reader(named)), range(3)))
    for number in (1, 2):
        os.link(named, tmp_path / f"s{number}")
    os.unlink(named)
    rows = pickle.loads(pickled)
    with pytest.raises(tfr.StaleIndexError, match="2 shards here, and 1 where"):
        list(rows.reader)


def test_secrets_stay_behind(shards: list[str]) -> None:
    storage = Storage({"token": "hush", "timeout": 7})
    reader = tfr.Reader(shards, storage=storage)
    for task in (
        ChosenRecords(ShardSizes(reader), range(3)),
        *verifying.plan_verification(shards, Workers(Twice()), storage),
    ):
        pickled = pickle.dumps(task)
        assert b"hush" not in pickled
        assert b"timeout" in pickled


def test_other_files_elsewhere_are_an_error(shards: list[str], processes: Executor) -> None:
    task = copying._FindGood(ChosenRecords(ShardSizes(tfr.Reader(shards)), range(10)))
    write_shard(shards[0], [b"other"] * 6)
    with pytest.raises(tfr.StaleIndexError, match="6 records in .* bytes here, and 5 in"):
        list(run_tasks([task], processes, None, ignore))


def test_rows_keep_nothing_that_was_pickled(shards: list[str]) -> None:
    rows = ChosenRecords(ShardSizes(tfr.Reader(shards)), range(10))
    before = vars(rows).copy()
    pickle.dumps(rows)
    assert vars(rows) == before


def test_shards_of_a_deletion_do_not_stay_open(shards: list[str]) -> None:
    known = ShardSizes(tfr.Reader(shards))
    rows = pickle.loads(pickle.dumps(ChosenRecords(known, range(10), np.array([3]))))
    reader = weakref.ref(rows.reader)
    del rows
    gc.collect()
    assert reader() is None


# -- the jobs


def test_indexes(shards: list[str], executor: Executor | None) -> None:
    built = tfr.build_index(shards, executor=executor, threads=3)
    assert [(each.shard, each.num_records) for each in built] == list(
        zip(shards, [5, 3000, 0, 40, 1], strict=True)
    )
    assert all(each.was_built for each in built)
    assert os.listdir(os.path.dirname(built[0].path)) == ["index"]
    assert len(tfr.Reader(shards, index="require")) == 3046
    assert not any(each.was_built for each in tfr.build_index(shards, executor=executor))


def test_indexes_that_somebody_has_built_before_are_kept(
    shards: list[str], tmp_path: Path, executor: Executor | None
) -> None:
    into = tmp_path / "indexes"
    for shard in shards[:3]:
        _native.build_index(shard, str(into), False, _native.IndexFolders(), ignore)
    built = tfr.build_index(shards, index_folder=into, executor=executor, threads=3)
    assert [each.was_built for each in built] == [False] * 3 + [True] * 2
    assert os.listdir(into) == ["index"]


def test_verifying(shards: list[str], executor: Executor | None) -> None:
    total = sum(os.path.getsize(shard) for shard in shards)
    assert tfr.verify(shards, executor=executor, threads=3) == (5, 3046, total, [])
    for shard, offsets in ((shards[1], [20, 30_000, 30_100, 30_200]), (shards[4], [13])):
        with open(shard, "r+b") as file:
            for offset in offsets:
                file.seek(offset)
                file.write(b"\xff")
    found = tfr.verify(shards, executor=executor, threads=3)
    with tfr.Reader(shards, on_corruption="skip", index="memory") as reader:
        good = len(reader[:])
        expected = sorted(reader.skipped, key=lambda each: (shards.index(each.path), each.begin))
    assert found == (5, good, total, expected)
    assert len(found.damage) >= 4


def test_large_shards_are_divided_together(
    tmp_path: Path,
    small_parts: None,
    executor: Executor | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shards = [write_shard(tmp_path / f"s{n}", [b"%d" % i for i in range(4000)]) for n in range(4)]
    Path(shards[1]).write_bytes(b"\xff" * 50_000)
    total = sum(os.path.getsize(shard) for shard in shards)
    opened = []

    class Opened(tfr.Reader):
        def __init__(self, paths: Any, **options: Any) -> None:
            opened.append(list(paths))
            super().__init__(paths, **options)

    monkeypatch.setattr(verifying, "Reader", Opened)
    storage = Storage(None)
    tasks = verifying.plan_verification(shards, Workers(executor, 3), storage)
    assert opened == [shards, [shards[0], *shards[2:]]]  # again, without the shard without records
    assert len(tasks) > 12
    monkeypatch.undo()
    whole = Skipped(shards[1], 0, 50_000, None)
    assert tfr.verify(shards, executor=executor, threads=3) == (4, 12_000, total, [whole])


def test_damage_alone(tmp_path: Path, small_parts: None, executor: Executor | None) -> None:
    path = tmp_path / "shard"
    path.write_bytes(b"\xff" * 100_000)
    whole = Skipped(str(path), 0, 100_000, None)
    assert tfr.verify(path, executor=executor, threads=3) == (1, 0, 100_000, [whole])


@pytest.mark.parametrize("size", [{"num_shards": 7}, {"max_bytes": 20_000}, {}])
def test_copies(shards: list[str], tmp_path: Path, executor: Executor | None, size: Any) -> None:
    reader = tfr.Reader(shards)
    numbers = np.random.default_rng(1).integers(-3046, 3046, 4000)
    made = tfr.copy(reader, numbers, tmp_path / "out" / "x", executor=executor, **size)
    with tfr.ShardedWriter(tmp_path / "plain" / "x", **(size or {"num_shards": 1})) as writer:
        if "num_shards" in size:
            runs = [each.tolist() for each in np.array_split(numbers, 7)]
            in_turn = [run[i] for i in range(572) for run in runs if i < len(run)]
            writer.write_batch([reader[number] for number in in_turn])
        else:
            writer.write_batch(reader[numbers])
    assert contents(tmp_path / "out") == contents(tmp_path / "plain")
    assert made.paths == [path.replace("plain", "out") for path in writer.paths]
    assert (made.num_records, made.num_bytes) == (4000, writer.num_bytes)
    assert list(tfr.Reader(made.paths, index="require")) == [reader[int(i)] for i in numbers]
    assert os.listdir(tmp_path / "out.tfrfast") == ["index"]


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def test_copies_of_nothing(shards: list[str], tmp_path: Path, executor: Executor | None) -> None:
    made = tfr.copy(shards, [], tmp_path / "out", max_bytes=10, executor=executor)
    assert (len(made.paths), made.num_records) == (1, 0)
    assert len(tfr.Reader(made.paths)) == 0


def test_copies_leave_damage_out(
    shards: list[str], tmp_path: Path, executor: Executor | None
) -> None:
    flip_payload_byte(shards[1], tfr.Reader(shards[1]), 7)
    reader = tfr.Reader(shards, on_corruption="skip")
    numbers = [3, 12, 12, 11, 3040, 12, 4]
    made = tfr.copy(reader, numbers, tmp_path / "x", num_shards=2, executor=executor)
    assert list(tfr.Reader(made.paths)) == [b"3 of 0", b"6 of 1", b"35 of 3", b"4 of 0"]
    assert [(each.path, each.records) for each in made.skipped] == [(shards[1], 1)]


def test_the_damage_left_out_is_the_same_whoever_copies(
    shards: list[str], tmp_path: Path, executor: Executor | None
) -> None:
    flip_payload_byte(shards[1], tfr.Reader(shards[1]), 7)
    with open(shards[3], "r+b") as file:
        file.seek(88)  # the fifth frame
        file.write(b"\xff" * 8)
    Path(shards[4]).write_bytes(b"\xff" * 99)
    reader = tfr.Reader(shards, on_corruption="skip")
    frames = reader.skipped
    assert [each.path for each in frames] == [shards[3], shards[4]]
    # the reader remembers the damaged record, which is not requested here
    assert len(reader[:]) < len(reader)
    made = tfr.copy(reader, [3], tmp_path / "x", executor=executor)
    assert made.num_records == 1
    assert made.skipped == frames
    made = tfr.copy(reader, slice(None), tmp_path / "y", executor=executor)
    assert [each.path for each in made.skipped] == [shards[1], shards[3], shards[4]]


def test_checking_is_cut_and_told(
    shards: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(copying, "_PIECE_BYTES", 100)
    cut = []

    def run(tasks: Any, *others: Any) -> Any:
        cut.append([task.amount for task in tasks])
        return run_tasks(tasks, *others)

    monkeypatch.setattr(running, "run_tasks", run)
    reader = tfr.Reader(shards, on_corruption="skip", threads=1)
    assert tfr.copy(reader, slice(None), tmp_path / "x", progress=True).num_records == 3046
    assert max(cut[0]) <= 16 * reader._records_within(100) < 3046 // 8
    assert sum(cut[0]) == 3046
    shown = capsys.readouterr().err
    assert "Checking" in shown
    assert "Copying" in shown


def test_a_failed_check_ends_its_tasks(shards: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    endless = EndlessTask()

    def run(task: Any, advance: Advance) -> Any:
        if task.rows.numbers[0] == 0:
            return check(task, advance)
        return endless.run(advance)

    class Full(set[Skipped]):
        def update(self, *_: object) -> None:
            endless.wait()
            raise MemoryError

    monkeypatch.setattr(copying, "_PIECE_BYTES", 100)
    check = copying._FindGood.run
    monkeypatch.setattr(copying._FindGood, "run", run)
    known = ShardSizes(tfr.Reader(shards))
    numbers = np.arange(len(known.reader))
    with pytest.raises(MemoryError) as caught:
        copying.without_damage(known, numbers, Workers(threads=2), Full())
    assert endless.ended.is_set(), caught.value  # whose traceback keeps the frames


def test_threads_are_at_least_one(shards: list[str]) -> None:
    for threads in (0, -1):
        with pytest.raises(ValueError, match=f"threads is {threads}, but must be from 1"):
            tfr.verify(shards, threads=threads)
        with pytest.raises(ValueError, match=f"threads is {threads}, but must be from 1"):
            tfr.build_keys(shards, "id", threads=threads)
        with pytest.raises(ValueError, match=f"threads is {threads}, but must be from 1"):
            tfr.build_index(shards, threads=threads)


def test_copies_that_fail_leave_nothing(
    shards: list[str], tmp_path: Path, executor: Executor | None
) -> None:
    flip_payload_byte(shards[3], tfr.Reader(shards[3]), 30)
    out = tmp_path / "out"
    with pytest.raises(tfr.CorruptRecordError, match="record 30"):
        tfr.copy(shards, slice(None), out / "x", num_shards=9, executor=executor)
    assert not out.exists()
    made = tfr.copy(shards, slice(3000), out / "x", num_shards=9, executor=executor)
    before = contents(out)
    with pytest.raises(tfr.CorruptRecordError, match="record 30"):
        tfr.copy(shards, slice(None), out / "x", overwrite=True, executor=executor)
    assert contents(out) == before
    assert len(made.paths) == len(before) == 9


def test_what_appears_during_a_copy_is_kept(
    shards: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves = []
    move_file = _native.move_file

    def move(shard: Any, final: Any, overwrite: bool) -> None:
        moves.append(final)
        if len(moves) == 3:
            (tmp_path / "out" / "x-00002-of-00004").write_text("mine")
        move_file(shard, final, overwrite)

    monkeypatch.setattr(_native, "move_file", move)
    with pytest.raises(FileExistsError, match="x-00002-of-00004"):
        tfr.copy(shards, slice(None), tmp_path / "out" / "x", num_shards=4)
    assert contents(tmp_path / "out") == {"x-00002-of-00004": b"mine"}


@pytest.mark.parametrize("feature", ["id", "name"])
@pytest.mark.parametrize("max_memory", [1 << 30, 1 << 12])
def test_keys(
    tmp_path: Path, small_parts: None, executor: Executor | None, feature: str, max_memory: int
) -> None:
    ids = np.random.default_rng(2).integers(0, 2000, 3000)
    shards = []
    for first, end in ((0, 10), (10, 2800), (2800, 3000)):
        shards.append(str(tmp_path / f"data-{first}"))
        with tfr.Writer(shards[-1], sync=False) as writer:
            for number in range(first, end):
                key = ids[number]
                some = {"id": key, "name": b"%d" % key} if number % 7 else {"other": 1}
                writer.write_example(some)
    options: dict[str, Any] = {"folder": tmp_path, "max_memory": max_memory}
    path = tfr.build_keys(shards, feature, executor=executor, threads=3, **options)
    made = Path(path).read_bytes()
    tfr.build_keys(shards, feature, threads=1, folder=tmp_path)
    assert made == Path(path).read_bytes()
    keyed = tfr.Reader(shards).by_key(feature, folder=tmp_path)
    some = [number for number in range(3000) if number % 7][::50]
    keys = ids[some].tolist() if feature == "id" else [b"%d" % key for key in ids[some]]
    for key, number in zip(keys, some, strict=True):
        same = [n for n in range(3000) if n % 7 and ids[n] == ids[number]]
        assert keyed[key] == tfr.Reader(shards)[same[0]]
