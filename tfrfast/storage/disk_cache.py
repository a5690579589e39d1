"""A folder on a local disk that keeps bytes of objects, or the streams of compressed shards."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple, SupportsIndex

from tfrfast.base.arguments import UNLIMITED, integer
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.sizes import parse_bytes
from tfrfast.storage.schemes import is_url

#: Tables take space, too.
_MIN_LIMIT = 1 << 20


class DiskCache:
    """A folder that keeps the bytes of objects, for all processes of this machine.

        cache = tfr.DiskCache("/local/cache", limit="200G")
        reader = tfr.Reader("s3://bucket/imagenet/train-*", cache=cache)

    Given as `decompressed_cache=cache`, it keeps the inflated bytes of compressed shards, which are
    files here or objects in a bucket.

    Bytes that fit into the folder are kept for all later epochs, runs and processes. Other bytes
    are read from the network, as without a cache. Any number of processes and data sets may share a
    folder. Data sets in use stay; others give way, the least recently opened first.

    Args:
      folder: the folder, on a disk of this machine. A missing folder is made.
      limit: the most disk space to use, in bytes or as a text such as "200G".
    """

    @explains_arguments
    def __init__(self, folder: str | os.PathLike[str], limit: SupportsIndex | str) -> None:
        name = os.fspath(folder)
        if not isinstance(name, str):
            raise TypeError(f"folder is a path, not {type(folder).__name__}.")
        if is_url(name):
            raise ValueError(f"folder is {name!r}, a URL. Name a folder on a local disk.")
        if not name:
            raise ValueError("folder is empty. Name a folder on a local disk.")
        if "\0" in name:
            raise ValueError(f"A path cannot hold a null character: {name!r}.")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"The name of folder {name!r} is not UTF-8. Name another one."
            ) from None
        if isinstance(limit, str):
            limit = parse_bytes(limit)
        limit = integer("limit", limit, _MIN_LIMIT, UNLIMITED)
        #: The absolute path of the folder.
        self.folder: str = os.path.abspath(os.path.expanduser(name))
        #: The limit in bytes.
        self.limit: int = limit

    def __repr__(self) -> str:
        return f"DiskCache({self.folder!r}, limit={self.limit})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DiskCache):
            return NotImplemented
        return (self.folder, self.limit) == (other.folder, other.limit)

    def __hash__(self) -> int:
        return hash((self.folder, self.limit))

    def __reduce__(self) -> tuple[object, ...]:
        return DiskCache, (self.folder, self.limit)


class KeptObject(NamedTuple):
    """An object with bytes in a DiskCache."""

    url: str
    object_bytes: int
    kept_bytes: int
    last_opened: float
    """The last opening of the object's data set."""
    in_use: bool
    path: str
    """The file that holds the kept bytes."""


def kept_objects(folder: str) -> Iterator[KeptObject]:
    """Yields the objects in a cache, least recently opened first (`cache/cached_object.cpp`)."""
    with os.scandir(os.path.join(folder, "v2")) as entries:
        sets = [(entry.stat().st_mtime, entry.path) for entry in entries if entry.is_dir()]
    for opened, path in sorted(sets):
        in_use = _is_in_use(path)
        for name in os.listdir(path):
            with (
                contextlib.suppress(FileNotFoundError),
                open(os.path.join(path, name), "rb") as file,
            ):
                page = file.read(4096)
                kept_bytes = os.fstat(file.fileno()).st_blocks * 512
            if not page.startswith(b"tfrfast cache 3\0") or len(page) < 4096:
                continue
            _, url, _, size, *_ = page.split(b"\0")
            yield KeptObject(
                os.fsdecode(url),
                int(size),
                kept_bytes,
                opened,
                in_use,
                os.path.join(path, name),
            )


def forget_objects(folder: str, names: Iterable[str]) -> None:
    """Removes the inflated bytes of these files, whatever names they were opened by."""
    real = {os.path.realpath(name) for name in names}
    if os.path.isdir(os.path.join(folder, "v2")):
        for each in kept_objects(folder):
            if os.path.realpath(each.url.removeprefix("inflated ")) in real:
                os.unlink(each.path)


def _is_in_use(data_set: str) -> bool:
    """Processes that use a data set lock its folder together."""
    descriptor = os.open(data_set, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
