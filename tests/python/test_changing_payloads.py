"""Another thread changes a payload while it is written: the checksum is of the written bytes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from changing_bytes import changing_bytes

WRITERS: dict[str, Callable[[Path], Any]] = {
    "plain": lambda path: tfr.Writer(path),
    "gzip": lambda path: tfr.Writer(path, compression="GZIP", level=0),
    "round robin": lambda path: tfr.ShardedWriter(path, num_shards=2),
    "by size": lambda path: tfr.ShardedWriter(path, max_bytes=4 << 20),
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("size", [100, 300_000, 3_000_000])
def test_every_published_checksum_holds(tmp_path: Path, kind: str, size: int) -> None:
    with (
        changing_bytes(size) as payload,
        contextlib.closing(WRITERS[kind](tmp_path / "out")) as out,
    ):
        for _ in range(20):
            out.write(payload)
    paths = [str(path) for path in tmp_path.iterdir() if path.is_file()]
    records = list(tfr.Reader(paths, index="memory"))  # verifies every checksum
    assert [len(record) for record in records] == [size] * 20


def test_a_frame_of_a_changing_record() -> None:
    with changing_bytes(30_000_000) as payload:
        frames = [tfr._native.frame(payload) for _ in range(5)]
    for frame in frames:
        assert tfr._native.frame(frame[12:-4]) == frame


def test_presence_that_changes_while_it_is_encoded() -> None:
    rows = 200_000
    values = np.arange(rows, dtype=np.int64)
    with changing_bytes(rows) as presence:
        column = ("a", values, None, None, 1, 0, presence.view(bool))
        for _ in range(5):
            batch = tfr._native.encode_columns([column], rows, 1)
            parsed = tfr.parse_example(batch, {"a": tfr.VarLen("int64")})["a"]
            # A row has its value or none.
            assert set(np.diff(parsed.row_splits).tolist()) <= {0, 1}
