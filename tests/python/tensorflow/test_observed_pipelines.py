"""What a program observes of maps, replaced files and checkpoints equals TensorFlow's.

A pipeline is a function of the class that reads records. tfr.TFRecordDataset, and tfr.accelerate of
the finished dataset, must give what TensorFlow's class gives.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from example_files import write_examples

tf = pytest.importorskip("tensorflow")

SPECS = {"id": tf.io.FixedLenFeature([], tf.int64)}
COUNTS = [60, 50]
NARROWED = {
    "skip": lambda dataset: dataset.skip(30),
    "shard": lambda dataset: dataset.shard(3, 1),
    "skip and take": lambda dataset: dataset.skip(5).take(20),
}
Pipeline = Callable[[Any], Any]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return write_examples(tmp_path, COUNTS)


@pytest.fixture(params=["class", "accelerate"])
def ours(request: pytest.FixtureRequest) -> Callable[[Pipeline], Any]:
    if request.param == "class":
        return lambda pipeline: pipeline(tfr.TFRecordDataset)
    return lambda pipeline: tfr.accelerate(pipeline(tf.data.TFRecordDataset))


def theirs(pipeline: Pipeline) -> Any:
    return pipeline(tf.data.TFRecordDataset)


def number_of(record: Any) -> Any:
    return tf.io.parse_single_example(record, SPECS)["id"]


def outcome(dataset: Any) -> list[Any]:
    """The elements, with the kind of each error at its place."""
    found: list[Any] = []
    iterator = iter(dataset)
    while True:
        try:
            found.append(np.asarray(next(iterator)).tolist())
        except StopIteration:
            return found
        except tf.errors.OpError as error:
            found.append(type(error).__name__)


@pytest.mark.parametrize("narrow", NARROWED)
def test_random_numbers_from_a_seed_are_drawn_for_what_is_left_out(
    files: list[str], ours: Any, narrow: str
) -> None:
    def pipeline(read: Any) -> Any:
        def draw(record: Any) -> Any:
            return number_of(record) * 1000 + tf.random.uniform([], 0, 999, tf.int64, seed=7)

        tf.random.set_seed(11)
        mapped = read(files).map(draw)
        tf.random.set_seed(None)
        return NARROWED[narrow](mapped).batch(8)

    assert outcome(ours(pipeline)) == outcome(theirs(pipeline))


@pytest.mark.parametrize("narrow", NARROWED)
def test_a_host_function_sees_what_is_left_out(files: list[str], ours: Any, narrow: str) -> None:
    def seen(make: Any) -> Any:
        numbers: list[int] = []

        def note(number: Any) -> Any:
            numbers.append(int(number))
            return number + len(numbers) * 1000

        def call(record: Any) -> Any:
            return tf.ensure_shape(tf.numpy_function(note, [number_of(record)], tf.int64), [])

        found = outcome(make(lambda read: NARROWED[narrow](read(files).map(call)).batch(8)))
        return found, sorted(numbers)

    assert seen(ours) == seen(theirs)


@pytest.mark.parametrize("narrow", NARROWED)
@pytest.mark.parametrize("batched", [True, False])
def test_a_check_of_what_is_left_out_fails(
    files: list[str], ours: Any, narrow: str, batched: bool
) -> None:
    def pipeline(read: Any) -> Any:
        def check(record: Any) -> Any:
            number, wrong = number_of(record), tf.constant(3, tf.int64)
            with tf.control_dependencies([tf.debugging.assert_none_equal(number, wrong)]):
                return tf.identity(number)

        made = NARROWED[narrow](read(files).map(check))
        return made.batch(8) if batched else made

    expected = outcome(theirs(pipeline))
    assert "InvalidArgumentError" in expected
    assert outcome(ours(pipeline)) == expected


@pytest.mark.parametrize("is_random", [False, True])
def test_pure_maps_are_crossed(files: list[str], ours: Any, is_random: bool) -> None:
    def pipeline(read: Any) -> Any:
        def f(record: Any) -> Any:  # without a seed, nobody knows which numbers are drawn
            drawn = tf.random.uniform([], 0, 1, tf.int64) if is_random else 0
            return number_of(record) + tf.cast(drawn, tf.int64)

        return read(files).map(f).skip(30).shard(2, 1).batch(8)

    dataset = ours(pipeline)
    assert outcome(dataset) == outcome(theirs(pipeline))
    assert all(step.fused for step in tfr.explain(dataset).steps)


@pytest.mark.parametrize(
    "records",
    [
        lambda read, files: read(files),
        lambda read, files: read(files, num_parallel_reads=2),
        lambda read, files: read(files).shuffle(1000, seed=3),
        lambda read, files: tf.data.Dataset.from_tensor_slices(files).interleave(read, 2),
    ],
    ids=["in order", "parallel", "shuffled", "interleaved"],
)
def test_a_replaced_file_is_read_by_the_next_iteration(
    tmp_path: Path, files: list[str], ours: Any, records: Any
) -> None:
    dataset = ours(lambda read: records(read, files).map(number_of).batch(16))
    assert sorted(number for batch in outcome(dataset) for number in batch) == [*range(110)]
    (tmp_path / "new").mkdir()
    os.replace(write_examples(tmp_path / "new", [20])[0], files[1])
    again = sorted(number for batch in outcome(dataset) for number in batch)
    assert again == sorted([*range(60), *range(20)])


@pytest.mark.parametrize("after", ["rebatch", "window", "cache", "nondeterministic"])
@pytest.mark.parametrize("order", ["interleave", "shuffle"])
def test_rows_that_are_cut_again_are_saved(
    tmp_path: Path, files: list[str], ours: Any, order: str, after: str
) -> None:
    def parse(record: Any) -> Any:
        return tf.strings.substr(tf.strings.as_string(number_of(record)), 0, 2)  # row by row

    def pipeline(read: Any) -> Any:
        names = tf.data.Dataset.from_tensor_slices(files)
        records = names.interleave(read) if order == "interleave" else read(files).shuffle(500, 1)
        batches = records.map(parse).batch(8)
        if after == "rebatch":
            return batches.rebatch(5)
        if after == "window":
            return batches.window(2).flat_map(lambda window: window)
        if after == "cache":
            return batches.cache()
        return batches.map(tf.identity, num_parallel_calls=2, deterministic=False)

    dataset = ours(pipeline)
    iterator = iter(dataset)
    next(iterator), next(iterator), next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "state"))
    left = [batch.numpy().tolist() for batch in iterator]
    restored = iter(dataset)
    tf.train.Checkpoint(iterator=restored).restore(saved)
    assert [batch.numpy().tolist() for batch in restored] == left


@pytest.mark.parametrize(
    "batches",
    [
        lambda records: records.take(23).batch(16),
        lambda records: records.shuffle(100, seed=1).take(23).batch(16).prefetch(1),
        lambda records: records.map(number_of).batch(16),
    ],
)
def test_strategies_find_the_size_of_batches(files: list[str], ours: Any, batches: Any) -> None:
    """A strategy that does not find it shares a last, partial batch among all replicas."""
    from tensorflow.python.data.experimental.ops.distribute import compute_batch_size

    assert compute_batch_size(ours(lambda read: batches(read(files)))) == 16


def test_a_part_of_rows_of_different_lengths_follows_the_whole(files: list[str], ours: Any) -> None:
    specs = {"numbers": tf.io.RaggedFeature(tf.int64)}

    def pipeline(read: Any) -> Any:
        rows = read(files).map(lambda record: tf.io.parse_single_example(record, specs)["numbers"])
        return rows.concatenate(rows.take(3))

    assert outcome(ours(pipeline)) == outcome(theirs(pipeline))
