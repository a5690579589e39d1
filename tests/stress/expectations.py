"""The demands of every attack: the right bytes or a clear error."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import tfrfast as tfr
from tfrecord_model import shard_of

#: Errors that users may have to catch. Any other error is a fault of tfrfast.
CLEAR_ERRORS = (tfr.RecordError, OSError, MemoryError)


def some_records(chosen: random.Random, name: str) -> list[bytes]:
    """Returns records that contain their set and place: all of one length, or of many lengths."""
    count = chosen.choice([0, 1, 2, 50, 200, 400])
    same = chosen.random() < 0.5
    longest = chosen.choice([0, 20, 200, 3000])
    length = chosen.randrange(longest + 1)
    records = []
    for number in range(count):
        extra = length if same else chosen.randrange(longest + 1)
        records.append(b"%s %06d " % (name.encode(), number) + chosen.randbytes(extra))
    return records


def write(path: Path, records: Iterable[bytes], compression: str | None = None) -> None:
    if compression is None:
        path.write_bytes(shard_of(records))
        return
    packed = (zlib if compression == "ZLIB" else gzip).compress(shard_of(records))
    path.write_bytes(packed)


def outcome(work: Callable[[], Any]) -> Any:
    """Returns the result of `work`, or the clear error that `work` raised."""
    try:
        return work()
    except CLEAR_ERRORS as error:
        if not str(error):
            raise AssertionError("an error says nothing") from error
        return error


def check_reader(reader: tfr.Reader, allowed: Sequence[set[bytes]], chosen: random.Random) -> None:
    """In every way to read, each record is one of the allowed records at its place, or a clear
    error.
    """
    numbers = list(range(len(reader)))
    assert len(numbers) <= len(allowed), f"{len(numbers)} records instead of {len(allowed)}"
    chosen.shuffle(numbers)
    for number in numbers[:50]:
        record = outcome(lambda number=number: reader[number])
        if isinstance(record, bytes):
            assert record in allowed[number], f"record {number} is {record[:60]!r}"
    batch = outcome(lambda: reader.read(numbers))
    if isinstance(batch, tfr.RecordBatch):
        for number, record in zip(batch.indices.tolist(), batch.tolist(), strict=True):
            assert record in allowed[number], f"record {number} in a batch is {record[:60]!r}"
    loader = tfr.Loader(reader, max(1, len(numbers) // 3), threads=2)
    try:
        batches = outcome(lambda: list(loader))
        for batch in batches if isinstance(batches, list) else []:
            for number, record in zip(batch.indices.tolist(), batch.tolist(), strict=True):
                assert record in allowed[number], f"record {number} loaded is {record[:60]!r}"
    finally:
        loader.close()


def check_exact(reader: tfr.Reader, records: Sequence[bytes], chosen: random.Random) -> None:
    """Every way to read returns all records without an error."""
    assert len(reader) == len(records), f"{len(reader)} records instead of {len(records)}"
    assert list(reader) == list(records), "iterating gives other records"
    numbers = list(range(len(records)))
    chosen.shuffle(numbers)
    assert reader.read(numbers).tolist() == [records[i] for i in numbers], "reading gives others"
