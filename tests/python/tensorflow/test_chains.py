"""Random chains of all methods of tf.data, with checkpoints, and what our own calls add to them."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import elements
from record_files import some_records, write_shards

tf = pytest.importorskip("tensorflow")

from dataset_chains import check_a_chain, check_a_shuffle  # noqa: E402

CHAINS = int(os.environ.get("TFRFAST_TEST_CHAINS", "12"))
COUNTS = [40, 0, 27, 1, 63]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_shards(tmp_path_factory.mktemp("chains"), COUNTS)


@pytest.fixture
def records() -> list[bytes]:
    return [record for i, count in enumerate(COUNTS) for record in some_records(count, i)]


@pytest.fixture(params=["planned", "streaming"])
def source(request: pytest.FixtureRequest, files: list[str]) -> Any:
    if request.param == "planned":
        tfr.Reader(files).close()
    dataset = tfr.TFRecordDataset(files)
    assert (dataset.cardinality().numpy() == sum(COUNTS)) == (request.param == "planned")
    return dataset


def last_byte(record: Any) -> Any:
    return tf.strings.substr(record, -1, 1)


def some_pass(element: Any) -> Any:
    return tf.strings.length(tf.reshape(element, [-1])[0]) % 3 != 0


@pytest.mark.parametrize("number", range(CHAINS))
def test_random_chains(tmp_path: Path, number: int) -> None:
    check_a_chain(random.Random(number), write_shards(tmp_path, [13, 0, 20, 1]))


@pytest.mark.newest
@pytest.mark.parametrize("number", range(CHAINS))
def test_random_chains_with_a_shuffle_in_the_middle(files: list[str], number: int) -> None:
    if number % 2:
        tfr.Reader(files).close()  # otherwise the shuffle turns the stream into a plan
    check_a_shuffle(random.Random(1000 + number), files)


def test_shuffle_is_a_plans_order(files: list[str], records: list[bytes]) -> None:
    dataset = tfr.TFRecordDataset(files).shuffle(10, seed=5).repeat(3).batch(32)
    plan = tfr.Plan(tfr.Shuffle(5), 32, num_records=len(records))
    expected = [
        records[number]
        for epoch in range(3)
        for step in range(plan.steps)
        for number in plan.indices(epoch, step).tolist()
    ]
    assert [record for batch in elements(dataset) for record in batch] == expected


def test_block_shuffle_is_a_plans_order(files: list[str], records: list[bytes]) -> None:
    order = tfr.BlockShuffle(8, 2, streams=4)
    dataset = tfr.TFRecordDataset(files).shuffle(seed=5, order=order).batch(32).repeat(2)
    plan = tfr.Plan(tfr.BlockShuffle(8, 2, streams=4, seed=5), 32, num_records=len(records))
    expected = [
        [records[number] for number in plan.indices(epoch, step).tolist()]
        for epoch in range(2)
        for step in range(plan.steps)
    ]
    assert elements(dataset) == expected


class TestReshuffling:
    @pytest.mark.parametrize("seed", [None, 7])
    def test_each_iteration_has_an_order_of_its_own(
        self, files: list[str], seed: int | None
    ) -> None:
        def orders(dataset: Any) -> int:
            return len({repr(elements(dataset)) for _ in range(4)})

        shuffled = tfr.TFRecordDataset(files).shuffle(100, seed)
        assert orders(shuffled.repeat(1).batch(9)) == 4
        assert orders(shuffled.batch(9).repeat(2).prefetch(1)) == 4
        once = tfr.TFRecordDataset(files).shuffle(100, seed, reshuffle_each_iteration=False)
        assert orders(once.repeat(2).batch(9)) == 1

    def test_and_the_same_one_for_the_same_seed(self, files: list[str]) -> None:
        def three_iterations() -> list[Any]:
            dataset = tfr.TFRecordDataset(files).shuffle(1, seed=1).batch(9)
            return [elements(dataset) for _ in range(3)]

        assert three_iterations() == three_iterations()

    def test_repetitions_before_it_are_epochs_too(self, files: list[str]) -> None:
        after = tfr.TFRecordDataset(files).shuffle(1, seed=1).repeat(6)
        before = tfr.TFRecordDataset(files).repeat(2).map(last_byte).repeat(3).shuffle(1, seed=1)
        assert elements(before.batch(9)) == elements(after.map(last_byte).batch(9))
        assert all(step.fused for step in tfr.explain(before).steps if "repeat" in step.call)

    def test_without_a_seed_datasets_differ(self, files: list[str]) -> None:
        a, b = (elements(tfr.TFRecordDataset(files).shuffle(1)) for _ in range(2))
        assert a != b

    def test_the_global_seed_decides_where_none_is_given(self, files: list[str]) -> None:
        def under(seed: int) -> list[Any]:
            tf.random.set_seed(seed)
            return elements(tfr.TFRecordDataset(files).shuffle(1))

        assert under(3) == under(3) != under(4)


class TestGrammar:
    def test_shard_after_an_unseeded_shuffle_is_refused(self, files: list[str]) -> None:
        with pytest.raises(ValueError, match="seed"):
            iter(tfr.TFRecordDataset(files).shuffle(1).shard(2, 0))
        assert len(tfr.TFRecordDataset(files).shuffle(1).shard(1, 0)) == sum(COUNTS)

    def test_shards_of_a_seeded_shuffle_are_a_split(
        self, files: list[str], records: list[bytes]
    ) -> None:
        shards = [
            elements(tfr.TFRecordDataset(files).shuffle(1, seed=4).shard(3, index))
            for index in range(3)
        ]
        assert sorted(sum(shards, [])) == sorted(records)

    def test_an_invalid_shard_is_refused_as_tensorflow_does(self, source: Any) -> None:
        with pytest.raises(tf.errors.InvalidArgumentError):
            source.shard(2, 2)

    def test_arguments_may_be_tensors(self, source: Any, records: list[bytes]) -> None:
        count = tf.Variable(3, dtype=tf.int64)
        assert elements(source.skip(tf.constant(4, tf.int64)).take(count)) == records[4:7]

    def test_arguments_may_be_symbolic(self, files: list[str], records: list[bytes]) -> None:
        tfr.Reader(files).close()

        @tf.function
        def count(number: Any, drop: Any, folder: Any) -> Any:
            dataset = tfr.TFRecordDataset(files).take(number).skip(number - 3).repeat(number)
            dataset = dataset.prefetch(2).cache(folder).batch(number, drop).rebatch(2, drop)
            dataset = dataset.padded_batch(number, [None], drop_remainder=drop).prefetch(1)
            return dataset.reduce(tf.constant(0), lambda total, each: total + tf.size(each))

        number = tf.constant(5, tf.int64)
        assert count(number, tf.constant(False), tf.constant("")).numpy() == 15 + 1
        assert count(number, tf.constant(True), tf.constant("")).numpy() == 10

    @pytest.mark.parametrize("size", [0, -1])
    def test_a_buffer_of_nothing_is_refused_as_tensorflow_does(
        self, source: Any, size: int
    ) -> None:
        with pytest.raises(tf.errors.InvalidArgumentError, match="greater than zero"):
            source.shuffle(size)

    def test_no_repetitions_are_nothing(self, source: Any) -> None:
        for dataset in (source, source.batch(3), source.filter(some_pass), source.shuffle(1)):
            assert dataset.repeat(0).cardinality().numpy() == 0
            assert elements(dataset.repeat(0)) == []

    def test_endless_repetition(self, files: list[str], records: list[bytes]) -> None:
        dataset = tfr.TFRecordDataset(files).shuffle(1).repeat()
        assert dataset.cardinality().numpy() == tf.data.INFINITE_CARDINALITY
        got = elements(dataset.take(2 * len(records)))
        assert sorted(got) == sorted(records * 2)
        batched = dataset.batch(10)
        assert batched.cardinality().numpy() == tf.data.INFINITE_CARDINALITY
        assert len(elements(batched.take(100))) == 100

    def test_symbolic_names_shuffle_through_the_buffer(
        self, files: list[str], records: list[bytes]
    ) -> None:
        names = tf.data.Dataset.from_tensor_slices(files).map(lambda name: name)
        dataset = tfr.TFRecordDataset(names)
        assert sorted(elements(dataset.shuffle(10))) == sorted(records)
        for unplanned in (
            dataset,
            dataset.concatenate(dataset),
            tfr.TFRecordDataset(files).repeat().batch(2),
        ):
            with pytest.raises(ValueError, match="known"):
                iter(unplanned.shuffle(10, order=tfr.BlockShuffle(8, 2)).prefetch(1))
            with pytest.raises(TypeError, match="needs a buffer_size"):
                iter(unplanned.shuffle().prefetch(1))

    def test_an_orders_own_seed_and_indices_are_refused(self, files: list[str]) -> None:
        dataset = tfr.TFRecordDataset(files)
        for order in (
            tfr.BlockShuffle(8, 2, seed=3),
            tfr.BlockShuffle(8, 2, indices=[1, 2]),
        ):
            with pytest.raises(ValueError, match=r"shuffle\(seed=...\)"):
                dataset.shuffle(10, order=order)
        with pytest.raises(TypeError, match="BlockShuffle"):
            dataset.shuffle(10, order=tfr.Shuffle())

    def test_users_options_go_first(self, files: list[str]) -> None:
        options = tf.data.Options()
        options.experimental_symbolic_checkpoint = False
        dataset = tfr.TFRecordDataset(files).shuffle(1)
        with_users = dataset.with_options(options)
        assert with_users.options().experimental_symbolic_checkpoint is False
        assert len(elements(with_users)) == sum(COUNTS)
