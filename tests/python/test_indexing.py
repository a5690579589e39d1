"""The places of indexes: found, built by many processes at once, unwritable, killed half-way."""

import os
import resource
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from patience import PATIENCE_S
from tfrecord_model import write_shard

RECORDS = [b"%d" % i for i in range(300)]


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    (tmp_path / "data").mkdir()
    return [write_shard(tmp_path / "data" / f"s{i}", RECORDS) for i in range(3)]


def files_in(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


def indexes_of(reader: tfr.Reader) -> list[str | None]:
    return [shard.index for shard in reader.shards]


def test_opening_keeps_indexes_in_the_cache_and_nowhere_else(
    shards: list[str], tmp_path: Path, cache: Path
) -> None:
    before = files_in(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert indexes_of(tfr.Reader(shards)) == [None] * 3  # built
        found = indexes_of(tfr.Reader(shards))
    assert all(each and Path(each).parent.parent == cache / "index" for each in found)
    assert files_in(tmp_path) == before


def test_in_memory_keeps_nothing(shards: list[str], cache: Path) -> None:
    for _ in range(2):
        assert indexes_of(tfr.Reader(shards, index="memory")) == [None] * 3
    assert files_in(cache) == []


def test_build_index_uses_the_sibling_folder(shards: list[str], tmp_path: Path, io: Any) -> None:
    built = tfr.build_index(tmp_path / "data" / "s*")
    assert [each.shard for each in built] == shards
    assert [each.path for each in built] == [str(tmp_path / "data.tfrfast" / "index")] * 3
    assert files_in(tmp_path / "data.tfrfast") == ["index"]
    assert all(each.was_built and each.num_records == 300 and each.damage == 0 for each in built)
    reader = tfr.Reader(shards, index="require", io=io)
    assert indexes_of(reader) == [each.path for each in built]
    assert list(reader) == RECORDS * 3
    assert files_in(tmp_path / "data") == ["s0", "s1", "s2"]


def test_build_index_keeps_what_fits_unless_forced(shards: list[str]) -> None:
    tfr.build_index(shards)
    write_shard(shards[1], RECORDS[:200])
    assert [each.was_built for each in tfr.build_index(shards)] == [False, True, False]
    assert [each.was_built for each in tfr.build_index(shards, force=True)] == [True] * 3


def test_a_named_folder_is_the_only_place(shards: list[str], tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "else" / "where"
    tfr.build_index(shards[:1], index_folder=folder)
    assert indexes_of(tfr.Reader(shards, index_folder=folder)) == [
        str(folder / "index"),
        None,
        None,
    ]
    assert files_in(folder) == ["index"]
    assert indexes_of(tfr.Reader(shards, index_folder=str(folder))) == [str(folder / "index")] * 3
    assert files_in(cache) == []


def test_a_named_folder_serves_shards_of_one_name(shards: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "indexes"
    others = []
    for number in range(8):
        (tmp_path / str(number)).mkdir()
        others.append(write_shard(tmp_path / str(number) / "s0", RECORDS[: 10 + number]))
    built = tfr.build_index([shards[0], *others], index_folder=folder, threads=4)
    assert {each.path for each in built} == {str(folder / "index")}
    assert files_in(folder) == ["index"]
    for shard, each in zip([shards[0], *others], built, strict=True):
        with tfr.Reader(shard, index_folder=folder) as reader:
            assert indexes_of(reader) == [each.path]
            assert len(reader) == each.num_records
    assert not any(
        each.was_built for each in tfr.build_index([*others, shards[0]], index_folder=folder)
    )


def test_require_names_the_places(shards: list[str], tmp_path: Path, cache: Path) -> None:
    with pytest.raises(tfr.StaleIndexError) as raised:
        tfr.Reader(shards, index="require")
    message = str(raised.value)
    assert raised.value.path == shards[0]
    assert f"'{shards[0]}' has no index" in message
    assert str(tmp_path / "data.tfrfast" / "index") in message
    assert str(cache / "index") in message
    assert f"`tfrfast index {shards[0]}`" in message


def test_links_share_a_cached_index(shards: list[str], tmp_path: Path) -> None:
    os.symlink(shards[0], tmp_path / "link")
    tfr.Reader(shards[0])
    assert indexes_of(tfr.Reader(tmp_path / "link")) != [None]


def test_relative_paths_find_the_sibling_folder(
    shards: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tfr.build_index(shards)
    monkeypatch.chdir(tmp_path / "data")
    for path in ("s0", "./s0", "../data/s0", "..//data//s0"):
        assert list(tfr.Reader(path, index="require")) == RECORDS


@pytest.mark.parametrize("where", ["cache", "named"])
def test_every_flipped_byte_of_an_index_is_harmless(
    tmp_path: Path, cache: Path, io: Any, where: str
) -> None:
    records = RECORDS[:5]
    path = write_shard(tmp_path / "shard", records)
    with open(path, "ab") as file:
        file.write(b"torn")
    options: dict[str, Any] = {"io": io, "on_corruption": "skip"}
    if where == "named":
        options["index_folder"] = tmp_path / "named"
    tfr.Reader(path, **options)
    places = (cache if where == "cache" else tmp_path / "named").rglob("index")
    index = next(path for path in places if path.is_file())
    good = index.read_bytes()
    # In a named folder, a foreign file is not replaced, and is an error.
    begins = 0 if where == "cache" else 8
    for at in range(begins, len(good)):
        index.write_bytes(good[:at] + bytes([good[at] ^ (1 << at % 8)]) + good[at + 1 :])
        reader = tfr.Reader(path, **options)
        assert list(reader) == records
        assert reader.skipped == [(path, len(Path(path).read_bytes()) - 4, 89, 1)]
    for size in range(begins, len(good), 3):
        index.write_bytes(good[:size])
        assert list(tfr.Reader(path, **options)) == records


def test_an_index_of_another_shard(shards: list[str], tmp_path: Path, io: Any) -> None:
    tfr.build_index(shards)
    write_shard(shards[1], [b"x%d" % i for i in range(290)] + [b"y" * 300])
    with pytest.raises(tfr.StaleIndexError, match="another state of"):
        tfr.Reader(shards[1], index="require", io=io)
    assert tfr.Reader(shards[1], io=io)[290] == b"y" * 300


def test_a_cache_that_cannot_be_used_is_no_error(
    shards: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    for unusable in (tmp_path / "file", "/proc/no-such-folder", "/dev/null/x"):
        monkeypatch.setenv("TFRFAST_CACHE_DIR", str(unusable))
        assert list(tfr.Reader(shards)) == RECORDS * 3


def test_a_cache_that_others_may_write_to_is_a_warning_once(shards: list[str], cache: Path) -> None:
    tfr.Reader(shards)
    assert (cache / "index").stat().st_mode & 0o777 == 0o700
    (cache / "index").chmod(0o777)
    with pytest.warns(RuntimeWarning, match="index cache '.*' is not used: others may") as warned:
        readers = [tfr.Reader(shards) for _ in range(2)]
    assert [each.filename for each in warned] == [__file__]
    assert [indexes_of(reader) for reader in readers] == [[None] * 3] * 2
    (cache / "index").chmod(0o755)
    assert None not in indexes_of(tfr.Reader(shards))


def test_a_file_in_place_of_the_folder_for_indexes(shards: list[str], tmp_path: Path) -> None:
    (tmp_path / "data.tfrfast").touch()
    with pytest.raises(NotADirectoryError, match="A file has that name: move it") as raised:
        tfr.build_index(shards)
    assert raised.value.filename == str(tmp_path / "data.tfrfast")
    with pytest.raises(NotADirectoryError, match="A file has that name: move it"):
        tfr.Writer(tmp_path / "data" / "new")
    assert len(tfr.Reader(shards)) == 900


def in_fresh_process(code: str, *arguments: str, **options: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finished(process: "subprocess.Popen[str]") -> str:
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    return output


def test_a_full_disk_is_no_error_for_the_cache_and_one_for_a_folder(
    shards: list[str], tmp_path: Path, cache: Path
) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    code = """
        import sys, tfrfast as tfr
        assert len(tfr.Reader(sys.argv[2:])) == 900
        try:
            tfr.build_index(sys.argv[2:], index_folder=sys.argv[1])
        except OSError as error:
            print(error.errno, error.filename)
    """
    output = finished(in_fresh_process(code, str(tmp_path / "to"), *shards, preexec_fn=small_files))
    number, name = output.split(maxsplit=1)
    assert number == "27"  # EFBIG
    assert name.startswith(str(tmp_path / "to"))
    for folder in (tmp_path / "to", *(cache / "index").iterdir()):
        assert tfr._native.indexed_states(os.fsencode(folder)) == {}


def test_writers_in_many_processes_lose_no_index(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    code = """
        import sys, tfrfast as tfr
        folder, me = sys.argv[1:]
        for number in range(12):
            with tfr.Writer(f"{folder}/w{me}-{number}", sync=False) as writer:
                writer.write(b"%d" % number)
        with tfr.ShardedWriter(f"{folder}/s{me}", num_shards=3, sync=False) as writer:
            writer.write_batch([b"record"] * 6)
    """
    processes = [in_fresh_process(code, str(tmp_path / "data"), str(me)) for me in range(4)]
    doomed = in_fresh_process(code, str(tmp_path / "data"), "doomed")
    for process in processes:
        finished(process)
    doomed.kill()
    doomed.communicate()
    whole = sorted(set((tmp_path / "data").iterdir()) - set((tmp_path / "data").glob("*doomed*")))
    assert len(whole) == 4 * (12 + 3)
    with tfr.Reader(whole, index="require") as reader:
        assert len(reader) == 4 * (12 + 6)
        assert None not in indexes_of(reader)
    tfr.build_index(tmp_path / "data" / "*")
    assert [name for name in files_in(tmp_path / "data.tfrfast") if name[0] != "."] == ["index"]
    assert not any(each.was_built for each in tfr.build_index(whole))


def test_the_bar_is_drawn_when_asked_for(shards: list[str], capfd: Any) -> None:
    tfr.Reader(shards, progress=True, index="memory")
    drawn = capfd.readouterr().err
    assert "Indexing [##############################] 100%" in drawn
    assert drawn.endswith("\n")
    tfr.build_index(shards, progress=True)
    assert "100%" in capfd.readouterr().err


def test_no_bar_unless_asked_for_where_there_is_no_terminal(shards: list[str], capfd: Any) -> None:
    tfr.Reader(shards, index="memory")
    tfr.Reader(shards, index="memory", progress=False)
    tfr.build_index(shards)
    assert capfd.readouterr() == ("", "")


def test_pruning_leaves_what_is_not_ours_and_what_is_new(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFRFAST_CACHE_BYTES", "1")
    (cache / "index").mkdir(mode=0o700)
    foreign = cache / "index" / "a film.mkv"
    foreign.write_bytes(bytes(1 << 20))
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    old, new = (write_shard(tmp_path / name / "shard", [b"record"]) for name in ("old", "new"))
    tfr.Reader(old).close()
    (kept,) = set((cache / "index").iterdir()) - {foreign}
    os.utime(kept / "index", (1_600_000_000, 1_600_000_000))
    tfr.Reader(new).close()
    left = set((cache / "index").iterdir()) - {foreign}
    assert len(left) == 1
    assert kept not in left
    assert foreign.exists()
    assert tfr._native.prune_index_cache(0) == 1
    assert list((cache / "index").iterdir()) == [foreign]


def bytes_read() -> int:
    """Returns the number of bytes that this process has read."""
    return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


def scans(path: Path, **options: Any) -> bool:
    """Returns whether opening walks through the whole shard."""
    before = bytes_read()
    tfr.Reader(path, io="pread", **options).close()
    return bytes_read() - before >= path.stat().st_size


@pytest.mark.parametrize("compression", [None, "GZIP"])
@pytest.mark.parametrize("sync", [True, False])
def test_what_was_written_here_is_never_scanned(
    tmp_path: Path, sync: bool, compression: Any
) -> None:
    records = [b"record %06d" % i for i in range(10_000)]  # more bytes than an index has
    (tmp_path / "data").mkdir()
    with tfr.Writer(tmp_path / "data" / "one", sync=sync, compression=compression) as writer:
        writer.write_batch(records)
    prefix = tmp_path / "data" / "set"
    with tfr.ShardedWriter(prefix, num_shards=2, sync=sync, compression=compression) as sharded:
        sharded.write_batch(records * 2)
    tfr.shuffle(
        [tmp_path / "data" / "one"],
        tmp_path / "data" / "shuffled",
        num_shards=1,
        sync=sync,
        compression=compression,
    )
    paths = sorted((tmp_path / "data").glob("*-of-*"))
    assert len(paths) == 3
    for each in [tmp_path / "data" / "one", *paths]:
        assert not scans(each, index="require")
