"""Records of tokens that tell where they come from, and a check of packed rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tfrfast as tfr
from record_files import write_shard

IDS = {"ids": tfr.VarLen("int64")}
ALL: dict[str, Any] = {
    **IDS,
    "mask": tfr.VarLen("float32"),
    "name": tfr.FixedLen((), "bytes"),
    "more": tfr.VarLen("int32"),
}
SPREAD = 100_000


def tokens_of(record: int, length: int) -> Any:
    return record * SPREAD + np.arange(length) + 1


def write_tokens(path: Path, lengths: Iterable[int], first: int = 0) -> str:
    """Writes a record for each length. No token is 0, and no token comes twice."""
    records = [
        tfr.encode_example(
            {
                "ids": tokens_of(record, length),
                "mask": np.full(length, record + 0.5, np.float32),
                "name": b"%d" % record,
                "more": np.arange(record % 4, dtype=np.int64),
            }
        )
        for record, length in enumerate(lengths, first)
    ]
    return write_shard(path, records)


def pieces_in(columns: Mapping[str, Any], name: str = "ids") -> Counter[tuple[int, int, int]]:
    """Checks rows of `ids`, and counts the (record, first token, tokens) of their segments."""
    ids, segments, positions = (
        np.asarray(columns[each]) for each in (name, f"{name}_segment_ids", f"{name}_positions")
    )
    assert segments.dtype == positions.dtype == np.int32
    assert ((ids != 0) == (segments != 0)).all()
    assert (positions[segments == 0] == 0).all()
    found: Counter[tuple[int, int, int]] = Counter()
    for row in range(len(ids)):
        numbers = segments[row][segments[row] > 0]
        assert (np.diff(numbers) >= 0).all()
        for number in np.unique(numbers):
            here = segments[row] == number
            values = ids[row][here] - 1
            assert (positions[row][here] == np.arange(len(values))).all()
            assert (np.diff(values) == 1).all()
            found[int(values[0] // SPREAD), int(values[0] % SPREAD), len(values)] += 1
    return found
