"""The places of shards and indexes. Impossible places are refused at the beginning, and a replaced
file keeps its permissions."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from record_files import write_shard
from tfrfast.cli import main
from tfrfast.cli.damage import tell_of_unfinished_work

Write = Callable[..., object]
LONG = "n" * 252  # a name that a file may have, and its index may not
WRITERS: dict[str, Write] = {
    "Writer": lambda path, **options: tfr.Writer(path, **options),
    "ShardedWriter": lambda path, **options: tfr.ShardedWriter(
        path, num_shards=5, overwrite=True, **options
    ),
    "ShardedWriter, any number": lambda path, **options: tfr.ShardedWriter(
        path, max_bytes=1000, overwrite=True, **options
    ),
}


def refusal(write: Callable[[], object]) -> OSError:
    with pytest.raises(OSError, match="failed: ") as info:
        write()
    return info.value


REFUSED: dict[str, Callable[[], object]] = {
    "Writer": lambda: tfr.Writer("data/x" + 255 * "n"),
    "Writer, its index": lambda: tfr.Writer("data/x", index_folder="shard/x"),
    "ShardedWriter": lambda: tfr.ShardedWriter("new/deep/" + 255 * "n", num_shards=2),
    "ShardedWriter, its index": lambda: tfr.ShardedWriter(
        "new/x", num_shards=2, index_folder="shard/x"
    ),
    "copy": lambda: tfr.copy("shard", [0], "new/deep/" + 255 * "n"),
    "copy, its index": lambda: tfr.copy("shard", [0], "new/deep/x", index_folder="shard/x"),
    "shuffle of nothing": lambda: tfr.shuffle("none*", "new/deep/x", num_shards=1),
    "shuffle, its index": lambda: tfr.shuffle(
        "shard", "new/x", num_shards=1, index_folder="shard/x"
    ),
    "shuffle, its work": lambda: tfr.shuffle("shard", "new/x", num_shards=1, work="shard"),
    "keys": lambda: tfr.build_keys("shard", "id", folder="new/deep"),
    "shuffle to many": lambda: tfr.shuffle("shard", "new/x", num_shards=20, index_folder="ours/x"),
}


@pytest.mark.parametrize("refused", REFUSED)
def test_what_is_refused_leaves_no_folder(
    tmp_path: Path, data: Path, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_shard(tmp_path / "shard", [b"one"])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((OSError, ValueError)):
        REFUSED[refused]()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_somebody_removed_as_empty_is_made_again(data: Path) -> None:
    with tfr.Writer(data / "shard") as writer:
        writer.write(b"one")
        if os.listdir(data):
            pytest.skip("files of this filesystem have names at once")
        data.rmdir()
    assert list(tfr.Reader(data / "shard", index="require")) == [b"one"]


@pytest.mark.parametrize("writer", WRITERS)
def test_as_long_a_name_as_a_shard_may_have_has_an_index(data: Path, writer: str) -> None:
    path = data / LONG[: len(LONG) if writer == "Writer" else -15]
    written: Any = WRITERS[writer](path)
    written.close()
    assert len(tfr.Reader(f"{data}/*", index="require")) == 0


@pytest.mark.parametrize("writer", WRITERS)
def test_a_name_too_long_for_the_shard(data: Path, writer: str) -> None:
    error = refusal(lambda: WRITERS[writer](data / (LONG + "nnnn"), index=False))
    assert error.errno == errno.ENAMETOOLONG


@pytest.mark.parametrize("writer", WRITERS)
def test_a_folder_where_the_index_should_be(data: Path, writer: str) -> None:
    folder = Path(f"{data}.tfrfast") / "index"
    folder.mkdir(parents=True)
    error = refusal(lambda: WRITERS[writer](data / "out"))
    assert (error.errno, error.filename) == (errno.EISDIR, str(folder))
    assert os.listdir(data) == []


@pytest.mark.parametrize("writer", list(WRITERS)[1:])
def test_a_folder_where_a_shard_should_be(data: Path, writer: str) -> None:
    (data / "out-00003-of-00005").mkdir()
    error = refusal(lambda: WRITERS[writer](data / "out", index=False))
    assert (error.errno, error.filename) == (errno.EISDIR, str(data / "out-00003-of-00005"))


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_where_the_folder_of_indexes_should_be(data: Path, writer: str) -> None:
    Path(f"{data}.tfrfast").touch()
    error = refusal(lambda: WRITERS[writer](data / "out"))
    assert (error.errno, error.filename) == (errno.ENOTDIR, f"{data}.tfrfast")
    assert "Pass index=False" in str(error)


@pytest.mark.parametrize("shape", [{"num_shards": 5}, {"max_bytes": 1000}])
def test_a_shuffle_says_so_before_it_reads(data: Path, tmp_path: Path, shape: Any) -> None:
    source = write_shard(tmp_path / "source", [b"record"])
    Path(source).write_bytes(b"nothing that could be read")
    indexes = tmp_path / "indexes"
    (indexes / "index").mkdir(parents=True)
    error = refusal(lambda: tfr.shuffle(source, str(data / "out"), index_folder=indexes, **shape))
    assert error.errno == errno.EISDIR
    assert os.listdir(data) == []


def test_building_an_index_says_so_before_it_scans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = write_shard(tmp_path / "shard", [b"record"])
    folder = tmp_path / "indexes"
    (folder / "index").mkdir(parents=True)
    scanned: list[int] = []
    build = tfr._native.build_index
    for action in [
        lambda: build(
            os.fsencode(shard),
            os.fsencode(folder),
            False,
            tfr._native.IndexFolders(),
            scanned.append,
        ),
        lambda: tfr.Reader(shard, index_folder=folder),
    ]:
        assert refusal(action).errno == errno.EISDIR
    assert scanned == []


# ---- permissions


def replaced_by_writer(path: Path) -> None:
    with tfr.Writer(path, overwrite=True) as writer:
        writer.write(b"new")


def replaced_by_sharded_writer(path: Path) -> None:
    path.rename(path.with_name("out-00000-of-00001"))
    path.with_name("out-00001-of-00002").touch()
    with tfr.ShardedWriter(path.with_name("out"), max_bytes=1000, overwrite=True) as writer:
        writer.write(b"new")
    path.with_name("out-00000-of-00001").rename(path)
    assert os.listdir(path.parent) == [path.name]


def replaced_by_shuffle(path: Path) -> None:
    source = write_shard(path.parent.parent / "source", [b"new"])
    path.rename(path.with_name("out-00000-of-00001"))
    tfr.shuffle(source, str(path.with_name("out")), num_shards=1, overwrite=True)
    path.with_name("out-00000-of-00001").rename(path)


@pytest.mark.parametrize(
    "replace",
    [
        replaced_by_writer,
        replaced_by_sharded_writer,
        replaced_by_shuffle,
    ],
)
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o660, 0o440, 0o777])
def test_what_is_replaced_keeps_its_permissions(
    data: Path, replace: Callable[[Path], None], mode: int
) -> None:
    path = data / "shard"
    path.write_bytes(b"old")
    # Root may keep the owner, too. Other users own what is there already. They need permission to
    # open a file for writing in place.
    owner = (12345, 54321) if os.geteuid() == 0 else (os.geteuid(), path.stat().st_gid)
    os.chown(path, *owner)
    path.chmod(mode if os.geteuid() == 0 else mode | 0o200)
    before = path.stat()
    replace(path)
    assert list(tfr.Reader(path, index="memory")) == [b"new"]
    after = path.stat()
    assert stat.S_IMODE(after.st_mode) == stat.S_IMODE(before.st_mode)
    assert (after.st_uid, after.st_gid) == owner


def test_what_a_link_points_at_is_replaced_and_keeps_its_permissions(data: Path) -> None:
    (data / "real").write_bytes(b"old")
    (data / "real").chmod(0o600)
    (data / "link").symlink_to("real")
    replaced_by_writer(data / "link")
    assert (data / "link").is_symlink()
    assert list(tfr.Reader(data / "real", index="memory")) == [b"new"]
    assert stat.S_IMODE((data / "real").stat().st_mode) == 0o600


def test_the_permissions_are_those_that_the_file_has_in_the_end(data: Path) -> None:
    path = data / "shard"
    with tfr.Writer(path, overwrite=True) as writer:
        path.write_bytes(b"came meanwhile")
        path.chmod(0o604)
        writer.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_set_that_lacks_shards_is_called_that(tmp_path: Path, capsys: Any) -> None:
    prefix = tmp_path / "set"
    with tfr.ShardedWriter(prefix, num_shards=5) as writer:
        writer.write_batch([b"a record"] * 10)
    for number in (3, 4):  # as after a kill while files got their names
        os.unlink(f"{prefix}-{number:05}-of-00005")
    for command in ("info", "verify"):
        assert main([command, f"{prefix}-*"]) == 0
        told = capsys.readouterr().err
        assert "set-00003-of-00005' and 1 more are missing from the 5 files of the set" in told
    with pytest.raises(FileExistsError, match="set-00003-of-00005' and 1 more"):
        tfr.shuffle(f"{prefix}-*", prefix, num_shards=5, seed=1, progress=False)
    made = tmp_path / "made"
    tfr.shuffle(f"{prefix}-*", made, num_shards=2, seed=1, progress=False)
    assert main(["verify", f"{made}-*"]) == 0
    tell_of_unfinished_work(["s3://bucket/set-00000-of-00005"])  # others may be there
    assert "missing" not in capsys.readouterr().err
    with pytest.raises(FileExistsError, match="set is whole, so it is finished"):
        tfr.shuffle(f"{prefix}-*", made, num_shards=2, seed=1, progress=False)


@pytest.mark.parametrize("writer", [tfr.Writer, partial(tfr.ShardedWriter, num_shards=1)])
def test_shards_appear_where_they_were_begun(
    writer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    written = writer("shard", index_folder="../indexes")
    written.write(b"record")
    monkeypatch.chdir(tmp_path / "two")
    written.close()
    assert list(tfr.Reader(tmp_path / "one" / "shard*")) == [b"record"]
    assert {each.name for each in tmp_path.iterdir()} == {"one", "two", "indexes"}
    assert not list((tmp_path / "two").iterdir())
