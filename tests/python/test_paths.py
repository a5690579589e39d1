"""The shards of a path, a glob, or a list of paths and globs."""

import contextlib
import errno
import glob
import io as io_module
import os
import pickle
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from quoted_code import ROOT
from tfrecord_model import write_shard
from tfrfast.storage.paths import expand_paths
from tfrfast.storage.schemes import SCHEMES

AWKWARD = [
    "with space",
    "ünïcödé-日本",
    "brackets[0-9]",
    "star*and?",
    "new\nline",
    "quote'\"",
    "-dash",
    os.fsdecode(b"not-utf8-\xff\xfe"),
]


def names(reader: tfr.Reader) -> list[str]:
    return [os.path.basename(shard.path) for shard in reader.shards]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_are_taken_literally(here: Path, io: Any, name: str) -> None:
    write_shard(here / name, [b"record"])
    for path in (name, os.fsencode(name), Path(name), os.path.join(here, name)):
        for _ in range(2):  # built, then found
            reader = tfr.Reader(path, io=io)
            assert list(reader) == [b"record"]
            assert os.path.basename(reader.shards[0].path) == name
    assert tfr.build_index(name)[0].shard == name
    assert list(tfr.Reader(name, index="require")) == [b"record"]


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_appear_in_errors(here: Path, name: str) -> None:
    Path(name).write_bytes(b"no TFRecord")
    with pytest.raises(tfr.CorruptRecordError) as raised:
        tfr.Reader(name)
    assert raised.value.path == name
    shown = name
    for character, text in (("\n", r"\x0a"), ("\udcff", r"\xff"), ("\udcfe", r"\xfe")):
        shown = shown.replace(character, text)
    assert f"'{shown}' is not a TFRecord file" in str(raised.value)


def test_awkward_names_in_folders_of_awkward_names(here: Path) -> None:
    for folder in AWKWARD:
        (here / folder).mkdir()
        paths = [
            write_shard(here / folder / name, [name.encode("utf8", "surrogateescape")])
            for name in AWKWARD
        ]
        built = tfr.build_index(paths)
        assert {Path(each.path).parent for each in built} == {here / (folder + ".tfrfast")}
        assert len(tfr.Reader(paths, index="require")) == len(AWKWARD)


def test_what_a_glob_finds_is_sorted_by_number(here: Path) -> None:
    for name in ("s10", "s9", "s1", "s100", "s2", "t1"):
        write_shard(here / name, [])
    assert names(tfr.Reader("s*")) == ["s1", "s2", "s9", "s10", "s100"]
    assert names(tfr.Reader("s?")) == ["s1", "s2", "s9"]
    assert names(tfr.Reader("[st]1")) == ["s1", "t1"]


def test_equal_numbers_of_other_widths_have_one_order(here: Path) -> None:
    for name in ("a1", "a01", "a001", "a1b", "a"):
        write_shard(here / name, [])
    assert names(tfr.Reader("a*")) == ["a", "a001", "a01", "a1", "a1b"]


def test_a_list_keeps_its_order_and_mixes_paths_and_globs(here: Path) -> None:
    for name in ("b", "a1", "a2"):
        write_shard(here / name, [])
    assert names(tfr.Reader(["b", Path("a*"), b"b"])) == ["b", "a1", "a2", "b"]
    assert names(tfr.Reader(each for each in ("b", "a1"))) == ["b", "a1"]


def test_globs_leave_out_folders_and_our_own_indexes(here: Path) -> None:
    (here / "data").mkdir()
    write_shard(here / "data" / "train-0", [b"record"])
    (here / "data" / "train-folder").mkdir()
    tfr.build_index("data/train-0")
    assert (here / "data.tfrfast" / "index").exists()
    (here / "data.tfrfast" / "index-1000").touch()
    assert names(tfr.Reader("data/*")) == ["train-0"]
    assert names(tfr.Reader("data*/*")) == ["train-0"]
    assert names(tfr.Reader("**/train-*")) == ["train-0"]


def test_a_recursive_glob(here: Path) -> None:
    for folder in ("x", "x/y"):
        (here / folder).mkdir()
        write_shard(here / folder / "shard", [])
    assert len(tfr.Reader("**/shard").shards) == 2


def test_a_pattern_that_matches_nothing_is_named(here: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        tfr.Reader("no-such-*")
    assert raised.value.filename == "no-such-*"
    assert "No shard matches the pattern 'no-such-*'" in str(raised.value)
    (here / "folder-1").mkdir()
    with pytest.raises(FileNotFoundError):
        tfr.Reader("folder-*")
    with pytest.raises(FileNotFoundError):
        tfr.build_index("no-such-*")


def test_a_path_that_does_not_exist_is_named(here: Path, io: Any) -> None:
    write_shard(here / "there", [])
    for index in ("auto", "memory", "require"):
        with pytest.raises(FileNotFoundError) as raised:
            tfr.Reader(["there", "missing"], io=io, index=index)
        assert raised.value.filename == "missing"
        assert raised.value.errno == 2
        assert "Opening 'missing' failed: No such file or directory." in str(raised.value)
    with pytest.raises(FileNotFoundError, match="missing"):
        tfr.build_index("missing")


def test_a_folder_is_its_shards(here: Path) -> None:
    (here / "data" / "more").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="There is no shard in 'data'"):
        tfr.Reader("data")
    shards = ["train-2", "train-10", "x.tfrecord", "y.gz"]
    for name in shards:
        write_shard(here / "data" / name, [name.encode()])
    for name in ("dataset_info.json", "README.MD", ".train-3", "_SUCCESS", "train-2.idx"):
        (here / "data" / name).write_text("no shard")
    for folder in ("data", Path("data"), b"data/", ["data"]):
        reader = tfr.Reader(folder)
        assert names(reader) == shards
        assert reader.read(range(4)).tolist() == [name.encode() for name in shards]
    assert [Path(each.shard).name for each in tfr.build_index("data")] == shards
    assert tfr.verify("data").num_records == tfr.shuffle("data", "out/x", num_shards=1).num_records
    (here / "data" / "unknown").write_text("neither a shard nor left out")
    with pytest.raises(tfr.RecordError, match="unknown"):
        tfr.Reader("data")


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("dtaa/train-*", "data/train-*"),
        ("data/trian-*", "data/train-*-of-*"),
        ("./data/train-*.tfrecord", "./data/train-*-of-*"),
        ("data/entirely-else*", None),
        ("da*a/trian-*", None),
    ],
)
def test_a_pattern_that_is_almost_right_is_set_right(
    here: Path, pattern: str, meant: str | None
) -> None:
    (here / "data").mkdir()
    for number in range(3):
        write_shard(here / "data" / f"train-0000{number}-of-00003", [])
    with pytest.raises(FileNotFoundError) as raised:
        tfr.Reader(pattern)
    said = str(raised.value)
    assert (f"Did you mean {meant!r}?" in said) if meant else ("Did you mean" not in said)


def test_a_pipe_is_not_a_shard(here: Path) -> None:
    os.mkfifo("pipe")
    with pytest.raises(ValueError, match="'pipe' is not a regular file"):
        tfr.Reader("pipe")


def test_a_file_that_hides_its_size_is_not_an_empty_shard(here: Path, io: Any) -> None:
    if os.path.exists("/proc/cpuinfo"):
        with pytest.raises(ValueError, match="'/proc/cpuinfo' has bytes, but its size is 0"):
            tfr.Reader("/proc/cpuinfo", io=io)


def test_a_shard_that_may_not_be_read(here: Path) -> None:
    write_shard(here / "secret", [b"record"])
    os.chmod("secret", 0)
    if os.access("secret", os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(PermissionError) as raised:
        tfr.Reader("secret")
    assert raised.value.filename == "secret"


def test_a_null_character_does_not_cut_a_path_short(here: Path) -> None:
    write_shard(here / "there", [])
    with pytest.raises(ValueError, match="null character"):
        tfr.Reader("there\0-but-not-this")
    with pytest.raises(ValueError, match="null character"):
        tfr.DiskCache("there\0-but-not-this", "1G")


@pytest.mark.parametrize("paths", [3, None, [3], {"a": 1}.values(), 0.5, ["a", None], object()])
def test_what_is_no_path(paths: Any) -> None:
    with pytest.raises(TypeError, match="A path is a str, bytes or os.PathLike, or a list of them"):
        tfr.Reader(paths)


OUR_URLS = ["gs://bucket/train-*", "s3://b/x", "az://c/x", "https://host/x"]
OTHER_URLS = ["HTTPS://host/x", "hdfs://h/x", "abfs+x://y"]


@pytest.mark.parametrize("url", OUR_URLS)
def test_urls_need_obstore(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tfrfast.storage.remote import library

    monkeypatch.setattr(library, "_loaded", None)
    for name in ("obstore", "obstore._obstore"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match="pip install obstore"):
        tfr.Reader(url)


@pytest.mark.parametrize("scheme", ["s3", "odd"])
def test_a_file_whose_name_looks_like_a_url_is_a_file(here: Path, scheme: str) -> None:
    (here / f"{scheme}:" / "bucket").mkdir(parents=True)
    write_shard(here / f"{scheme}:/bucket/shard", [b"record"])
    for path in (f"{scheme}://bucket/shard", Path(f"{scheme}:/bucket/shard")):
        assert list(tfr.Reader(path)) == [b"record"]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        *((url, "names no object") for url in ("s3://bucket", "gs://", "az:///x", "https://host/")),
        *((url, "names a folder") for url in ("gs://b/a/*/", "https://host/x/")),
    ],
)
def test_urls_that_name_no_object(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        tfr.Reader(url)


@pytest.mark.parametrize("url", ["s3://bucket/set/x", "gs://bucket/set/*", "https://host/x"])
def test_a_path_is_no_url(url: str) -> None:
    for each in (tfr.Reader, lambda path: tfr.Writer(path)):
        with pytest.raises(ValueError, match="pathlib has dropped a slash. Pass it as a str"):
            each(Path(url))


@pytest.mark.parametrize(
    "url", ["s3://b//x", "az://b/a//x", "https://host/a/%2E%2E/x", "gs://b/./x*"]
)
def test_urls_that_no_request_can_name(url: str) -> None:
    """A request would name another object, or would be refused after all bytes were written."""
    for each in (tfr.Reader, tfr.build_index):
        with pytest.raises(ValueError, match="cannot be requested"):
            each(url)  # type: ignore[operator]
    if not url.startswith("https"):
        with pytest.raises(ValueError, match="cannot be requested"):
            tfr.Writer(url, index=False)


@pytest.mark.parametrize("url", OTHER_URLS)
def test_urls_are_named_as_what_they_are(url: str) -> None:
    open_any: list[Any] = [tfr.Reader, tfr.build_index, lambda url: tfr.Loader(url, 1)]
    for each in open_any:
        for path in (url, [url], url.encode()):
            with pytest.raises(
                ValueError, match=r"is a URL, but shards are read.*Mount.*copy"
            ) as raised:
                each(path)
            assert repr(url) in str(raised.value)


@pytest.mark.parametrize("url", OUR_URLS + OTHER_URLS)
def test_nothing_is_written_to_urls(here: Path, url: str) -> None:
    write_shard(here / "shard", [b"record"])
    write_any: list[Any] = [
        lambda url: tfr.shuffle("shard", "out", num_shards=1, work=url),
        lambda url: tfr.Writer("new", index_folder=url),
        lambda url: tfr.Reader("shard", index_folder=url),
        lambda url: tfr.build_index("shard", index_folder=url),
    ]
    for each in write_any:
        with pytest.raises(ValueError, match="is a URL, but this is written to a folder"):
            each(url)
    assert [each.name for each in here.iterdir()] == ["shard"]


@pytest.mark.parametrize("url", OTHER_URLS)
def test_shards_are_written_to_urls_of_known_schemes(url: str) -> None:
    write_any: list[Any] = [
        tfr.Writer,
        lambda url: tfr.ShardedWriter(url, num_shards=2),
        lambda url: tfr.shuffle("shard", url, num_shards=1),
    ]
    for write in write_any:
        with pytest.raises(ValueError, match="is a URL, but this is written to a folder"):
            write(url)


def test_the_core_has_the_same_schemes() -> None:
    source = (ROOT / "csrc/core/storage/storage.cpp").read_text(encoding="utf-8")
    table = source.partition("kStorages[] = {\n")[2].partition("};")[0]
    assert re.findall(r'^ +\{"(.*?)", ', table, re.MULTILINE) == ["", *SCHEMES]


def test_the_path_in_a_file_url(here: Path) -> None:
    write_shard(here / "shard", [b"record"])
    with pytest.raises(ValueError, match="is a URL. Pass the path in it."):
        tfr.Reader((here / "shard").as_uri())


def test_open_files_are_not_paths(here: Path) -> None:
    write_shard(here / "shard", [b"record"])
    with open("shard", "rb") as binary, open("shard", "rb", 0) as raw, open(__file__) as text:
        for file in (binary, raw, text, io_module.BytesIO()):
            for paths in (file, [file]):
                with pytest.raises(
                    TypeError, match=r"An open file \(.*\) is not a path. Pass its name"
                ):
                    tfr.Reader(paths)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="is not a path"):
            tfr.Writer(binary)  # type: ignore[arg-type]


class InFsspec:
    """Has the attributes of an OpenFile of fsspec and of a UPath."""

    def __init__(self, protocol: str | tuple[str, ...], path: str) -> None:
        self.fs = types.SimpleNamespace(protocol=protocol)
        self.path = path


def test_files_of_fsspec_name_what_they_open(here: Path) -> None:
    from tfrfast.storage.paths import read_name

    assert read_name(InFsspec(("s3", "s3a"), "bucket/key")) == "s3://bucket/key"
    assert read_name(InFsspec(("gs", "gcs"), "bucket/key")) == "gs://bucket/key"
    assert read_name(InFsspec(("abfs", "adl", "az"), "box/key")) == "az://box/key"
    assert read_name(InFsspec("hf", "datasets/o/n/x")) == "hf://datasets/o/n/x"
    assert read_name(InFsspec("https", "https://server/key")) == "https://server/key"
    write_shard(here / "shard", [b"record"])
    assert tfr.Reader(InFsspec(("file", "local"), str(here / "shard")))[0] == b"record"
    with pytest.raises(ValueError, match="'memory://shard' is a URL, but shards are read from"):
        tfr.Reader([InFsspec("memory", "shard")])


def test_a_path_that_is_not_on_this_machine() -> None:
    class Remote:
        def __fspath__(self) -> str:
            raise NotImplementedError("only local files have one")

    with pytest.raises(TypeError, match="does not name a file on this machine: only local"):
        tfr.Reader(Remote())


def test_a_py_path_is_a_path(here: Path) -> None:
    class Local:  # like py.path.local, which reads itself, too
        def __fspath__(self) -> str:
            return "shard"

        def read(self) -> bytes:
            raise AssertionError

    write_shard(here / "shard", [b"record"])
    assert list(tfr.Reader(Local())) == [b"record"]


def test_a_set_has_no_order(here: Path) -> None:
    for paths in ({"a", "b"}, frozenset(["a"])):
        with pytest.raises(TypeError, match="Pass sorted"):
            tfr.Reader(paths)


def test_links_to_shards_and_folders(here: Path, io: Any) -> None:
    (here / "data").mkdir()
    write_shard(here / "data" / "shard", [b"record"])
    os.symlink("data/shard", "link")
    os.symlink("data", "linked")
    os.symlink("nowhere", "broken")
    for path in ("link", "linked/shard", "data/../link"):
        assert list(tfr.Reader(path, io=io)) == [b"record"]
    with pytest.raises(FileNotFoundError) as raised:
        tfr.Reader("broken", io=io)
    assert raised.value.filename == "broken"


def test_paths_relative_to_a_folder_that_is_left(here: Path, monkeypatch: Any, io: Any) -> None:
    write_shard(here / "shard", [b"record"])
    reader = tfr.Reader("shard", io=io)
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    assert reader[0] == b"record"
    assert list(tfr.Reader("../shard", io=io)) == [b"record"]


def refuse_listing(monkeypatch: pytest.MonkeyPatch, refused: Path) -> None:
    """Makes listing a folder fail once, even for root, who may list any."""
    scandir = os.scandir
    failures = [PermissionError(13, "Permission denied")]

    def scan(folder: Any = ".") -> Any:
        if isinstance(folder, str) and os.path.realpath(folder) == str(refused) and failures:
            raise failures.pop()
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", scan)


@pytest.mark.parametrize("pattern", ["closed/s*", "*/s*", "**/s1", "./closed/*"])
def test_a_folder_that_cannot_be_listed_is_an_error_of_its_own(
    here: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    for folder in ("closed", "open"):
        (here / folder).mkdir()
        write_shard(here / folder / "s1", [b"record"])
    assert len(tfr.Reader(pattern)) in (1, 2)
    refuse_listing(monkeypatch, here / "closed")
    # An error even if the pattern finds other shards, because some shards would be missing.
    with pytest.raises(PermissionError, match="Listing folder '.*closed/?' for the patt") as raised:
        tfr.Reader(pattern)
    assert raised.value.filename.rstrip("/").endswith("closed")
    assert raised.value.errno == 13


def test_a_name_that_may_be_a_folder_is_an_error(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> bool:
        raise OSError(errno.EIO, "Input/output error")

    unknown = types.SimpleNamespace(name="folder", is_dir=fail)
    said = "Listing folder '' for the pattern .* Input/output error"
    with monkeypatch.context() as patch, pytest.raises(OSError, match=said):
        patch.setattr(os, "scandir", lambda _: contextlib.nullcontext([unknown]))
        tfr.Reader("f*/s1")


def test_a_name_that_cannot_be_looked_up_is_an_error(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "folder").mkdir()
    write_shard(here / "folder" / "s1", [b"record"])
    assert len(tfr.Reader("f*/s1")) == 1

    def fail(_: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    said = r"Looking for 'folder/s1' by the pattern 'f\*/s1' failed: Input/output error\. It may be"
    with monkeypatch.context() as patch, pytest.raises(OSError, match=said) as raised:
        patch.setattr(os, "lstat", fail)
        tfr.Reader("f*/s1")
    assert (raised.value.errno, raised.value.filename) == (errno.EIO, os.path.join("folder", "s1"))


def test_a_link_that_cannot_be_followed_is_an_error(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("f1", "f2", "elsewhere"):
        (here / folder).mkdir()
    (here / "f1" / "more").mkdir()
    write_shard(here / "f1" / "more" / "s1", [b"record"])
    write_shard(here / "elsewhere" / "s1", [b"record"])
    (here / "f2" / "more").symlink_to(here / "elsewhere")
    assert len(tfr.Reader("f*/more/s*")) == 2
    follow, link = os.stat, os.path.join("f2", "more")

    def fail(name: Any, **options: Any) -> os.stat_result:
        if name == link:
            raise OSError(errno.EIO, "Input/output error")
        return follow(name, **options)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="Looking for 'f2/more' by"):
        patch.setattr(os, "stat", fail)
        tfr.Reader("f*/more/s*")
    os.remove(link)
    for target in ("nothing", "more", os.path.join(os.pardir, "f1", "more", "s1", "below")):
        os.symlink(target, link)
        assert len(tfr.Reader("f*/more/s*")) == 1
        os.remove(link)


def test_a_pattern_finds_what_glob_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    folders = [here]
    for _ in range(12):
        folder = random.choice(folders) / random.choice(["a", "b1", ".c", "d[1]", "e.tfrecord"])
        folder.mkdir(exist_ok=True)
        folders.append(folder)
    for folder in {*folders}:
        for name in random.choice(["s1", "s2", ".s3", "t[1]", "a"], 3):
            if not (folder / name).exists():
                (folder / name).touch()
    (here / "link").symlink_to(folders[1])
    parts = ["*", "**", "?", "s*", ".*", "[ab]*", "a", "*[[]1]", "s1", ".", ".."]
    for _ in range(400):
        pattern = "/".join(random.choice(parts, random.integers(1, 4)))
        if not glob.has_magic(pattern):
            continue
        expected = filter(os.path.isfile, {*glob.glob(pattern, recursive=True)})
        try:
            found = expand_paths(pattern)
        except FileNotFoundError:
            found = []
        assert sorted(found) == sorted(expected), pattern


def test_what_is_looked_up_needs_no_listing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "closed").mkdir()
    write_shard(here / "closed" / "s1", [b"record"])
    refuse_listing(monkeypatch, here / "closed")
    assert list(tfr.Reader("c*/s1")) == [b"record"]


def test_folders_that_are_missing_are_no_match(here: Path) -> None:
    (here / "file").touch()
    for pattern in ("missing/s*", "file/s*", "m*/s*", "missing/**/s1"):
        with pytest.raises(FileNotFoundError, match="No shard matches the pattern"):
            tfr.Reader(pattern)


def test_a_reader_means_the_same_files_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        with tfr.Writer("shard", index=False) as writer:
            writer.write_example({"id": folder})
    monkeypatch.chdir(tmp_path / "one")
    reader = tfr.Reader("shard", index_folder="indexes")
    loader = tfr.Loader(tfr.Reader("shard"), 1)
    keys = tfr.build_keys(reader, "id")
    monkeypatch.chdir(tmp_path / "two")
    assert list(pickle.loads(pickle.dumps(reader))) == list(reader)
    (copied,) = pickle.loads(pickle.dumps(loader))
    assert list(copied) == list(reader)
    assert reader.by_key("id").path == keys == str(tmp_path / "one/indexes" / Path(keys).name)
    assert list(tfr.Reader(tfr.copy(reader, [0], "copied").paths)) == list(reader)
    assert not tfr.diff(reader, reader).only_b.size
    assert not (tmp_path / "two" / "indexes").exists()
