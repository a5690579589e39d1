"""protobuf is the oracle: the same values, and an error for the same records."""

from __future__ import annotations

import random

import pytest

import tfrfast as tfr

pytest.importorskip("google.protobuf")
from google.protobuf.message import DecodeError

from tests.support.random_messages import Schema, read_by_protobuf, tree_of


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


@pytest.mark.parametrize("seed", range(20))
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
