"""Turns what users pass as paths into a list of shards."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from typing import Any

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths = PathLike | Iterable[PathLike]


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")


def expand_paths(paths: Paths) -> list[str]:
    """The shards that `paths` names, in order. It is a path, a glob, or an iterable of either.

    A path that exists is taken literally, brackets and all. What a glob finds is sorted so that
    shard 10 comes after shard 9. An iterable keeps its order. Raises TypeError or ValueError for
    what cannot be a file.
    """
    if isinstance(paths, (set, frozenset)):
        raise TypeError("A set of paths has another order in every process. Pass sorted(paths).")
    many: Iterable[Any] = [paths] if _is_one(paths) else paths  # type: ignore[assignment]
    return [found for each in many for found in _expand(each)]


def _is_one(paths: Any) -> bool:
    """Whether `paths` is meant as one path. Open files count as one, although they are iterable."""
    is_path = isinstance(paths, (str, bytes, os.PathLike))
    return is_path or hasattr(paths, "read") or not hasattr(paths, "__iter__")


def written_file(path: PathLike) -> bytes:
    """The name of a file or folder to write, for the core. Raises as expand_paths() does."""
    return os.fsencode(_file_name(path, _WRITING_URLS))


_READING_URLS = (
    "but shards are read as files, and URLs are not supported yet. Mount the storage as a folder, or "
    "copy the shards to a disk. tfr.TFRecordDataset hands such names to TensorFlow, which reads "
    "those that it has a file system for."
)
_WRITING_URLS = (
    "but files are written here, and URLs are not supported yet. Write into a folder where the "
    "storage is mounted, or copy what was written. tfr.TFRecordWriter hands such names to "
    "TensorFlow, which writes those that it has a file system for."
)


def _file_name(path: Any, about_urls: str) -> str:
    kind = type(path)
    if kind.__module__.partition(".")[0] == "fsspec":
        raise TypeError(
            f"{kind.__name__} of fsspec is not a path, and fsspec is not supported yet. Pass the "
            "names of files on a disk, or on storage that is mounted as a folder."
        )
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
    if _URL.match(name) and not os.path.lexists(name):
        if name.lower().startswith("file:"):
            raise ValueError(f"{name!r} is a URL. Pass the path in it.")
        raise ValueError(f"{name!r} is a URL, {about_urls}")
    return name


def _expand(path: PathLike) -> list[str]:
    name = _file_name(path, _READING_URLS)
    if not glob.has_magic(name) or os.path.lexists(name):
        return [name]
    found = [each for each in glob.glob(name, recursive=True) if _may_be_shard(each)]
    _refuse_unreadable_folders(name)
    if not found:
        raise FileNotFoundError(
            2, f"No shard matches the pattern {name!r}. Check the folder and the spelling", name
        )
    return sorted(found, key=natural_key)


def _refuse_unreadable_folders(pattern: str) -> None:
    """Raises for folders that cannot be listed. A glob skips them, so shards would be missing."""
    above, last = os.path.split(pattern)
    if above == pattern:
        return
    _refuse_unreadable_folders(above)
    if not glob.has_magic(last):
        return
    folders = [above]
    if last == "**" or glob.has_magic(above):
        folders = glob.glob(os.path.join(above, "**" if last == "**" else "", ""), recursive=True)
    for folder in folders:
        try:
            os.scandir(folder or os.curdir).close()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise type(error)(
                error.errno,
                f"Listing folder {folder!r} for the pattern {pattern!r} failed: {error.strerror}. "
                "Some shards may be in there",
                folder,
            ) from None


def _may_be_shard(name: str) -> bool:
    """False for folders, and for indexes that `build_index` keeps beside the data's folder."""
    is_index = name.endswith(".index") and os.path.dirname(name).endswith(".tfrfast")
    return not is_index and not os.path.isdir(name)


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Compares digits as numbers. Text, and equal numbers of different widths, compare as text."""
    parts = re.split(r"([0-9]+)", name)
    return [(1, int(part), part) if part.isdecimal() else (0, 0, part) for part in parts]
