"""Shards to read, and ways to damage them."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tfrfast as tfr
from tfrecord_model import rested
from tfrfast import _native

HEADER, FOOTER = 12, 4


frame = _native.frame


def write_shard(path: Path, records: Iterable[bytes]) -> str:
    path.write_bytes(b"".join(map(frame, records)))
    return rested(path)


def write_rows(path: str | Path, rows: Iterable[dict[str, Any]]) -> str:
    """Writes each row as a tf.train.Example, with an index."""
    with tfr.Writer(path) as writer:
        for row in rows:
            writer.write_example(row)
    return str(path)


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def some_records(count: int, seed: int = 0, longest: int = 200) -> list[bytes]:
    random_source = random.Random(seed)
    return [
        b"%d:%d:" % (seed, i) + random_source.randbytes(random_source.randrange(longest))
        for i in range(count)
    ]


def write_shards(folder: Path, counts: Sequence[int], longest: int = 200) -> list[str]:
    """Writes a shard for each count. Every record differs from all other records."""
    return [
        write_shard(folder / f"data-{i:03}", some_records(count, i, longest))
        for i, count in enumerate(counts)
    ]


def frame_starts(records: Sequence[bytes]) -> list[int]:
    starts = [0]
    for record in records:
        starts.append(starts[-1] + HEADER + len(record) + FOOTER)
    return starts


def flip_byte(path: str, offset: int) -> None:
    data = bytearray(Path(path).read_bytes())
    data[offset] ^= 0xFF
    Path(path).write_bytes(data)
    rested(path)


def flip_payload_byte(path: str, records: Sequence[bytes], number: int) -> None:
    flip_byte(path, frame_starts(records)[number] + HEADER)


def flip_length_byte(path: str, records: Sequence[bytes], number: int) -> None:
    flip_byte(path, frame_starts(records)[number])


def make_cold(path: str | Path) -> None:
    """Drops the file from the page cache, because cold files are read by other calls."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cut(path: str, length: int) -> None:
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[:length])
    rested(path)
