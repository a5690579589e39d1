"""A folder on a local disk that keeps bytes of objects, or the streams of compressed shards."""

from __future__ import annotations

import os
from typing import SupportsIndex

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

    Given as `inflated=cache`, it keeps the inflated bytes of compressed shards, which are files
    here or objects in a bucket.

    Bytes that fit into the folder are fetched once, for all later epochs, runs and processes. Other
    bytes are read from the network, as without a cache. Any number of processes and data sets may
    share a folder. An open object stays; other objects give way, the least recently used first.

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
