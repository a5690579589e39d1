"""Turns the users' paths into a list of shards."""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import re
import stat
from collections.abc import Callable, Iterable
from typing import Any

from tfrfast.storage.remote.options import Storage
from tfrfast.storage.remote.urls import has_listing, locate
from tfrfast.storage.schemes import (
    BUCKETS,
    SCHEMES,
    has_any_scheme,
    in_words,
    is_cut_url,
    is_url,
)
from tfrfast.storage.unpublished import Appends

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths = PathLike | Iterable[PathLike]


# The most listings of a folder that changes all the time.
_LISTINGS = 10
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"000000000")
# Of a link to itself, or into a closed folder.
_OUT_OF_REACH = (errno.ELOOP, errno.EACCES)


def expand_paths(paths: Paths, storage: Storage | None = None) -> list[str]:
    """Returns the shards of `paths` in order. `paths` is a path, a URL, a glob, or an iterable of
    paths.

    An existing path is taken literally, brackets and all. A folder, or a URL that ends with a
    slash, stands for the shards in it. Shards of a folder or a glob are sorted so that shard 10
    follows shard 9. An iterable keeps its order. Raises TypeError or ValueError for an
    argument that cannot be a file.
    """
    if isinstance(paths, (set, frozenset)):
        raise TypeError("A set of paths has another order in every process. Pass sorted(paths).")
    many: Iterable[Any] = [paths] if _is_one(paths) else paths  # type: ignore[assignment]
    found = [found for each in many for found in _expand(each, storage)]
    reach(found, storage)
    return found


def encoded(names: list[str]) -> list[bytes]:
    """Returns the names for the core. No name holds a null character."""
    return os.fsencode("\0".join(names)).split(b"\0") if names else []


def _is_one(paths: Any) -> bool:
    """True if `paths` means a single path. An open file is one, although it is iterable."""
    is_path = isinstance(paths, (str, bytes, os.PathLike)) or _is_in_fsspec(paths)
    return is_path or hasattr(paths, "read") or not hasattr(paths, "__iter__")


def read_name(path: PathLike) -> str:
    """Returns the name of a file or folder to read, or its URL. Raises like expand_paths()."""
    return _file_name(path, _READING_URLS)


def written_file(path: PathLike) -> bytes:
    """Returns the name of a file or folder to write, for the core. Raises like expand_paths()."""
    return os.fsencode(_file_name(path, _WRITING_URLS))


_READING_URLS = (
    f"but shards are read from files and from URLs: {in_words(SCHEMES)}. Mount other storages as "
    "a folder, or copy the shards to a disk. tfr.TFRecordDataset hands such names to TensorFlow, "
    "which may have a file system for them."
)
_WRITING_URLS = (
    "but this is written to a folder of this machine. Write there, and copy the files; "
    f"tfr.Writer, tfr.ShardedWriter and tfr.copy write to {in_words(BUCKETS)}. "
    "tf.io.TFRecordWriter may know other file systems."
)


def _file_name(path: Any, about_urls: str) -> str:
    kind = type(path)
    if _is_in_fsspec(path):
        path = _name_in_fsspec(path)
    if isinstance(path, (str, bytes, os.PathLike)):
        try:
            name = os.fsdecode(path)
        except (TypeError, NotImplementedError) as error:
            raise TypeError(f"{path!r} does not name a file on this machine: {error}") from error
    elif hasattr(path, "read"):
        raise TypeError(
            f"An open file ({kind.__name__}) is not a path. Pass its name: records are read at "
            "random, from a file that tfrfast opens."
        )
    else:
        raise TypeError(
            f"A path is a str, bytes or os.PathLike, or a list of them, not {kind.__name__} "
            f"({path!r:.60})."
        )
    if "\0" in name:
        raise ValueError(f"A path cannot hold a null character: {name!r}.")
    if isinstance(path, os.PathLike) and is_cut_url(name) and not os.path.lexists(name):
        raise ValueError(f"{name!r} was a URL, and pathlib has dropped a slash. Pass it as a str.")
    if not has_any_scheme(name):
        return name
    if os.path.lexists(name):  # a file whose name only looks like a URL
        return os.path.join(os.curdir, name) if is_url(name) else name
    if is_url(name) and about_urls is _READING_URLS:
        return name
    if name.lower().startswith("file:"):
        raise ValueError(f"{name!r} is a URL. Pass the path in it.")
    raise ValueError(f"{name!r} is a URL, {about_urls}")


def _is_in_fsspec(path: Any) -> bool:
    """True for a file of fsspec, and for a UPath."""
    has_protocol = hasattr(path, "protocol") or hasattr(path, "fs")
    return has_protocol and isinstance(getattr(path, "path", None), str)


def _name_in_fsspec(path: Any) -> str:
    """Returns the path or URL of a file of fsspec or a UPath. Both have a file system and a path.

    The file system itself, with its options and credentials, is not used.
    """
    named = path.protocol if hasattr(path, "protocol") else path.fs.protocol
    protocols = (named,) if isinstance(named, str) else tuple(named)
    name: str = path.path
    if has_any_scheme(name) or {"", "file", "local"} & set(protocols):
        return name
    ours = [protocol for protocol in protocols if protocol in SCHEMES]
    return f"{[*ours, *protocols][0]}://{name}"


def reach(names: list[str], storage: Storage | None = None) -> None:
    """Prepares to read the objects among these names. Raises ModuleNotFoundError without obstore,
    and ValueError for a URL that names no object.
    """
    urls = [each for each in names if is_url(each)]
    if not urls:
        return
    from tfrfast.storage.remote.client import use_client
    from tfrfast.storage.remote.stores import renew_if_environment_changed

    for url in urls:
        locate(url)
    renew_if_environment_changed()
    if storage is not None:
        storage.remember_secrets(urls)
    use_client()


def absolute(names: list[str], folder: str | None = None) -> list[str]:
    """Returns names of the same files that do not depend on the current folder."""
    return [name if is_url(name) else absolute_path(name, folder) for name in names]


def absolute_path(path: str | os.PathLike[str], folder: str | None = None) -> str:
    """Returns a name of the same file that does not depend on the current folder, or on `folder`,
    which was current when the name was given.

    Unlike os.path.abspath, keeps `..`, which after a link leads out of the link's target.
    """
    name = os.fspath(path)
    if not os.path.isabs(name):  # the current folder may have been removed
        name = os.path.join(os.getcwd() if folder is None else folder, name)
    return name if os.pardir in name.split(os.sep) else os.path.normpath(name)


def refuse_urls(shards: list[str], who: str) -> None:
    """Raises ValueError for URLs, where files of this machine are needed."""
    for shard in shards:
        if is_url(shard):
            raise ValueError(f"{shard!r} is a URL, and {who} files of this machine. Copy it first.")


def _expand(path: PathLike, storage: Storage | None) -> list[str]:
    name = _file_name(path, _READING_URLS)
    if is_url(name):
        return _expand_url(name, storage)
    if not glob.has_magic(name) or os.path.lexists(name):
        return _shards_in(name) if os.path.isdir(name) else [name]
    folder = os.path.dirname(name)
    folders = map(os.path.dirname, _matches(name)) if glob.has_magic(folder) else [folder]
    found = _published({*folders}, lambda: _matches(name))
    if not found:
        raise FileNotFoundError(
            2,
            f"No shard matches the pattern {name!r}. Check the folder and the spelling"
            f"{_what_was_meant(name)}",
            name,
        )
    return _sorted_naturally(found)


# Ends of names of files that lie beside shards: descriptions, indexes of other programs, checksums.
_BESIDE_SHARDS = (
    *(".json", ".jsonl", ".txt", ".md", ".csv", ".tsv", ".yaml", ".yml", ".pbtxt", ".html", ".log"),
    *(".idx", ".index", ".crc", ".md5", ".sha256"),
)


def _may_be_in_folder(name: str) -> bool:
    return name[:1] not in (".", "_", "") and not name.lower().endswith(_BESIDE_SHARDS)


def _shards_in(folder: str) -> list[str]:
    def listed() -> list[str]:
        with os.scandir(folder) as entries:
            files = [each for each in entries if _may_be_in_folder(each.name) and each.is_file()]
        return [os.path.join(folder, each.name) for each in files]

    bare = os.path.dirname(os.path.join(folder, ""))
    return _in_folder(folder, _published({bare}, listed))


def _in_folder(folder: str, found: list[str]) -> list[str]:
    if not found:
        raise FileNotFoundError(
            2,
            f"There is no shard in {folder!r}. Folders in it, hidden files and files like .json "
            "are left out: a pattern like '*/*' names other files",
            folder,
        )
    return _sorted_naturally(found)


def _published(folders: set[str], listed: Callable[[], list[str]]) -> list[str]:
    """Returns the listed files of these folders without the shards of unfinished appends.

    The folders are as os.path.dirname gives them, without the slashes at the end of `data//train`.
    Lists again if an append was begun or published meanwhile.
    """
    for _ in range(_LISTINGS):
        appends = {folder: Appends(folder) for folder in folders}
        found = listed()
        hidden = {
            (folder, name) for folder, each in appends.items() for name in each.unpublished(found)
        }
        if all(each.are_as_before() for each in appends.values()):
            break
    return [name for name in found if os.path.split(name) not in hidden] if hidden else found


def _what_was_meant(pattern: str) -> str:
    """Returns the end of an error about a pattern without matches: a pattern with matches."""
    import difflib

    folder, last = os.path.split(pattern)
    if glob.has_magic(folder):
        return ""
    below: list[str] = []
    while folder and not os.path.isdir(folder):
        below.insert(0, last)
        folder, last = os.path.split(folder)
    try:
        with os.scandir(folder or os.curdir) as entries:
            names = [each.name for each in entries if each.is_dir() == bool(below)]
    except OSError:
        return ""
    shapes = sorted({re.sub("[0-9]+", "*", name) if not below else name for name in names})
    alike = difflib.get_close_matches(last, shapes, 1, 0.5)
    return f". Did you mean {os.path.join(folder, alike[0], *below)!r}?" if alike else ""


def _matches(pattern: str, are_folders: bool = False) -> list[str]:
    """Returns the shards that match a pattern, or the folders, by the rules of `glob`.

    `glob` passes over a folder that cannot be listed, even for a moment, so shards would be
    missing. Here this is an error.
    """
    above, last = os.path.split(pattern)
    folders = _matches(above, are_folders=True) if glob.has_magic(above) else [above]
    if not glob.has_magic(last):
        names = [os.path.join(folder, last) for folder in folders if not _is_index(folder, last)]
        return [each for each in names if _is_there(each, are_folders, pattern)]
    if last == "**":
        for folder in folders:  # which grows
            folders += _entries(folder, "*", True, pattern)
        folders = list(dict.fromkeys(folders))
        if are_folders:
            return folders
    return [each for folder in folders for each in _entries(folder, last, are_folders, pattern)]


def _entries(folder: str, last: str, are_folders: bool, pattern: str) -> list[str]:
    """Returns the files, or the folders, whose names match the last part of a pattern."""
    is_match, start = re.compile(fnmatch.translate(last)).match, os.path.join(folder, "")
    try:
        with os.scandir(folder or os.curdir) as entries:
            return [
                start + entry.name
                for entry in entries
                if is_match(entry.name)
                and (last[0] == "." or entry.name[0] != ".")
                and not _is_index(folder, entry.name)
                and _is_folder(entry) == are_folders
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise type(error)(
            error.errno,
            f"Listing folder {folder!r} for the pattern {pattern!r} failed: {error.strerror}. "
            "Some shards may be in there",
            folder,
        ) from None


def _is_there(name: str, as_folder: bool, pattern: str) -> bool:
    """Returns whether the name is that of a folder, or of anything else.

    os.path.lexists and os.path.isdir also answer no when the disk fails.
    """
    try:
        is_link = stat.S_ISLNK((found := os.lstat(name)).st_mode)
        is_folder = _leads_to_folder(name) if is_link else stat.S_ISDIR(found.st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise type(error)(
            error.errno,
            f"Looking for {name!r} by the pattern {pattern!r} failed: {error.strerror}. It may be "
            "a shard, or a folder of some",
            name,
        ) from None
    return is_folder == as_folder


def _leads_to_folder(link: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(link).st_mode)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, *_OUT_OF_REACH):
            return False
        raise


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        if error.errno in _OUT_OF_REACH:
            return False
        raise


def _sorted_naturally(names: list[str]) -> list[str]:
    """Sorts as by `natural_key`, in less time for 100,000 names."""
    alike = os.fsencode("\0".join(names)).translate(_DIGITS_ALIKE)
    shapes = set(alike.split(b"\0"))
    # Numbers of the same width compare like text.
    return sorted(names) if len(shapes) == 1 else sorted(names, key=natural_key)


def _expand_url(url: str, storage: Storage | None) -> list[str]:
    is_folder = url.endswith("/") and not glob.has_magic(url) and has_listing(url + "*")
    if not is_folder and not glob.has_magic(url):
        return [url]
    if is_folder:
        url += "*"
    if not has_listing(url):
        if "*" not in url:
            return [url]  # a name may have brackets, but never a star
        raise ValueError(
            f"{url!r} is a pattern, and {url.partition(':')[0]}:// has no listing to look it up "
            "in. Pass a list of URLs."
        )
    from tfrfast.storage.remote.listing import find_objects

    reach([url], storage)
    found = find_objects(url, "" if storage is None else storage.access)
    if is_folder:
        some = [each for each in found if _may_be_in_folder(each.rpartition("/")[2])]
        return _in_folder(url.removesuffix("*"), some)
    if not found:
        raise FileNotFoundError(
            2,
            f"No shard matches the pattern {url!r}. Check the folder and the spelling",
            url,
        )
    return _sorted_naturally(found)


def _is_index(folder: str, name: str) -> bool:
    """True for an index that `build_index` keeps beside the data folder."""
    if not folder.endswith(".tfrfast"):
        return False
    number = name.removeprefix("index-")  # of a user who shares the folder
    return name == "index" or (number != name and number.isdecimal())


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Compares digits as numbers. Text, and equal numbers of different widths, compare as text."""
    parts = re.split(r"([0-9]+)", name)
    return [(1, int(part), part) if part.isdecimal() else (0, 0, part) for part in parts]
