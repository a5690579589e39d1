"""Ray reads fields of protobuf messages as lists in lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from event_files import PATHS, write_events

tray = pytest.importorskip("tfrfast.ray", exc_type=ModuleNotFoundError)


def test_rows_have_the_fields_of_their_messages(local_ray: Any, tmp_path: Path) -> None:
    shard = write_events(tmp_path / "events", 10)
    features = tfr.Message.event().features(PATHS)
    rows = sorted(tray.read(shard, features=features).take_all(), key=lambda r: r["step"])
    with tfr.Reader(shard) as reader:
        parsed = tfr.parse_example(reader[:], features)
    for name in ("step", "time", "values"):
        found = [_plain(row[name]) for row in rows]
        assert found == parsed[name].tolist(), name
    assert [list(row["tag"]) for row in rows][2] == ["t0", "t1"]


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [_plain(each) for each in value] if isinstance(value, list) else value
