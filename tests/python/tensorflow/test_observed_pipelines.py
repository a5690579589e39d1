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
from example_files import outcomes, write_examples

tf = pytest.importorskip("tensorflow")

from tensorflow.core.framework import dataset_options_pb2  # noqa: E402

from tfrfast.tensorflow import internals  # noqa: E402

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

    assert outcomes(ours(pipeline)) == outcomes(theirs(pipeline))


@pytest.mark.parametrize("narrow", NARROWED)
def test_a_host_function_sees_what_is_left_out(files: list[str], ours: Any, narrow: str) -> None:
    def seen(make: Any) -> Any:
        numbers: list[int] = []

        def note(number: Any) -> Any:
            numbers.append(int(number))
            return number + len(numbers) * 1000

        def call(record: Any) -> Any:
            return tf.ensure_shape(tf.numpy_function(note, [number_of(record)], tf.int64), [])

        found = outcomes(make(lambda read: NARROWED[narrow](read(files).map(call)).batch(8)))
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

    expected = outcomes(theirs(pipeline))
    assert tf.errors.InvalidArgumentError in expected
    assert outcomes(ours(pipeline)) == expected


@pytest.mark.parametrize("is_random", [False, True])
def test_pure_maps_are_crossed(files: list[str], ours: Any, is_random: bool) -> None:
    def pipeline(read: Any) -> Any:
        def f(record: Any) -> Any:  # without a seed, nobody knows which numbers are drawn
            drawn = tf.random.uniform([], 0, 1, tf.int64) if is_random else 0
            return number_of(record) + tf.cast(drawn, tf.int64)

        return read(files).map(f).skip(30).shard(2, 1).batch(8)

    dataset = ours(pipeline)
    assert outcomes(dataset) == outcomes(theirs(pipeline))
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
    assert sorted(number for batch in outcomes(dataset) for number in batch) == [*range(110)]
    (tmp_path / "new").mkdir()
    os.replace(write_examples(tmp_path / "new", [20])[0], files[1])
    again = sorted(number for batch in outcomes(dataset) for number in batch)
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

    assert outcomes(ours(pipeline)) == outcomes(theirs(pipeline))


AFTER_A_CACHE: dict[str, Callable[[Any], Any]] = {
    "single": lambda mapped: mapped,
    "batches": lambda mapped: mapped.batch(4),
    "shuffled": lambda mapped: mapped.shuffle(50, seed=1).batch(16),
    "filtered": lambda mapped: mapped.filter(lambda number: number >= 0).batch(16),
}


@pytest.mark.parametrize("rest", AFTER_A_CACHE)
def test_a_map_after_a_cache_runs_in_each_epoch(files: list[str], ours: Any, rest: str) -> None:
    factor = tf.Variable(1, dtype=tf.int64)

    def pipeline(read: Any) -> Any:
        mapped = read(files).map(number_of).cache().map(lambda number: number * factor)
        return AFTER_A_CACHE[rest](mapped)

    def sums(dataset: Any) -> list[int]:
        found = []
        for value in (1, 10):
            factor.assign(value)
            found.append(sum(int(tf.reduce_sum(element)) for element in dataset))
        return found

    expected = sums(theirs(pipeline))
    assert expected[1] == 10 * expected[0]
    assert sums(ours(pipeline)) == expected


def open_and_skip(read: Any, files: list[str]) -> Any:
    def open_file(name: Any, count: Any) -> Any:
        def check(record: Any) -> Any:
            number = number_of(record)
            tf.debugging.assert_none_equal(number, tf.constant(3, tf.int64))
            return number

        return read(name).map(check).skip(count)

    names = tf.data.Dataset.from_tensor_slices((files[:1], tf.constant([20], tf.int64)))
    return names.flat_map(open_file).batch(8)


OBSERVED: dict[str, Callable[[Any, list[str]], Any]] = {
    "a check before a skip, in the function that opens the file": open_and_skip,
    "components without values": lambda read, files: (
        read(files)
        .map(lambda record: (number_of(record), tf.zeros([0])))
        .map(lambda number, nothing: tf.concat([[tf.cast(number, tf.float32)], nothing], 0))
    ),
    "rows of fewer values than their shape says": lambda read, files: read(files).map(
        lambda record: tf.reshape(
            tf.io.parse_single_example(record, {"numbers": tf.io.VarLenFeature(tf.int64)})[
                "numbers"
            ].values,
            [2],
        )
    ),
    "names that are repeated never, and then without end": lambda read, files: (
        read(tf.data.Dataset.from_tensor_slices(files).repeat(0).repeat()).map(number_of).batch(16)
    ),
}


@pytest.mark.parametrize("what", OBSERVED)
def test_what_is_observed_equals_tensorflow(files: list[str], ours: Any, what: str) -> None:
    def pipeline(read: Any) -> Any:
        return OBSERVED[what](read, files).take(300)

    assert outcomes(ours(pipeline)) == outcomes(theirs(pipeline))


@pytest.mark.parametrize("ending", [lambda d: d, lambda d: d.batch(8), lambda d: d.shuffle(9)])
def test_options_of_file_names_are_options_of_the_records(
    files: list[str], ours: Any, ending: Any
) -> None:
    options = tf.data.Options()
    options.deterministic, options.threading.private_threadpool_size = False, 3
    names = tf.data.Dataset.from_tensor_slices(files).with_options(options)
    dataset = ours(lambda read: ending(read(names)).with_options(tf.data.Options()))
    assert dataset.options() == names.options()
    run = tf.raw_ops.GetOptions(input_dataset=internals.variant_of(dataset._apply_debug_options()))
    given = dataset_options_pb2.Options.FromString(run.numpy())
    assert (given.deterministic, given.threading_options.private_threadpool_size) == (False, 3)


def test_components_without_values_are_read(files: list[str], ours: Any) -> None:
    def pipeline(read: Any) -> Any:
        return read(files).map(lambda record: (number_of(record), tf.zeros([0]))).shuffle(500)

    assert sorted(int(number) for number, _ in ours(pipeline)) == sorted(
        int(number) for number, _ in theirs(pipeline)
    )


def test_errors_that_are_left_out_of_datasets_side_by_side(files: list[str]) -> None:
    def refuse(record: Any) -> Any:
        number = number_of(record)
        with tf.control_dependencies([tf.debugging.assert_none_equal(number, np.int64(12))]):
            return tf.identity(number)

    batches = tf.data.TFRecordDataset(files).map(refuse).batch(8)
    zipped = tf.data.Dataset.zip((batches, tf.data.Dataset.range(100))).ignore_errors()
    both = zipped.map(lambda batch, number: tf.concat([batch, [number]], 0))
    assert outcomes(tfr.accelerate(both)) == outcomes(both)
