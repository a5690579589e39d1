"""Deleting records: nothing is lost, and nothing is left, whenever the process is killed."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import stat
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from cli_files import run
from endless_task import EndlessTask
from killed_calls import failing_second_move, killed_after
from record_files import write_rows
from tfrfast import _native
from tfrfast.jobs.copying import WriteShard
from tfrfast.jobs.deleting import delete as job
from tfrfast.jobs.deleting.deletion import FOLDER, Deletion
from tfrfast.jobs.running import Advance
from tfrfast.storage.journal import line_of
from tfrfast.writing.publishing import uninterrupted

SECRET = b"the secret of user 7"


def record(number: int) -> bytes:
    user = number % 10
    text = SECRET if user == 7 else b"nothing about anybody"
    return tfr.encode_example({"id": number, "user": b"user %d" % user, "text": text * 20})


def write_set(folder: Path, records: int = 60, **options: Any) -> str:
    """Four shards; record i is in shard i % 4."""
    with tfr.ShardedWriter(folder / "train", num_shards=4, sync=False, **options) as writer:
        for number in range(records):
            writer.write(record(number))
    return str(folder / "train-*")


def in_order(records: int = 60) -> list[bytes]:
    return [record(number) for shard in range(4) for number in range(shard, records, 4)]


def contents(data: str) -> list[bytes]:
    with tfr.Reader(data) as reader:
        return list(reader)


@pytest.fixture
def data(tmp_path: Path) -> str:
    return write_set(tmp_path / "data")


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_what_was_deleted_is_nowhere(
    tmp_path: Path, compression: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data = write_set(tmp_path / "data", compression=compression)
    for feature in ("user", "id"):
        tfr.build_keys(data, feature)
    tfr.build_keys(sorted(map(str, (tmp_path / "data").iterdir()))[1:], "user")  # of a part
    tfr.Loader(data, tfr.ByTokens(1000, lengths="text"))  # keeps the lengths of records
    cache = tfr.DiskCache(tmp_path / "inflated", "1G")
    for user in tfr.Reader(data, decompressed_cache=cache):
        assert user
    secrets = [SECRET, b"user 7", int(_hash(b"user 7")).to_bytes(8, "little")]
    assert all(_files_with(tmp_path, secret) for secret in secrets)
    before = contents(data)
    reader = tfr.Reader(data)
    done = tfr.delete(data, keys={"user": ["user 7"]}, decompressed_cache=cache)
    assert (done.num_records, len(done.shards), done.missing) == (6, 2, [])
    assert contents(data) == [each for each in before if SECRET not in each]
    assert {shard.compression for shard in tfr.Reader(data).shards} == {compression}
    for secret in secrets:
        assert _files_with(tmp_path, secret) == [], secret
    users, ids = (tfr.Reader(data, index="require").by_key(each) for each in ("user", "id"))
    assert (len(users), users.duplicates, len(ids)) == (9, 45, 54)
    assert b"user 7" not in users
    assert {path.suffix for path in (tmp_path / "data.tfrfast").iterdir()} == {"", ".keys"}
    for number in (0, 1, 35, 59):  # a renumbered key file finds what was there
        assert ids[number] == record(number)
    assert list(reader) == before, "the old shards were open"


def _hash(key: bytes) -> np.uint64:
    hashes: Any = _native.hash_strings(
        np.frombuffer(key, np.uint8), np.array([0, len(key)], np.int64)
    )
    return np.uint64(hashes[0])


def _files_with(folder: Path, secret: bytes) -> list[Path]:
    found = []
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        if secret in content:
            found.append(path)
    return found


def test_a_killed_deletion_goes_on_from_its_journal(tmp_path: Path) -> None:
    """Killed at each point. The numbers of records have moved by then, and must not be used."""
    gone = [0, 3, 14, 15, 44, 59]  # of four shards
    expected = [each for number, each in enumerate(in_order()) if number not in gone]
    states = set()
    for calls in range(1000):
        folder = tmp_path / str(calls)
        data = write_set(folder / "data")
        tfr.build_keys(data, "id")

        def delete(data: str = data) -> tfr.jobs.deleting.delete.Deleted:
            return tfr.delete(data, records=gone, threads=1)

        killed = killed_after(calls, delete)
        now = contents(data)
        left = Deletion.load(str(folder / "data" / FOLDER))
        if left is not None:
            states.add(len(left.replaced))
            assert set(now) <= set(in_order())
            assert set(now) >= set(expected)
            with pytest.raises(ValueError, match="have moved. Finish it first"):
                tfr.delete(data, records=[0])
            if calls % 3 == 0:  # the folder may move meanwhile
                folder = folder.rename(tmp_path / f"{calls} moved")
                data = str(folder / "data" / "train-*")
                assert tfr.delete(data).num_records == len(gone)
            elif calls % 3 == 1:
                assert delete().num_records == len(gone)
            else:
                assert run("delete", "--finish", data) == 0
        elif killed and len(now) == 60:
            assert now == in_order()
            assert delete().num_records == len(gone)
        assert contents(data) == expected
        assert not (folder / "data" / FOLDER).exists() or killed
        if left is not None:
            assert not (folder / "data" / FOLDER).exists()
            keyed = tfr.Reader(data).by_key("id")
            assert len(keyed) == 54
            assert keyed[59 - 4] == record(55)
        shutil.rmtree(folder)
        if not killed:
            break
    else:
        raise AssertionError("it never ended")
    assert states == {0, 1, 2, 3, 4}


def test_a_shard_that_changes_under_an_unfinished_deletion_is_not_guessed(
    data: str, capsys: Any
) -> None:
    with failing_second_move():
        tfr.delete(data, records=slice(None), threads=1)
    assert len(contents(data)) == 45
    would = tfr.delete(data, dry_run=True)
    assert (would.num_records, len(would.shards)) == (45, 3)
    for command in ("info", "verify"):
        run(command, data)
        assert "A deletion of 60 records in 4 shards" in capsys.readouterr().err
    deletion = Deletion.load(f"{os.path.dirname(data)}/{FOLDER}")
    assert deletion is not None
    with tfr.Writer(deletion.path(3), overwrite=True) as writer:
        writer.write_batch([b"of someone else"] * 15)
    with pytest.raises(tfr.StaleIndexError, match="was changed or removed while a deletion of 15"):
        tfr.delete(data)
    assert contents(deletion.path(3)) == [b"of someone else"] * 15


def test_a_key_file_that_cannot_be_made_again_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexes = tmp_path / "indexes"
    with tfr.ShardedWriter(tmp_path / "set", num_shards=2, index_folder=indexes) as writer:
        for number in range(40):
            writer.write_example({"rare" if number < 2 else "usual": number})
    data = f"{tmp_path}/set-*"
    made = tfr.build_keys(data, "rare", index_folder=indexes)

    def fails(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(_native, "move_file", fails)
        with pytest.raises(OSError, match="Input/output"):
            tfr.delete(data, keys={"rare": [0, 1]}, index_folder=indexes)
    with pytest.warns(RuntimeWarning, match="The key file of 'rare' is gone"):
        tfr.delete(data)
    assert len(tfr.Reader(data)) == 38
    assert not os.path.exists(made)
    assert not (tmp_path / FOLDER).exists()


def test_ctrl_c_at_the_end_says_that_all_is_done(
    data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same call would delete other records, because the numbers have moved."""

    def interrupted(*arguments: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        finish(*arguments)

    finish = job._finish
    monkeypatch.setattr(job, "_finish", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored here
    try:
        with pytest.raises(KeyboardInterrupt, match="The deletion is complete"):
            tfr.delete(data, records=[0, 30])
    finally:
        signal.signal(signal.SIGINT, before)
    assert contents(data) == [each for number, each in enumerate(in_order()) if number % 30]
    assert not (Path(data).parent / FOLDER).exists()


def test_ctrl_c_just_after_a_thread_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    began, ended = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        time.sleep(0.2)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)
    assert ended.is_set() or not began.wait(0.5)


def test_a_deletion_is_finished_with_its_own_shards(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tfr.Writer(tmp_path / "data" / "other") as writer:
        writer.write(b"of another set")
    with monkeypatch.context() as patch:
        patch.setattr(_native, "move_file", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tfr.delete(data, records=[0])
    with pytest.raises(
        ValueError, match="is unfinished, but of other shards than these: '.*train-"
    ):
        tfr.delete(writer.path)
    assert tfr.delete(data).num_records == 1


@pytest.mark.parametrize(
    ("keys", "gone"),
    [(iter([b"7", b"17"]), 2), (map(str, [7, 17]), 2), (np.array("7"), 1)],
    ids=["iterator", "map", "array of no dimensions"],
)
def test_kinds_of_keys(tmp_path: Path, keys: Any, gone: int) -> None:
    path = write_rows(tmp_path / "records", ({"id": str(number)} for number in range(20)))
    done = tfr.delete(path, keys={"id": keys})
    assert not done.missing
    assert done.num_records == 20 - len(tfr.Reader(path)) == gone


def test_damage_that_goes_moves_the_records_of_key_files(data: str) -> None:
    shards = sorted(map(str, Path(data).parent.iterdir()))
    with tfr.Writer(shards[3], overwrite=True) as writer:
        writer.write_batch(
            [tfr.encode_example({"other": 1})] * 2
        )  # no record of the last has a key
    place = tfr.Reader(data).locate(2)
    with open(shards[0], "r+b") as file:
        file.seek(place.offset + 30)
        file.write(b"!!!")
    tfr.build_keys(tfr.Reader(data, on_corruption="skip"), "id")
    done = tfr.delete(data, records=[4], on_corruption="skip")
    assert (done.num_records, sum(each.records or 0 for each in done.skipped)) == (1, 1)
    left = contents(data)
    keyed = tfr.Reader(data).by_key("id")
    assert [left[number] for number in keyed.find([0, 28, 33])] == [
        record(0),
        record(28),
        record(33),
    ]
    assert keyed.find([8, 16]).tolist() == [-1, -1]
    assert not tfr.delete(data, keys={"id": [28, 33]}).missing


@pytest.mark.parametrize("place", [FOLDER, f"{FOLDER}/lock", ".train-append.tfrfast"])
def test_links_lead_to_nothing_that_is_lost(data: str, tmp_path: Path, place: str) -> None:
    (tmp_path / "home" / "letters").mkdir(parents=True)
    precious = tmp_path / "home" / "precious"
    precious.write_bytes(b"keep me")
    link = Path(data).parent / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(precious if link.name == "lock" else tmp_path / "home")
    with pytest.raises(OSError, match=r"is of another user, or a link|symbolic links"):
        if place.endswith("-append.tfrfast"):
            tfr.ShardedWriter(Path(data).parent / "train", num_shards=1, append=True)
        else:
            tfr.delete(data, records=[0])
    assert precious.read_bytes() == b"keep me"
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["letters", "precious"]
    assert contents(data) == in_order()


@pytest.mark.parametrize("content", [b"{}", b"[" * 100_000, None], ids=["odd", "deep", "pipe"])
def test_a_damaged_journal_is_called_that(data: str, content: bytes | None, capsys: Any) -> None:
    journal = Path(data).parent / FOLDER / "journal"
    journal.parent.mkdir()
    if content is None:
        os.mkfifo(journal)
    else:
        journal.write_bytes(line_of(content))
    assert run("verify", data) == 0
    assert "is damaged, or of a newer tfrfast" in capsys.readouterr().err
    with pytest.raises(ValueError, match="is damaged, or of a newer tfrfast. Every shard is whole"):
        tfr.delete(data, records=[0], dry_run=True)


def test_a_failed_deletion_ends_its_tasks(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = EndlessTask()

    def run_task(task: WriteShard, advance: Advance) -> Any:
        if task.rows.numbers.start == 0:
            return write(task, advance)
        return endless.run(advance)

    def fails(*_: object) -> None:
        endless.wait()
        raise OSError(5, "Input/output error")

    write = WriteShard.run
    monkeypatch.setattr(WriteShard, "run", run_task)
    monkeypatch.setattr(job, "_replace", fails)
    with pytest.raises(OSError, match="Input/output"):
        tfr.delete(data, records=[0, 20], threads=2)
    assert endless.ended.is_set()


def test_two_deletions_at_once(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def meanwhile(*arguments: Any) -> Any:
        with pytest.raises(BlockingIOError, match="Another process deletes records in"):
            tfr.delete(data, records=[1])
        return check(*arguments)

    check = job._check
    monkeypatch.setattr(job, "_check", meanwhile)
    assert tfr.delete(data, records=[0]).num_records == 1


@pytest.mark.parametrize(
    ("records", "gone"),
    [
        ([], []),
        ([3, 3, -57], [3]),
        (slice(0, 15), range(15)),  # a whole shard, which stays, and is empty
        (np.arange(60) % 2 == 0, range(0, 60, 2)),
        (np.arange(60, dtype=np.uint8), range(60)),
    ],
    ids=["none", "repeated and negative", "a shard", "mask", "all"],
)
@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_records_by_number(tmp_path: Path, records: Any, gone: Any, compression: Any) -> None:
    data = write_set(tmp_path, compression=compression)
    shards = sorted(os.listdir(tmp_path))
    kept = [each for number, each in enumerate(in_order()) if number not in set(gone)]
    would = tfr.delete(data, records=records, dry_run=True)
    assert contents(data) == in_order()
    assert tfr.delete(data, records=records) == would
    assert would.num_records == sum(would.shards.values()) == len(gone)
    assert contents(data) == kept
    assert sorted(os.listdir(tmp_path)) == shards
    assert not tfr.verify(data).damage


def test_processes_write_and_indexes_lie_elsewhere(tmp_path: Path) -> None:
    indexes = str(tmp_path / "indexes")
    data = write_set(tmp_path / "data", index_folder=indexes)
    tfr.build_keys(data, "id", index_folder=indexes)
    with ProcessPoolExecutor(2) as executor:
        done = tfr.delete(data, keys={"id": [3, 17, 58]}, executor=executor, index_folder=indexes)
    assert done.num_records == 3
    assert not (tmp_path / "data.tfrfast").exists()
    reader = tfr.Reader(data, index="require", index_folder=indexes)
    assert sorted(reader.by_key("id").find(range(60)).tolist()) == [-1] * 3 + [*range(57)]
    assert list(reader) == [each for each in in_order() if each not in map(record, (3, 17, 58))]


def test_names_of_any_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = os.fsencode(tmp_path) + b"/\xff\n"
    os.mkdir(folder)
    shards = [os.fsdecode(folder + b"/\xfe%d\n" % number) for number in range(2)]
    for number, shard in enumerate(shards):
        with tfr.Writer(shard) as writer:
            writer.write_batch([record(number), record(9)])
    fails = iter([_native.move_file, lambda *_: 1 / 0, _native.move_file])
    monkeypatch.setattr(_native, "move_file", lambda *arguments: next(fails)(*arguments))
    with pytest.raises(ZeroDivisionError):
        tfr.delete(shards, keys={"id": 9}, threads=1)
    assert tfr.delete(shards, keys={"id": 9}).num_records == 2
    assert list(tfr.Reader(shards)) == [record(0), record(1)]


def test_only_the_shards_that_hold_the_records_are_replaced(data: str) -> None:
    folder = Path(data).parent
    before = {path.name: path.stat() for path in folder.iterdir()}
    os.chmod(folder / "train-00001-of-00004", 0o640)
    with tfr.ShardedWriter(folder / "valid", num_shards=2) as writer:
        writer.write_batch([record(1), record(2)])
    others = tfr.build_keys(str(folder / "valid-*"), "id")
    assert list(tfr.delete(data, records=[20]).shards) == [str(folder / "train-00001-of-00004")]
    after = {name: (folder / name).stat() for name in before}
    changed = [name for name in before if before[name].st_ino != after[name].st_ino]
    assert changed == ["train-00001-of-00004"]
    assert stat.S_IMODE(after[changed[0]].st_mode) == 0o640
    assert os.path.exists(others)


def test_links(tmp_path: Path, data: str) -> None:
    shards = sorted(map(str, Path(data).parent.iterdir()))
    links = tmp_path / "links"
    links.mkdir()
    for number, shard in enumerate(shards):
        (links / f"part-{number}").symlink_to(shard)
    assert tfr.delete(links / "part-*", records=[0, 59]).num_records == 2
    assert all(path.is_symlink() for path in links.iterdir())
    assert contents(data) == contents(str(links / "part-*")) == in_order()[1:-1]
    with pytest.raises(ValueError, match="lie in 2 folders"):
        tfr.delete([shards[0], tfr_copy(shards[0], tmp_path / "elsewhere")], records=[0])
    os.link(shards[2], tmp_path / "another name")
    with pytest.raises(ValueError, match="2 names"):
        tfr.delete(data, records=[30])
    assert contents(data) == in_order()[1:-1]
    twice = [shards[0], shards[0]]
    assert tfr.delete(twice, records=[0, 15]).num_records == 2
    assert contents(shards[0]) == in_order()[3:15] or len(contents(shards[0])) == 12


def tfr_copy(shard: str, to: Path) -> str:
    return shutil.copy(shard, to)


def test_damage_is_refused_before_anything_changes(data: str) -> None:
    shards = sorted(map(str, Path(data).parent.iterdir()))
    place = tfr.Reader(data).locate(18)
    with open(shards[1], "r+b") as file:
        file.seek(place.offset + 30)
        file.write(b"!!!")
    with pytest.raises(tfr.CorruptRecordError) as met:
        tfr.delete(data, records=[0, 16])
    assert (met.value.path, met.value.record) == (shards[1], 3)
    assert not (Path(data).parent / FOLDER).exists()
    assert len(tfr.Reader(data)) == 60
    assert tfr.delete(data, records=[0]).num_records == 1  # of another shard
    done = tfr.delete(data, records=[15], on_corruption="skip")
    assert [(each.path, each.records) for each in done.skipped] == [(shards[1], 1)]
    assert contents(shards[1]) == [
        record(number) for number in range(1, 60, 4) if number not in (5, 13)
    ]


@pytest.mark.parametrize(
    "fails", ["tfrfast.writing.shard_set.Writer", "tfrfast.storage.journal.Journal.add"]
)
def test_a_full_disk_leaves_the_set_as_it_was(
    data: str, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    tfr.build_keys(data, "id")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(fails, full)
        with pytest.raises(OSError, match="No space"):
            tfr.delete(data, records=[0, 30])
    assert contents(data) == in_order()
    assert not (Path(data).parent / FOLDER).exists()
    assert len(tfr.Reader(data).by_key("id")) == 60


def test_what_is_refused(data: str, tmp_path: Path) -> None:
    refused: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (ValueError, "no deletion is unfinished", {}),
        (ValueError, "Say one of", {"records": [1], "keys": {"user": []}}),
        (IndexError, "60 does not exist", {"records": [60]}),
        (TypeError, "a dict of one feature", {"keys": ["user 7"]}),
        (ValueError, "nothing|has no feature|no record", {"keys": {"nothing": ["a"]}}),
    ]
    for kind, why, options in refused:
        with pytest.raises(kind, match=why):
            tfr.delete(data, **options)
    assert contents(data) == in_order()
    assert not (Path(data).parent / FOLDER).exists()


def test_the_command(data: str, capsys: Any, tmp_path: Path) -> None:
    (tmp_path / "numbers").write_text("3\n59\n")
    assert run("delete", data, "--by", "id", "--key", "8", "--key", "800", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "1 record would be deleted from 1 shard\n" in said
    assert "1 key of no record, the first '800'" in said
    assert run("delete", data, "--records", str(tmp_path / "numbers")) == 0
    assert run("delete", data, "--by", "id", "--key", "8") == 0
    assert len(contents(data)) == 57
