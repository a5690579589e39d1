"""protobuf is the oracle: the same values, and an error for the same records."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

import tfrfast as tfr

pytest.importorskip("google.protobuf")
from google.protobuf.message import DecodeError

import waymo_like
from random_messages import Schema, read_by_protobuf, tree_of


def _wanted(schema: Schema, message: tfr.Message) -> list[tuple[str, str]]:
    """Draws some fields. The keys of a map are always among them, because they order entries."""
    rng = schema.rng
    paths = list(message.features())
    some = rng.sample(paths, rng.randint(1, len(paths))) if rng.random() < 0.7 else paths
    wanted = {(path, "values") for path in some}
    for path in some:
        names = path.split(".")
        for end in range(1, len(names) + 1):
            start = ".".join(names[:end])
            try:
                message.has(start)
            except ValueError:
                pass
            else:
                if rng.random() < 0.3:
                    wanted.add((start, "presence"))
            if f"{start}.key" in paths:
                wanted.add((f"{start}.key", "values"))
        try:
            message.names(path)
        except ValueError:
            continue
        wanted.add((path, "names"))
    return sorted(wanted)


def _feature(message: tfr.Message, path: str, content: str) -> object:
    return {"values": message.__getitem__, "names": message.names, "presence": message.has}[
        content
    ](path)


@pytest.mark.parametrize("seed", range(int(os.environ.get("TFRFAST_TEST_EXAMPLES", "20"))))
def test_columns_are_what_protobuf_reads(seed: int) -> None:
    schema = Schema(random.Random(seed))
    message = tfr.Message(schema.set, "t.M0")
    if not message.features():
        return
    for part in range(10):
        wanted = _wanted(schema, message)
        oracle = schema.pruned(wanted)
        features = {f"{p} {c}": _feature(message, p, c) for p, c in wanted}
        good, expected = [], []
        for count in range(100):
            record = schema.hostile() if count % 2 else schema.message()
            try:
                parsed = oracle.FromString(record)
            except DecodeError:
                with pytest.raises(tfr.FeatureError, match="record|message"):
                    tfr.parse_example([record], features)
                continue
            try:
                expected.append(read_by_protobuf(parsed, wanted))
            except UnicodeDecodeError:  # a map's key in proto2, which protobuf cannot show
                continue
            good.append(record)
        batch = tfr.parse_example(good, features)
        columns = {(p, c): batch[f"{p} {c}"].tolist() for p, c in wanted}
        for row, tree in enumerate(expected):
            found = tree_of(
                oracle.DESCRIPTOR, {key: column[row] for key, column in columns.items()}
            )
            assert repr(found) == repr(tree), (seed, part, row, good[row])


def test_messages_of_waymos_sizes_are_read_as_by_protobuf(tmp_path: Path) -> None:
    records = waymo_like.scenarios(3)
    assert sum(map(len, records)) > 1_000_000
    path = tmp_path / "scenarios"
    with tfr.Writer(path) as writer:
        for record in records:
            writer.write(record)
    message = tfr.Message(waymo_like.scenario_set(), waymo_like.NAME)
    features = message.features()
    kind = waymo_like.scenario_type()
    wanted = [(name, "values") for name in features]
    (batch,) = tfr.Loader(path, 3, features=features, shuffle=False)
    columns = {each: batch[each[0]].tolist() for each in wanted}
    for row, record in enumerate(records):
        found = tree_of(kind.DESCRIPTOR, {key: column[row] for key, column in columns.items()})
        assert found == read_by_protobuf(kind.FromString(record), wanted)
