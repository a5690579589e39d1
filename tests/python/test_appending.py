"""Shards that are added to a set: the old ones stay as they are, and all new ones appear at once."""

from __future__ import annotations

import contextlib
import glob
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from cli_files import run
from killed_calls import failing_second_move, killed_after
from other_users import STRANGER, as_user, needs_root, open_folder
from step_files import LENGTHS, write_episodes
from tfrfast.jobs.deleting.deletion import FOLDER
from tfrfast.storage.journal import JOURNAL, Journal, line_of
from tfrfast.storage.unpublished import append_folder, facts_of
from tfrfast.writing import appending
from tfrfast.writing.key_files import keys_of


def record(number: int) -> bytes:
    return tfr.encode_example({"id": number, "text": b"record %d" % number})


def write(prefix: Path, numbers: range, **options: Any) -> list[str]:
    with tfr.ShardedWriter(prefix, **{"num_shards": 2, "append": True, **options}) as writer:
        for number in numbers:
            writer.write(record(number))
    return writer.paths


def ids(data: str | list[str]) -> list[int]:
    return [
        int(tfr.parse_example([r], {"id": tfr.FixedLen((), "int64")})["id"][0])
        for r in tfr.Reader(data)
    ]


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    prefix = tmp_path / "data" / "train"
    write(prefix, range(10), num_shards=1)
    return prefix


OLD = list(range(10))


def test_names_of_a_set_need_not_be_utf8(tmp_path: Path) -> None:
    prefix = tmp_path / "set-\udcff"
    for append in (False, True):
        with tfr.ShardedWriter(prefix, num_shards=1, append=append) as writer:
            writer.write(b"record")
    names = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert names == ["set-\udcff-00000-of-00001", "set-\udcff-00001-of-00001"]


def test_keys_of_shards_that_are_replaced_meanwhile_are_not_taken_over(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = f"{prefix}-*"
    tfr.build_keys(data, "id")

    def keys_and_deletion(*arguments: Any) -> Iterator[Any]:
        yield from list(keys_of(*arguments))
        tfr.delete(data, records=[0])

    monkeypatch.setattr(appending, "keys_of", keys_and_deletion)
    with pytest.warns(RuntimeWarning, match="not extended: Old shards were replaced meanwhile"):
        write(prefix, range(10, 12), num_shards=1)
    assert ids(data) == [*OLD[1:], 10, 11]
    with pytest.raises(FileNotFoundError, match="There is no key file"):
        tfr.Reader(data).by_key("id")


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_new_shards_come_after_the_old_ones(tmp_path: Path, compression: Any) -> None:
    prefix = tmp_path / "data" / "train"
    first = write(prefix, range(10), num_shards=1, compression=compression)
    facts = os.stat(first[0])
    tfr.build_keys(f"{prefix}-*", "id")
    second = write(prefix, range(10, 13))
    third = write(prefix, range(13, 20), num_shards=None, max_bytes=150)
    copied = tfr.copy(first, [3, 4], prefix, append=True).paths
    names = [os.path.basename(path) for path in [*first, *second, *third, *copied]]
    assert names == [f"train-{number:05}-of-00001" for number in range(len(names))]
    assert len(third) > 1
    for pattern in ("*", "train-*", "train-*-of-00001", "train-?????-of-?????"):
        assert sorted(glob.glob(f"{prefix.parent}/{pattern}")) == [*first, *second, *third, *copied]
    expected = [*OLD, 10, 12, 11, *range(13, 20), 3, 4]
    assert ids(f"{prefix}-*") == expected
    reader = tfr.Reader(f"{prefix}-*", index="require")
    assert {shard.compression for shard in reader.shards} == {compression}
    keyed = reader.by_key("id")
    assert (len(keyed), keyed.duplicates) == (20, 2)
    assert keyed.find([0, 9, 11, 19]).tolist() == [expected.index(each) for each in (0, 9, 11, 19)]
    assert len(tfr.Reader(first).by_key("id")) == 10, "the old shards keep their keys"
    assert os.stat(first[0]).st_mtime_ns == facts.st_mtime_ns
    assert not [path for path in prefix.parent.iterdir() if path.name.startswith(".")]


def test_a_killed_append_leaves_the_old_set(tmp_path: Path, capsys: Any) -> None:
    """Killed at each point. Until the last one, patterns find the old shards alone."""
    seen = set()
    for calls in range(1000):
        prefix = tmp_path / str(calls) / "train"
        data = f"{prefix}-*"
        write(prefix, range(10), num_shards=1, sync=False)
        tfr.build_keys(data, "id")
        new = range(10, 20)

        def append(prefix: Path = prefix, new: range = new) -> object:
            return write(prefix, new, num_shards=3)

        killed = killed_after(calls, append)
        there = len(glob.glob(data)) - 1
        found = ids(data)
        folder = str(prefix.parent)
        for same in ("{}", "{}//", "{}//train-*", "{}/.//train-*", "{}/**/train-*", "{}*//train-*"):
            assert ids(same.format(folder)) == found, same
        assert sorted(found) in (OLD, list(range(20)))
        seen.add((there, len(found)))
        assert run("verify", data) == 0
        told = "belong to an append" in capsys.readouterr().err
        if there:
            assert told == (len(found) == 10)
        write(prefix, range(30, 32), sync=False)
        assert ids(data) == [*found, 30, 31]
        if len(found) == 10:
            assert len(tfr.Reader(data).by_key("id")) == 12
            assert len(glob.glob(data)) == 3
        if not killed:
            break
    else:
        raise AssertionError("it never ended")
    assert seen == {(0, 10), (1, 10), (2, 10), (3, 10), (3, 20)}


def test_a_failure_while_shards_get_their_names_takes_them_back(prefix: Path) -> None:
    with failing_second_move():
        write(prefix, range(10, 20))
    assert [path.name for path in prefix.parent.iterdir()] == ["train-00000-of-00001"]
    write(prefix, range(10, 12))
    assert ids(f"{prefix}-*") == [*OLD, 10, 11]


def test_indexes_may_lie_elsewhere_and_shards_be_empty(tmp_path: Path) -> None:
    prefix, options = tmp_path / "data" / "train", {"index_folder": str(tmp_path / "indexes")}
    write(prefix, range(4), compression="GZIP", **options)
    data = f"{prefix}-*"
    tfr.build_keys(data, "id", **options)
    tfr.delete(data, records=[0, 1], **options)  # all of the first shard
    write(prefix, range(4, 6), **options)
    reader = tfr.Reader(data, index="require", **options)
    assert [shard.compression for shard in reader.shards][1:] == ["GZIP"] * 3
    assert reader.by_key("id").find([1, 3, 4, 5]).tolist() == [0, 1, 2, 3]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "indexes"]


@pytest.mark.parametrize("new", [(), (4, 0, 9)], ids=["no records", "records"])
def test_a_step_file_is_made_from_that_of_the_old_shards(
    tmp_path: Path, new: tuple[int, ...]
) -> None:
    prefix = tmp_path / "data" / "train"
    old = write_episodes(tmp_path / "old")
    with tfr.ShardedWriter(prefix, num_shards=2) as writer:
        writer.write(tfr.encode_example({"steps/image": [b"short"] * 3}))  # decides the layout
        writer.write_batch(tfr.Reader(old)[:])
    data = f"{prefix}-*"
    count = 3 + sum(LENGTHS)
    assert len(tfr.Steps(data, along="steps/")) == count
    with tfr.ShardedWriter(prefix, num_shards=2, append=True) as writer:
        writer.write_batch(list(tfr.Reader(write_episodes(tmp_path / "new", new, first=100))))
    whole = Path(tfr.build_steps(data, along="steps/", folder=tmp_path)).read_bytes()
    content = {}
    for number in range(2):
        path = writer.paths[0].replace("00002-of", f"0000{number}-of")
        facts, content[path] = os.stat(path), Path(path).read_bytes()
        with open(path, "r+b") as file:  # damage, which nobody is to meet
            file.seek(40 if number == 0 else 1000)
            file.write(b"\xff" * 8)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    made = tfr.build_steps(data, along="steps/")
    assert Path(made).read_bytes() == whole
    assert len(tfr.Steps(data, along="steps/", index="require")) == count + sum(new)
    os.unlink(made)
    for path, held in content.items():
        Path(path).write_bytes(held)  # at another time
    tfr.build_steps(data, along="steps/", threads=1)
    again = Path(made).read_bytes()
    assert (len(again), again != whole) == (len(whole), True)  # it has another stamp


def test_one_writer_appends_at_a_time(prefix: Path) -> None:
    with tfr.ShardedWriter(prefix, num_shards=1, append=True) as writer:
        writer.write(record(10))
        with pytest.raises(BlockingIOError, match="Another writer appends to this set"):
            write(prefix, range(20, 30))
        write(prefix.with_name("valid"), range(3))  # another set
    assert ids(f"{prefix}-*") == [*OLD, 10]
    writer = tfr.ShardedWriter(prefix, num_shards=1, append=True)
    writer.write(record(11))
    writer.abort()
    with pytest.raises(ZeroDivisionError), tfr.ShardedWriter(prefix, num_shards=1, append=True):
        _ = 1 / 0
    write(prefix, range(11, 12), num_shards=1)
    assert ids(f"{prefix}-*") == [*OLD, 10, 11]


def test_what_is_refused(prefix: Path) -> None:
    def refuses(why: str, **options: Any) -> None:
        before = sorted(prefix.parent.iterdir())
        with pytest.raises(ValueError, match=why):
            write(prefix, range(3), **options)
        assert sorted(prefix.parent.iterdir()) == before

    refuses("overwrite=True makes no sense", overwrite=True)
    refuses("has no compression, not 'GZIP'", compression="GZIP")
    with pytest.raises(ValueError, match="needs a lock that keeps other writers out"):
        tfr.ShardedWriter("s3://bucket/set/train", num_shards=1, append=True)
    info = prefix.parent / "dataset_info.json"
    info.write_text("{}")
    refuses("TensorFlow Datasets reads the shards that")
    info.unlink()
    write(prefix, range(10, 14))
    os.unlink(f"{prefix}-00001-of-00001")
    refuses("'.*train-00001-of-00001' is missing from the 3 files of the set, which")
    os.rename(f"{prefix}-00002-of-00001", f"{prefix}-00001-of-00002")
    refuses("of two sets")


def test_a_writer_that_waits_notices_other_changes(prefix: Path) -> None:
    writer = tfr.ShardedWriter(prefix, num_shards=1, append=True)
    with tfr.Writer(f"{prefix}-00001-of-00001") as other:
        other.write(record(77))
    with pytest.raises(FileExistsError, match="has got or lost shards"):
        writer.close()
    assert ids(f"{prefix}-*") == [*OLD, 77]


def test_the_command(prefix: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "numbers").write_text("3\n4\n")
    arguments = ["--records", str(tmp_path / "numbers"), "--out", str(prefix)]
    assert run("copy", f"{prefix}-*", *arguments) == 2
    assert "Choose another name, or pass --overwrite" in capsys.readouterr().err
    assert run("copy", f"{prefix}-*", *arguments, "--append", "--num-shards", "2") == 0
    assert ids(f"{prefix}-*") == [*OLD, 3, 4]


@needs_root
def test_a_strangers_journal_hides_and_removes_nothing_of_ours() -> None:
    with open_folder() as folder:
        prefix = folder / "train"
        shards = write(prefix, range(10), num_shards=2)
        outside = folder / "outside"
        outside.mkdir()
        (outside / "file").write_bytes(b"keep me")
        named = {os.path.basename(shards[1]): shards[1], "../x": shards[0]}
        named[str(outside / "file")] = str(outside / "file")

        def plant() -> None:
            hidden = append_folder(str(prefix))
            os.makedirs(hidden)
            os.chmod(hidden, 0o777)
            facts = {name: facts_of(path) for name, path in named.items()}
            Journal(hidden).begin(facts)
            os.makedirs(folder / FOLDER)
            os.chmod(folder / FOLDER, 0o777)

        as_user(STRANGER, plant)
        assert sorted(ids(f"{prefix}-*")) == OLD
        with pytest.raises(PermissionError, match="folder is of another user"):
            tfr.delete(f"{prefix}-*", records=[0])
        with pytest.raises(PermissionError, match="folder is of another user"):
            write(prefix, range(10, 12), num_shards=1)
        Path(append_folder(str(prefix)), JOURNAL).write_text("[")
        assert sorted(ids(f"{prefix}-*")) == OLD
        assert (outside / "file").exists()


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[" * 100_000,
        "[]",
        '{"a\\u0000b": [1]}',
        json.dumps({"n" * 300: [1]}),
        "folder",
        "pipe",
    ],
    ids=["cut", "deep", "list", "NUL", "long name", "folder", "pipe"],
)
def test_a_damaged_journal_concerns_its_own_set(prefix: Path, content: str) -> None:
    write(prefix.with_name("other"), range(3), num_shards=1)
    hidden = Path(append_folder(str(prefix)))
    hidden.mkdir()
    if content == "folder":
        (hidden / JOURNAL).mkdir()
    elif content == "pipe":
        os.mkfifo(hidden / JOURNAL)
    else:
        (hidden / JOURNAL).write_bytes(line_of(content.encode()))
    with pytest.raises(ValueError, match="of an unfinished append, cannot be read, or is damaged"):
        tfr.Reader(f"{prefix}-*")
    assert ids(f"{prefix.parent}/other-*") == [0, 1, 2]


@needs_root
def test_a_writer_that_shares_nothing_hides_only_its_new_shards() -> None:
    with open_folder() as folder:
        prefix = folder / "train"
        hidden = Path(append_folder(str(prefix)))
        write(prefix, range(10), num_shards=1)
        before = os.umask(0o077)
        try:
            calls = 0
            while killed_after(calls, lambda: write(prefix, range(3))):
                if len(os.listdir(folder)) > 3 and (hidden / JOURNAL).exists():
                    break
                calls += 1
        finally:
            os.umask(before)
        assert as_user(STRANGER, lambda: ids(f"{prefix}-*")) == OLD
        hidden.chmod(0o700)
        denied = "PermissionError.*of an unfinished append, cannot be read"
        with pytest.raises(AssertionError, match=denied):
            as_user(STRANGER, lambda: ids(f"{prefix}-*"))


def test_writers_take_turns_and_readers_see_whole_appends(prefix: Path) -> None:
    """The folder of a writer that ends is another's at once. A listing may meet any moment."""
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                appended = 0
                while appended < 15:
                    with contextlib.suppress(BlockingIOError):
                        write(prefix, range(100, 110), num_shards=3, sync=False)
                        appended += 1
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    sizes = set()
    while children:
        ended, status = os.waitpid(children[0], os.WNOHANG)
        if ended:
            assert status == 0
            children.pop(0)
        sizes.add(len(tfr.Reader(f"{prefix}-*")))
    assert {size % 10 for size in sizes} == {0}
    assert len(tfr.Reader(f"{prefix}-*")) == 310
