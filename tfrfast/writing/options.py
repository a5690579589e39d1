"""The users' options for new files: names, compression, indexes."""

from __future__ import annotations

import os
from typing import Any, Literal, SupportsIndex

from tfrfast.base.arguments import integer
from tfrfast.base.codecs import CODECS
from tfrfast.storage.output import Output

FilePath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
IndexFolder = str | os.PathLike[str] | None
Compression = Literal["", "GZIP"]
_WRITTEN = [codec.name for codec in CODECS.values() if codec.written_in_members]

_DEFAULT_LEVEL = -1  # zlib's own choice


def compression_level(compression: object, level: SupportsIndex | None) -> int:
    """Returns the level for the core. Raises ValueError for an unknown compression, or a level that
    the compression does not have.
    """
    if compression is None or compression == "":
        if level is not None:
            raise ValueError('level is for compression="GZIP", which was not given.')
    elif compression not in _WRITTEN and compression in CODECS:
        raise ValueError(
            f"{compression} is not written here: random access needs several members, and "
            f"TensorFlow reads only the first {compression} member of a file. Write "
            f"{' or '.join(_WRITTEN)}, or use tf.io.TFRecordWriter."
        )
    elif compression not in _WRITTEN:
        allowed = " or ".join(f'"{name}"' for name in ("", *_WRITTEN))
        raise ValueError(f"compression is {compression!r}, but must be None, {allowed}.")
    return _DEFAULT_LEVEL if level is None else integer("level", level, 0, 9)


def core_options(
    output: Output, compression: Compression | None, level: int | None
) -> dict[str, Any]:
    """Returns the core's options of both writers. Raises ValueError for a bad option."""
    return {
        "compression": compression or "",
        "level": compression_level(compression, level),
        "index": output.index,
        "index_folder": output.index_folder,
        "sync": output.sync,
        "overwrite": output.overwrite,
    }
