"""Shards whose features have every kind of column, and the expected table."""

from __future__ import annotations

from typing import Any

import numpy as np

import tfrfast as tfr
from example_files import some_example

FEATURES = {
    "id": tfr.FixedLen((), "int64"),
    "label": tfr.FixedLen((), "bool"),
    "dense": tfr.FixedLen([3], "float32"),
    "name": tfr.FixedLen((), "bytes"),
    "words": tfr.VarLen("bytes"),
    "numbers": tfr.VarLen("int64"),
    "pairs": tfr.VarLen("float32", key="weights"),
    "lengths": tfr.FixedLen((), "int64", default=-1),
    "raw": tfr.FixedLen((2, 2), "int16", raw=True),
}


def expected_row(number: int) -> dict[str, Any]:
    """Returns row `number` of a table with `FEATURES`, made by parse_example instead of a table."""
    record = some_example(number)
    some = tfr.parse_example(
        [record],
        {
            "id": FEATURES["id"],
            "label": FEATURES["label"],
            "dense": FEATURES["dense"],
            "name": FEATURES["name"],
            "raw": FEATURES["raw"],
            "words": FEATURES["words"],
            "numbers": FEATURES["numbers"],
            "lengths": tfr.VarLen("int64"),
            "weights": tfr.VarLen("float32"),
        },
    )
    names = {each.decode() for each, *_ in _survey(record)}

    def listed(name: str) -> list[Any] | None:
        if name not in names:
            return None
        row = some[name][0]
        return list(row.tolist())

    lengths = listed("lengths")
    return {
        "id": int(some["id"][0]),
        "label": bool(some["label"][0]),
        "dense": some["dense"][0].tolist(),
        "name": some["name"][0],
        "words": listed("words"),
        "numbers": listed("numbers"),
        "pairs": listed("weights"),
        "lengths": lengths[0] if lengths else None,
        "raw": np.asarray(some["raw"][0]).tolist(),
    }


def _survey(record: bytes) -> list[tuple[bytes, str, int, int, int]]:
    from tfrfast._native import Survey

    survey = Survey()
    survey.add([record], [0])
    return [each for each in survey.features() if each[2]]
