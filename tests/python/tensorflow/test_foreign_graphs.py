"""Graphs that another version built, or that were damaged: a clear error, never a guess."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr

tf = pytest.importorskip("tensorflow")

from tfrfast.features.compiling import compile_features  # noqa: E402
from tfrfast.storage.remote.options import Storage  # noqa: E402
from tfrfast.tensorflow.library import ops  # noqa: E402
from tfrfast.tensorflow.read.file_names import FileNames  # noqa: E402
from tfrfast.tensorflow.sequence import Batched, Sequence  # noqa: E402
from tfrfast.tensorflow.source import Source  # noqa: E402

RECORDS = [tfr.encode_example({"a": i}) for i in range(10)]
BATCHES = Sequence(range(10), batch=Batched(4)).encode()
FEATURES = compile_features({"a": tfr.FixedLen((), "int64")}).schema.encode()
# A kernel recognises a decoded description by its head, so these bytes are never decoded.
OTHERS = [
    (Sequence(range(10), batch=Batched(3)).encode(), "sequence"),
    (tfr.Plan(tfr.Shuffle(), 3, num_records=10)._core.encode(), "plan"),
    (compile_features({"b": tfr.FixedLen((), "int64")}).schema.encode(), "feature schema"),
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path: Path = tmp_path_factory.mktemp("foreign") / "shard"
    with tfr.Writer(path) as writer:
        writer.write_batch(RECORDS)
    names = FileNames(None, None, [bytes(path)])
    planned = Source(names, False, "", Storage(None)).planned(build_indexes=True)
    assert planned is not None
    assert planned.plan is not None
    return planned.plan.source


def int64(value: Any) -> Any:
    return tf.constant(value, tf.int64)


def read(source: bytes, sequence: bytes) -> list[bytes]:
    (records,), is_sound, *_ = ops.tfrfast_read(
        source, sequence, int64([0, 0, 1, 0, 1, 2]), "", b"", column_types=[tf.string]
    )
    assert is_sound
    return list(records.numpy())


def load(source: bytes, plan: bytes, step: int = 1) -> list[int]:
    _, records, _, error = ops.tfrfast_load(
        source, plan, int64([0, 0, 3]), int64(step), b"", column_types=[tf.string]
    )
    assert error == b""
    return list(records.numpy())


def parse(features: bytes, kind: Any = None) -> list[int]:
    columns = ops.tfrfast_parse_example(
        records=RECORDS, features=features, column_types=[kind or tf.int64]
    )
    return list(columns[0].numpy())


def damaged(description: bytes) -> bytes:
    return description[:-1] + bytes([description[-1] ^ 1])


def test_descriptions_of_this_version_are_read(source: bytes) -> None:
    assert read(source, BATCHES) == RECORDS[4:8]
    assert load(source, tfr.Plan(tfr.InOrder(), 4, num_records=10)._core.encode()) == [4, 5, 6, 7]
    assert parse(FEATURES) == list(range(10))


@pytest.mark.parametrize(("description", "name"), OTHERS, ids=["sequence", "plan", "features"])
def test_descriptions_that_are_not_are_refused(
    source: bytes, description: bytes, name: str
) -> None:
    def use(changed: bytes) -> object:
        if name == "sequence":
            return read(source, changed)
        return load(source, changed) if name == "plan" else parse(changed)

    newer = description[:4] + b"\7" + description[5:]
    for changed, why in [
        (damaged(description), f"This {name} is damaged"),
        (description[:-1], f"This {name} is damaged"),
        (newer, f"This {name} is encoded in version 7"),
        (b"tfrffea1", r"This is not a [\w ]+ of this version"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=why):
            use(changed)


def test_a_source_that_is_damaged_is_refused(source: bytes) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="This source is damaged"):
        read(source[:8] + bytes([source[8] ^ 1]) + source[9:], BATCHES)  # not one that is open


@pytest.mark.parametrize(("records", "step"), [(10, -1), (0, 0)])
def test_a_step_that_no_plan_has_is_refused(source: bytes, records: int, step: int) -> None:
    plan = tfr.Plan(tfr.InOrder(), 4, num_records=records)._core.encode()
    with pytest.raises(tf.errors.InvalidArgumentError, match="no such step"):
        load(source, plan, step)


@pytest.mark.parametrize("kind", [tf.int32, tf.string, tf.float32], ids=str)
def test_column_types_that_are_not_the_features_are_refused(kind: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="another type in the graph"):
        parse(FEATURES, kind)
