"""parse_example on the dataset, fused or not, against tf.io.parse_example."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import elements, plain, some_example, write_examples
from record_files import flip_payload_byte

tf = pytest.importorskip("tensorflow")

RaggedFeature = tf.io.RaggedFeature
FEATURES: dict[str, Any] = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "dense": tf.io.FixedLenFeature([3], tf.float32),
    "absent": tf.io.FixedLenFeature([2], tf.string, [b"one", b"two"]),
    "name": tf.io.FixedLenFeature([], tf.string),
    "weights": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
    "words": tf.io.VarLenFeature(tf.string),
    "numbers": RaggedFeature(tf.int64),
    "divided": RaggedFeature(
        tf.int64,
        value_key="numbers",
        partitions=[RaggedFeature.RowLengths("lengths")],
    ),
    "placed": tf.io.SparseFeature("positions", "marks", tf.int64, 10),
}
COUNTS = [40, 0, 27, 1]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("examples"), COUNTS)


Chain = Callable[[Any], Any]
CHAINS: dict[str, Chain] = {
    "batch": lambda source: source.batch(8),
    "full batches": lambda source: source.batch(8, drop_remainder=True),
    "part": lambda source: source.skip(5).shard(2, 1).take(20).batch(8),
    "shuffled": lambda source: source.shuffle(1, seed=3, reshuffle_each_iteration=False).batch(8),
    "shuffled epochs": lambda source: source.shuffle(1, seed=3).repeat(2).batch(8),
    "repeated batches": lambda source: source.shuffle(1, seed=3).batch(8).repeat(2),
    "blocks": lambda source: (
        source.shuffle(seed=3, order=tfr.BlockShuffle(8, 2, streams=2))
        .repeat(2)
        .batch(8, drop_remainder=True)
    ),
    "mapped, not fused": lambda source: source.map(lambda record: record).batch(8),
    "prefetched": lambda source: source.prefetch(9).batch(8).prefetch(2),
    "rebatched": lambda source: source.batch(3).rebatch(8).repeat(2),
    "padded": lambda source: source.padded_batch(8, drop_remainder=True),
    "cached": lambda source: source.cache().batch(8),
    "with options": lambda source: (
        source.with_options(tf.data.Options()).shuffle(1, 3, False).batch(8)
    ),
    "cached batches, not fused": lambda source: source.batch(8).cache().repeat(2),
    "filtered, not fused": lambda source: (
        source.filter(lambda record: tf.strings.length(record) % 2 == 0)
        .shuffle(1, seed=3, reshuffle_each_iteration=False)
        .batch(8)
    ),
    "batches taken, not fused": lambda source: source.batch(8).take(3).skip(1).repeat(2),
    "batches shuffled, not fused": lambda source: source.batch(8).shuffle(
        3, seed=1, reshuffle_each_iteration=False
    ),
}


STREAMED = ["batch", "full batches", "part", "shuffled epochs", "mapped, not fused", "rebatched"]


@pytest.mark.parametrize(
    ("chain", "planned"),
    [*((chain, True) for chain in CHAINS), *((chain, False) for chain in STREAMED)],
)
def test_gives_what_tensorflow_gives(files: list[str], chain: str, planned: bool) -> None:
    if planned:
        tfr.Reader(files).close()
    batches = CHAINS[chain](tfr.TFRecordDataset(files))
    theirs = tf.data.Dataset.map(batches, lambda records: tf.io.parse_example(records, FEATURES))
    ours = batches.parse_example(FEATURES)
    expected = elements(theirs)
    assert elements(ours) == expected
    length = len(expected)
    # Older TensorFlows do not know how many batches rebatch() makes.
    is_known = planned and "not fused" not in chain and chain != "rebatched"
    assert ours.cardinality() in (length, length if is_known else tf.data.UNKNOWN_CARDINALITY)
    for name, spec in theirs.element_spec.items():
        assert spec.is_compatible_with(ours.element_spec[name]), name
        assert type(spec) is type(ours.element_spec[name])


def test_repeats_of_decoded_batches_reshuffle_as_those_of_strings(files: list[str]) -> None:
    batches = tfr.TFRecordDataset(files).shuffle(1, seed=3).batch(8)
    after = batches.parse_example({"id": FEATURES["id"]}).repeat(2)
    before = batches.repeat(2).parse_example({"id": FEATURES["id"]})
    assert elements(after) == elements(before)
    assert after.cardinality() == before.cardinality()


def test_single_records_are_parsed_as_well(files: list[str]) -> None:
    features = {"id": FEATURES["id"], "words": FEATURES["words"]}
    dataset = tfr.TFRecordDataset(files).parse_example(features).shuffle(1).batch(10)
    ids = [number for batch in dataset for number in batch["id"].numpy().tolist()]
    assert ids != sorted(ids)
    assert sorted(ids) == list(range(sum(COUNTS)))


def test_our_specs_want_batches(files: list[str]) -> None:
    features = {"id": tfr.FixedLen((), "int32"), "numbers": tfr.VarLen("int64")}
    source = tfr.TFRecordDataset(files)
    with pytest.raises(TypeError, match=r"batch\(\) first"):
        source.parse_example(features)
    batch = next(iter(source.batch(8).parse_example(features)))
    assert batch["id"].dtype == tf.int32
    assert isinstance(batch["numbers"], tf.RaggedTensor)


def test_only_records_can_be_parsed(files: list[str]) -> None:
    numbers = tfr.TFRecordDataset(files).map(tf.strings.length)
    with pytest.raises(TypeError, match="serialized records"):
        numbers.parse_example(FEATURES)


@pytest.mark.parametrize("planned", [True, False], ids=["planned", "streaming"])
def test_a_missing_feature_is_named(files: list[str], planned: bool) -> None:
    if planned:
        tfr.Reader(files).close()
    features = {"lengths": tf.io.FixedLenFeature([1], tf.int64)}
    dataset = tfr.TFRecordDataset(files).batch(8).parse_example(features)
    with pytest.raises(tf.errors.InvalidArgumentError, match="lengths"):
        elements(dataset)


RECORDS = [some_example(number) for number in range(40)]


class TestDamage:
    @pytest.fixture(params=["planned", "streaming"])
    def damaged(self, request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
        files = write_examples(tmp_path, [40, 10])
        flip_payload_byte(files[0], RECORDS, 21)
        if request.param == "planned":
            tfr.Reader(files).close()
        return files

    def ids(self, dataset: Any) -> list[int]:
        return [number for batch in dataset for number in batch["id"].numpy().tolist()]

    @pytest.mark.parametrize("full", [False, True], ids=["batches", "full batches"])
    def test_comes_behind_the_batches_before_it(self, damaged: list[str], full: bool) -> None:
        dataset = tfr.TFRecordDataset(damaged).batch(8, drop_remainder=full)
        dataset = dataset.parse_example({"id": FEATURES["id"]})
        got: list[int] = []
        with pytest.raises(tf.errors.DataLossError, match="record 21"):
            for batch in dataset:
                got += batch["id"].numpy().tolist()
        assert got == list(range(16))

    def test_leaves_the_columns_of_the_rest(self, damaged: list[str]) -> None:
        tfr.Reader(damaged).close()
        dataset = tfr.TFRecordDataset(damaged).batch(50).parse_example(FEATURES)
        rest = [some_example(number) for number in range(50) if number != 21]
        assert elements(dataset.ignore_errors()) == [plain(tf.io.parse_example(rest, FEATURES))]

    def test_may_be_skipped(self, damaged: list[str]) -> None:
        dataset = tfr.TFRecordDataset(damaged, on_corruption="skip").batch(8)
        got = self.ids(dataset.parse_example({"id": FEATURES["id"]}))
        assert got == [each for each in range(50) if each != 21]


def test_a_changed_file_is_refused_until_a_new_iteration(tmp_path: Path) -> None:
    files = write_examples(tmp_path, [40])
    tfr.Reader(files).close()
    dataset = tfr.TFRecordDataset(files).shuffle(1).batch(8).parse_example({"id": FEATURES["id"]})
    assert len(elements(dataset)) == 5
    iterator = iter(dataset.repeat(9))
    next(iterator)
    write_examples(tmp_path, [30])
    with pytest.raises((tf.errors.FailedPreconditionError, tf.errors.DataLossError)):
        list(iterator)
    assert len(elements(dataset)) == 4
