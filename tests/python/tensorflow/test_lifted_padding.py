"""padded_batch() and ragged_batch() of maps whose parse is lifted, beside TensorFlow's own."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import outcomes, write_examples

tf = pytest.importorskip("tensorflow")

SPECS: dict[str, Any] = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "dense": tf.io.FixedLenFeature([3], tf.float32),
    "numbers": tf.io.VarLenFeature(tf.int64),
    "weights": tf.io.FixedLenSequenceFeature([], tf.float32, True),
    "words": tf.io.VarLenFeature(tf.string),
}
# Functions that make a component, with the sizes to which the component may be padded.
COMPONENTS: list[tuple[Callable[[Any], Any], list[Any]]] = [
    (lambda row: row["id"], [[]]),
    (lambda row: row["dense"] * 2.0, [[3], [None], [5]]),
    (lambda row: tf.sparse.to_dense(row["numbers"]), [[None], [3], [6]]),
    (lambda row: tf.cast(row["weights"] * 9.0, tf.int32)[:2], [[None], [2], [4]]),
    (lambda row: tf.sparse.to_dense(row["words"], ""), [[None], [3], [5]]),
    (lambda row: tf.sparse.to_dense(row["numbers"])[1:] % 4, [[None], [7]]),
    (lambda row: tf.reshape(row["id"] > 9, [1]), [[None], [2]]),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    files = write_examples(tmp_path_factory.mktemp("examples"), [20, 0, 11])
    tfr.Reader(files).close()
    return files


def parsed(record: Any) -> Any:
    return tf.io.parse_single_example(record, SPECS)


def assert_planned(dataset: Any, call: str) -> None:
    (step,) = (each for each in tfr.explain(dataset).steps if each.call.startswith(call))
    assert step.fused, tfr.explain(dataset)


@pytest.mark.parametrize("seed", range(8))
def test_random_rows_are_padded_as_tensorflow_pads_them(files: list[str], seed: int) -> None:
    choice = random.Random(seed)
    chosen = choice.sample(COMPONENTS, 4)
    shapes = tuple(choice.choice(shapes) for _, shapes in chosen)
    options: dict[str, Any] = {"drop_remainder": choice.random() < 0.5}
    makers = [make for make, _ in chosen]
    spec = tf.data.Dataset.from_tensors(parsed(next(iter(tf.data.TFRecordDataset(files)))))
    types = [
        each.dtype for each in spec.map(lambda row: tuple(f(row) for f in makers)).element_spec
    ]
    if choice.random() < 0.5:
        options["padding_values"] = tuple(
            tf.constant(b"-" if dtype == tf.string else 1 if dtype != tf.bool else True, dtype)
            for dtype in types
        )
    rows = (
        tf.data.TFRecordDataset(files)
        .map(parsed, tf.data.AUTOTUNE)
        .repeat(1)
        .map(lambda row: tuple(f(row) for f in makers))
    )
    theirs = rows.padded_batch(16, shapes, **options)
    ours = tfr.accelerate(theirs)
    assert ours.element_spec == theirs.element_spec
    assert outcomes(ours) == outcomes(theirs)
    assert_planned(ours, "padded_batch")


def test_the_class_pads_rows_too(files: list[str]) -> None:
    ours, theirs = (
        reader(files)
        .map(parsed)
        .map(lambda row: (row["id"], tf.sparse.to_dense(row["numbers"])))
        .padded_batch(5, ([], [None]), (tf.constant(0, tf.int64), tf.constant(-7, tf.int64)))
        for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert ours.element_spec == theirs.element_spec
    assert outcomes(ours) == outcomes(theirs)
    assert_planned(ours, "padded_batch")


def test_a_row_that_is_too_long_is_tensorflows_error(files: list[str]) -> None:
    rows = tf.data.TFRecordDataset(files).map(parsed)
    theirs = rows.map(lambda row: tf.sparse.to_dense(row["numbers"])).padded_batch(8, [2])
    ours = tfr.accelerate(theirs)
    assert tf.errors.DataLossError in outcomes(theirs)
    assert outcomes(ours) == outcomes(theirs)


def test_rows_that_are_made_one_by_one_stay_tensorflows(files: list[str]) -> None:
    rows = tf.data.TFRecordDataset(files).map(lambda record: tf.range(parsed(record)["id"]))
    theirs = rows.shuffle(31).padded_batch(8, [None])
    ours = tfr.accelerate(theirs)
    assert "one by one" in str(tfr.explain(ours))
    assert sorted(tf.reduce_max(batch).numpy() for batch in ours)[-1] == 29


@pytest.mark.parametrize("splits", [tf.int32, tf.int64])
def test_rows_become_ragged_batches(files: list[str], splits: Any) -> None:
    def row(record: Any) -> Any:
        given = parsed(record)
        words = tf.sparse.to_dense(given["words"], "")
        return {"id": given["id"], "words": words, "hot": tf.one_hot(given["numbers"].values, 3)}

    theirs = tf.data.TFRecordDataset(files).map(row).ragged_batch(8, True, splits)
    ours = tfr.accelerate(theirs)
    assert ours.element_spec == theirs.element_spec
    assert outcomes(ours) == outcomes(theirs)
    assert_planned(ours, "ragged_batch")


def test_sparse_tensors_pass_from_map_to_map(files: list[str]) -> None:
    def dense(row: Any) -> Any:
        return row["id"], tf.sparse.to_dense(row["numbers"])[:1] * 2

    records = tf.data.TFRecordDataset(files)
    theirs = records.map(parsed).map(lambda row: row).map(dense).padded_batch(8, ([], [1]))
    ours = tfr.accelerate(theirs)
    assert outcomes(ours) == outcomes(theirs)
    assert_planned(ours, "padded_batch")


def test_a_batch_with_a_bad_record_is_padded_by_tensorflow(tmp_path: Path) -> None:
    records = [tfr.encode_example({"id": n, "numbers": range(n % 4)}) for n in range(20)]
    path = str(tmp_path / "shard")
    with tf.io.TFRecordWriter(path) as writer:
        for record in (*records[:11], b"no example", *records[11:]):
            writer.write(record)

    def numbers(record: Any) -> Any:
        specs = {"numbers": SPECS["numbers"]}
        return tf.sparse.to_dense(tf.io.parse_single_example(record, specs)["numbers"])

    theirs = tf.data.TFRecordDataset(path).map(numbers).padded_batch(8, [None])
    ours = tfr.accelerate(theirs)
    assert outcomes(ours)[:2] == outcomes(theirs)[:2]
    assert outcomes(ours)[1] is tf.errors.InvalidArgumentError


def test_what_makes_two_calls_is_planned_as_both(files: list[str]) -> None:
    def numbers(record: Any) -> Any:
        return tf.sparse.to_dense(parsed(record)["numbers"])

    ours, theirs = (
        reader(files).map(numbers).ragged_batch(8)
        for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert ours.element_spec == theirs.element_spec
    assert outcomes(ours) == outcomes(theirs)
    assert_planned(ours, "ragged_batch")
    mixed = tf.data.experimental.shuffle_and_repeat(3, 2, seed=5)
    batches = tf.data.experimental.map_and_batch(lambda record: parsed(record)["id"], 31)
    theirs = tf.data.TFRecordDataset(files).apply(mixed).apply(batches)
    for ours in (tfr.accelerate(theirs), tfr.TFRecordDataset(files).apply(mixed).apply(batches)):
        epochs = [batch.numpy().tolist() for batch in ours]
        assert [sorted(epoch) for epoch in epochs] == [list(range(31))] * 2
        assert epochs[0] != epochs[1] != list(range(31))
        assert all(step.fused for step in tfr.explain(ours).steps)
