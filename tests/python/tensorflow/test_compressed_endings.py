"""How compressed files may end: the table of docs/compression.md, row by row, beside TensorFlow."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tfrfast as tfr
from compressed_files import deflated
from tfrecord_model import shard_of

tf = pytest.importorskip("tensorflow")

CHOICE = random.Random(1)
RECORDS = [CHOICE.randbytes(50) + b"%d" % number for number in range(400)]
HALF = len(RECORDS) // 2
LOSS = "data loss"
Events = list[int | str]  # numbers of records in a row, and errors


class Row(NamedTuple):
    compression: str
    bytes_of: Callable[[bytes, bytes], bytes]  # the two halves, a member each
    theirs: Events
    ours: Events
    skipping: int  # records, with on_corruption="skip"


def flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


ALL = 2 * HALF
ROWS: dict[str, Row] = {
    "ends inside a member and a record, GZIP": Row(
        "GZIP", lambda a, b: a + b[: len(b) // 2], [299, LOSS], [299, LOSS], 299
    ),
    "ends inside a member and a record, ZLIB": Row(
        "ZLIB", lambda a, b: a[: len(a) // 2], [100, LOSS], [100, LOSS], 100
    ),
    "ends inside a trailer, GZIP": Row("GZIP", lambda a, b: a + b[:-3], [ALL], [ALL, LOSS], ALL),
    "ends inside a trailer, ZLIB": Row("ZLIB", lambda a, b: a[:-3], [HALF], [HALF, LOSS], HALF),
    "ends before a trailer": Row("GZIP", lambda a, b: a + b[:-8], [ALL], [ALL, LOSS], ALL),
    "ends inside the next header": Row("GZIP", lambda a, b: a + b[:5], [HALF], [HALF, LOSS], HALF),
    "zeros follow, GZIP": Row("GZIP", lambda a, b: a + b + bytes(1000), [ALL, LOSS], [ALL], ALL),
    "other bytes follow, GZIP": Row(
        "GZIP", lambda a, b: a + b + b"garbage", [ALL, LOSS], [ALL, LOSS], ALL
    ),
    "zeros follow, ZLIB": Row("ZLIB", lambda a, b: a + bytes(1000), [HALF], [HALF, LOSS], HALF),
    "other bytes follow, ZLIB": Row(
        "ZLIB", lambda a, b: a + b"garbage", [HALF], [HALF, LOSS], HALF
    ),
    "another stream follows, ZLIB": Row("ZLIB", lambda a, b: a + b, [HALF], [ALL], ALL),
    "another member follows, GZIP": Row("GZIP", lambda a, b: a + b, [ALL], [ALL], ALL),
    "a bad checksum, GZIP": Row(
        "GZIP", lambda a, b: flipped(a, -8) + b, [LOSS], [HALF, LOSS, HALF], ALL
    ),
    "a bad length, GZIP": Row(
        "GZIP", lambda a, b: flipped(a, -1) + b, [LOSS], [HALF, LOSS, HALF], ALL
    ),
    "a bad checksum at the end, GZIP": Row(
        "GZIP", lambda a, b: a + flipped(b, -8), [HALF, LOSS], [ALL, LOSS], ALL
    ),
    "a bad checksum, ZLIB": Row("ZLIB", lambda a, b: flipped(a, -4), [LOSS], [HALF, LOSS], HALF),
}


def events_of(dataset: Any) -> tuple[list[bytes], Events]:
    """Returns numbers of records in a row, and errors. The iterator continues after errors."""
    events: Events = []
    records: list[bytes] = []
    iterator = iter(dataset)
    for _ in range(2 * ALL):
        try:
            records.append(next(iterator).numpy())
            if events and isinstance(events[-1], int):
                events[-1] += 1
            else:
                events.append(1)
        except StopIteration:
            break
        except tf.errors.DataLossError:
            events.append(LOSS)
    return records, events


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_each_row_of_the_table(tmp_path: Path, row: Row) -> None:
    path = tmp_path / "shard"
    halves = (
        deflated(shard_of(part), row.compression) for part in (RECORDS[:HALF], RECORDS[HALF:])
    )
    path.write_bytes(row.bytes_of(*halves))

    theirs, their_events = events_of(tf.data.TFRecordDataset(str(path), row.compression))
    assert their_events == row.theirs
    assert theirs == RECORDS[: len(theirs)]
    for _ in range(2):  # the second time with an index
        ours, our_events = events_of(tfr.TFRecordDataset(str(path), row.compression))
        assert our_events == row.ours
        assert ours == RECORDS[: len(ours)]
    skipping = tfr.TFRecordDataset(str(path), row.compression, on_corruption="skip")
    assert events_of(skipping) == (RECORDS[: row.skipping], [row.skipping])


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_reader_raises_where_the_drop_in_does(tmp_path: Path, row: Row) -> None:
    path = tmp_path / "shard"
    halves = (
        deflated(shard_of(part), row.compression) for part in (RECORDS[:HALF], RECORDS[HALF:])
    )
    path.write_bytes(row.bytes_of(*halves))
    if LOSS in row.ours:
        with pytest.raises(tfr.RecordError):
            list(tfr.Reader(path, compression=row.compression))  # type: ignore[arg-type]
    else:
        assert len(tfr.Reader(path, compression=row.compression)) == ALL  # type: ignore[arg-type]
