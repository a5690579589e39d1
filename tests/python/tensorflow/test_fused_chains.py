"""Chains of calls: fused calls give the elements that plain tf.data gives for the same records."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import elements
from record_files import flip_payload_byte, some_records, write_shard, write_shards

tf = pytest.importorskip("tensorflow")

CHAINS = int(os.environ.get("TFRFAST_TEST_CHAINS", "20"))
COUNTS = [40, 0, 27, 1, 63]

Step = Callable[[Any], Any]


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


def with_options(dataset: Any, chosen: bool) -> Any:
    options = tf.data.Options()
    if chosen:
        options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def random_step(choice: random.Random, batched: bool) -> tuple[str, Step]:
    count = choice.choice([-1, 0, 1, 5, 50, 130, 1000])
    shards = choice.randrange(1, 5)
    index = choice.randrange(shards)
    rows = choice.choice([1, 3, 16, 200])
    drop = choice.random() < 0.4
    steps: list[tuple[str, Step]] = [
        (f"take({count})", lambda dataset: dataset.take(count)),
        (f"skip({count})", lambda dataset: dataset.skip(count)),
        (f"shard({shards}, {index})", lambda dataset: dataset.shard(shards, index)),
        (f"repeat({shards - 1})", lambda dataset: dataset.repeat(shards - 1)),
        ("map()", lambda dataset: dataset.map(lambda record: tf.strings.join([record, "!"]))),
        ("filter()", lambda dataset: dataset.filter(some_pass)),
        (f"prefetch({rows})", lambda dataset: dataset.prefetch(rows)),
        ("cache()", lambda dataset: dataset.cache()),
        (f"with_options({drop})", lambda dataset: with_options(dataset, drop)),
    ]
    if batched:
        steps += [
            (f"rebatch({rows}, {drop})", lambda dataset: dataset.rebatch(rows, drop)),
            ("unbatch()", lambda dataset: dataset.unbatch()),
        ]
    else:
        steps += [
            (f"batch({rows}, {drop})", lambda dataset: dataset.batch(rows, drop_remainder=drop)),
            (
                f"padded_batch({rows}, {drop})",
                lambda dataset: dataset.padded_batch(rows, [], drop_remainder=drop),
            ),
        ]
    return choice.choice(steps)


def is_batched(chain: list[tuple[str, Step]]) -> bool:
    names = [name for name, _ in chain if "batch" in name]
    return bool(names) and not names[-1].startswith("unbatch")


def random_chain(choice: random.Random, length: int) -> list[tuple[str, Step]]:
    chain: list[tuple[str, Step]] = []
    for _ in range(length):
        chain.append(random_step(choice, is_batched(chain)))
    return chain


def apply(dataset: Any, chain: list[tuple[str, Step]]) -> Any:
    for _, step in chain:
        dataset = step(dataset)
    return dataset


@pytest.mark.newest
@pytest.mark.parametrize("number", range(CHAINS))
def test_random_chains_in_file_order(source: Any, records: list[bytes], number: int) -> None:
    choice = random.Random(number)
    chain = random_chain(choice, choice.randrange(1, 6))
    plain = apply(tf.data.Dataset.from_tensor_slices(records), chain)
    ours = apply(source, chain)
    names = [name for name, _ in chain]
    assert elements(ours) == elements(plain), names
    assert ours.element_spec == plain.element_spec, names
    assert isinstance(ours, type(source).__base__), names
    known = len(elements(plain))  # TensorFlow does not know the length of some chains
    assert ours.cardinality() in (plain.cardinality(), tf.data.UNKNOWN_CARDINALITY, known), names


@pytest.mark.newest
@pytest.mark.parametrize("number", range(CHAINS))
def test_random_chains_behind_a_shuffle(
    files: list[str], records: list[bytes], number: int
) -> None:
    choice = random.Random(1000 + number)
    before = [
        step
        for step in random_chain(choice, 6)
        if "batch" not in step[0] and not step[0].startswith("repeat")
    ]
    if any(name.startswith("filter") for name, _ in before):  # take() after it ends the plan
        before = [step for step in before if not step[0].startswith(("take", "skip", "shard"))]
    if any(name.startswith(("filter", "map")) for name, _ in before):  # and so does cache()
        before = [step for step in before if step[0] != "cache()"]
    behind = random_chain(choice, choice.randrange(0, 5))
    order = choice.choice([None, None, tfr.BlockShuffle(8, 2, streams=3)])
    if number % 2:
        tfr.Reader(files).close()  # otherwise the shuffle would turn the stream into a plan
    source = tfr.TFRecordDataset(files)

    def shuffled() -> Any:
        return apply(source, before).shuffle(
            1, seed=number, reshuffle_each_iteration=False, order=order
        )

    kept = elements(apply(tf.data.Dataset.from_tensor_slices(records), before))
    sequence = elements(shuffled())
    assert sorted(sequence) == sorted(kept)
    plain = tf.data.Dataset.from_tensor_slices(tf.constant(sequence, tf.string, [len(sequence)]))
    names = [name for name, _ in (*before, ("shuffle", None), *behind)]
    ours = apply(shuffled(), behind)
    assert elements(ours) == elements(apply(plain, behind)), names


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
    def test_each_iteration_has_an_order_of_its_own(self, files: list[str]) -> None:
        dataset = tfr.TFRecordDataset(files).shuffle(1, seed=1)
        first, second = elements(dataset), elements(dataset)
        assert first != second
        assert sorted(first) == sorted(second)

    @pytest.mark.parametrize("seed", [None, 7])
    def test_iterations_of_repetitions_do_so_too(self, files: list[str], seed: int | None) -> None:
        def orders(dataset: Any) -> int:
            return len({repr(elements(dataset)) for _ in range(4)})

        shuffled = tfr.TFRecordDataset(files).shuffle(100, seed)
        assert orders(shuffled.repeat(1).batch(9)) == 4
        assert orders(shuffled.batch(9).repeat(2).prefetch(1)) == 4
        once = tfr.TFRecordDataset(files).shuffle(100, seed, reshuffle_each_iteration=False)
        assert orders(once.repeat(2).batch(9)) == 1

    def test_the_first_iteration_is_the_plans(self, files: list[str], records: list[bytes]) -> None:
        indices = tfr.Plan(tfr.Shuffle(5), 1, num_records=len(records)).indices
        expected = [records[int(indices(0, step)[0])] for step in range(len(records))]
        assert elements(tfr.TFRecordDataset(files).shuffle(1, seed=5)) == expected

    def test_and_the_same_one_for_the_same_seed(self, files: list[str]) -> None:
        def three_iterations() -> list[Any]:
            dataset = tfr.TFRecordDataset(files).shuffle(1, seed=1).batch(9)
            return [elements(dataset) for _ in range(3)]

        assert three_iterations() == three_iterations()

    def test_not_if_told_so(self, files: list[str]) -> None:
        dataset = tfr.TFRecordDataset(files).shuffle(1, reshuffle_each_iteration=False)
        once = elements(dataset)
        assert elements(dataset) == once
        assert elements(dataset.repeat(2)) == once * 2

    def test_each_repetition_has_an_order_of_its_own(self, files: list[str]) -> None:
        twice = elements(tfr.TFRecordDataset(files).shuffle(1, seed=1).repeat(2))
        half = len(twice) // 2
        assert twice[:half] != twice[half:]
        assert sorted(twice[:half]) == sorted(twice[half:])

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

        try:
            assert under(3) == under(3) != under(4)
        finally:
            tf.compat.v1.reset_default_graph()
            tf.random.set_seed(None)


class TestGrammar:
    def test_maps_wait_so_that_the_shuffle_is_exact(self, files: list[str]) -> None:
        dataset = tfr.TFRecordDataset(files).map(last_byte).shuffle(1, seed=2)
        plain = tfr.TFRecordDataset(files).shuffle(1, seed=2).map(last_byte)
        assert elements(dataset) == elements(plain)

    def test_maps_may_change_the_structure(self, files: list[str]) -> None:
        def parse(record: Any) -> Any:
            return {"record": record, "bytes": tf.strings.length(record)}, record

        dataset = tfr.TFRecordDataset(files).map(parse).shuffle(1).take(20).repeat(2)
        assert dataset.element_spec[0]["bytes"].dtype == tf.int32
        got = list(dataset)
        assert len(got) == 40
        assert all(features["record"] == record for features, record in got)

    def test_a_map_of_batches_is_plain(self, source: Any, records: list[bytes]) -> None:
        sizes = source.batch(50).map(tf.size)
        assert sum(elements(sizes)) == len(records)

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

    def test_cardinality_is_known(self, files: list[str], records: list[bytes]) -> None:
        dataset = tfr.TFRecordDataset(files).shuffle(1)
        count = len(records)
        assert dataset.cardinality().numpy() == count
        assert dataset.prefetch(1).cardinality().numpy() == count
        assert dataset.batch(10).cardinality().numpy() == -(-count // 10)
        assert dataset.batch(10, drop_remainder=True).cardinality().numpy() == count // 10
        assert dataset.repeat(3).batch(10).cardinality().numpy() == -(-3 * count // 10)
        assert dataset.batch(10).repeat(3).cardinality().numpy() == 3 * -(-count // 10)
        assert len(dataset.batch(10)) == -(-count // 10)

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


@pytest.mark.parametrize("indexed", [True, False], ids=["planned", "streaming"])
@pytest.mark.parametrize(
    "chain",
    [
        lambda source: source.prefetch(4).batch(8),
        lambda source: source.batch(3).prefetch(1).rebatch(8),
        lambda source: source.padded_batch(8, []),
        lambda source: source.cache("").map(tf.identity).batch(8),
        lambda source: source.filter(some_pass).prefetch(2).batch(8),
        lambda source: source.with_options(tf.data.Options()).skip(3).batch(8),
    ],
)
def test_damage_costs_no_more_than_with_tensorflow(
    tmp_path: Path, chain: Step, indexed: bool
) -> None:
    records = some_records(60, 1)
    files = [
        write_shard(tmp_path / "damaged", records),
        write_shard(tmp_path / "whole", some_records(20, 2)),
    ]
    flip_payload_byte(files[0], records, 21)
    if indexed:
        tfr.Reader(files).close()
    theirs = chain(tf.data.TFRecordDataset(files))
    ours = chain(tfr.TFRecordDataset(files))
    for dataset in (theirs, ours):
        with pytest.raises(tf.errors.DataLossError):
            elements(dataset)
    survivors, left = (set(elements(each.ignore_errors().unbatch())) for each in (theirs, ours))
    assert left >= survivors
    assert len(left) <= 79
