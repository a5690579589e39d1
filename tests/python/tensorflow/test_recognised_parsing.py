"""tf.io.parse_example in a map(), and its relatives: decoded while reading, with equal results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import elements, some_example, write_examples
from record_files import write_shard
from tfrfast.tensorflow import make_batched_features_dataset

tf = pytest.importorskip("tensorflow")

FEATURES: dict[str, Any] = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "dense": tf.io.FixedLenFeature([3], tf.float32),
    "absent": tf.io.FixedLenFeature([2], tf.string, [b"one", b"two"]),
    "missing": tf.io.FixedLenFeature([], tf.float32, 0.5),
    "weights": tf.io.FixedLenSequenceFeature([], tf.float32, True, -1.0),
    "words": tf.io.VarLenFeature(tf.string),
    "numbers": tf.io.RaggedFeature(tf.int64),
    "marks": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
}
COMPOSITE: dict[str, Any] = {
    "placed": tf.io.SparseFeature("positions", "marks", tf.int64, 10),
    "id": FEATURES["id"],
}


def parse(batch: Any) -> Any:
    return tf.io.parse_example(batch, FEATURES)


def pairs(batch: Any) -> Any:
    parsed = parse(batch)
    label = parsed.pop("id")
    return parsed, label


def twice(batch: Any) -> Any:
    parsed = parse(batch)
    return {"one": parsed["words"], "two": (parsed["words"], parsed["missing"])}


def scaled(batch: Any) -> Any:
    parsed = parse(batch)
    return parsed["dense"] * 2.0


def of_others(batch: Any) -> Any:
    return tf.io.parse_example(tf.reverse(batch, [0]), FEATURES)


def noisy(batch: Any) -> Any:
    parsed = parse(batch)
    return parsed["id"], tf.random.uniform([], seed=3) > 2.0


def printing(batch: Any) -> Any:
    tf.print("batch", output_stream="file:///dev/null")
    return parse(batch)


experimental = tf.data.experimental.parse_example_dataset
PARTIAL = functools.partial(tf.io.parse_example, features=FEATURES)
SEEN: dict[str, Callable[[Any], Any]] = {
    "function": lambda batches: batches.map(parse),
    "lambda": lambda batches: batches.map(lambda batch: tf.io.parse_example(batch, FEATURES)),
    "partial": lambda batches: batches.map(PARTIAL),
    "in parallel": lambda batches: batches.map(parse, num_parallel_calls=tf.data.AUTOTUNE),
    "prefetched": lambda batches: batches.prefetch(2).map(parse),
    "pairs": lambda batches: batches.map(pairs),
    "twice": lambda batches: batches.map(twice),
}
NOT_SEEN: dict[str, Callable[[Any], Any]] = {
    "scaled": lambda batches: batches.map(scaled),
    "reversed": lambda batches: batches.map(of_others),
    "noisy": lambda batches: batches.map(noisy),
    "printing": lambda batches: batches.map(printing),
    "composite": lambda batches: batches.map(lambda each: tf.io.parse_example(each, COMPOSITE)),
    "after another map": lambda batches: batches.map(lambda batch: batch).map(parse),
}
APPLIED = {"applied": FEATURES, "applied, composite": COMPOSITE}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("examples"), [20, 0, 11])


@pytest.mark.parametrize("full", [False, True], ids=["batches", "full batches"])
@pytest.mark.parametrize("chain", [*SEEN, *NOT_SEEN])
def test_maps_give_what_tensorflow_gives(files: list[str], chain: str, full: bool) -> None:
    tfr.Reader(files).close()
    apply = (SEEN | NOT_SEEN)[chain]
    ours = apply(tfr.TFRecordDataset(files).batch(8, drop_remainder=full))
    theirs = apply(tf.data.TFRecordDataset(files).batch(8, drop_remainder=full))
    assert elements(ours) == elements(theirs)
    assert ours.element_spec == theirs.element_spec
    assert ours.cardinality().numpy() == (3 if full else 4)
    assert tfr.explain(ours).steps[-1].fused == (chain in SEEN)


@pytest.mark.parametrize("full", [False, True], ids=["batches", "full batches"])
@pytest.mark.parametrize("features", [FEATURES, COMPOSITE, {"id": FEATURES["id"]}])
def test_transformations_give_what_tensorflow_gives(
    files: list[str], features: dict[str, Any], full: bool
) -> None:
    tfr.Reader(files).close()
    parse_dataset = experimental(features)
    ours = tfr.TFRecordDataset(files).batch(8, drop_remainder=full).apply(parse_dataset)
    theirs = tf.data.TFRecordDataset(files).batch(8, drop_remainder=full).apply(parse_dataset)
    assert elements(ours) == elements(theirs)
    assert ours.element_spec == theirs.element_spec
    if len(features) == 1:
        assert tfr.explain(ours).steps[-1].fused


def test_a_missing_feature_is_an_error_of_the_same_class(files: list[str]) -> None:
    tfr.Reader(files).close()
    features = {"lengths": tf.io.FixedLenFeature([1], tf.int64)}
    for dataset in (tfr.TFRecordDataset(files), tf.data.TFRecordDataset(files)):
        parsed = dataset.batch(8).map(lambda batch: tf.io.parse_example(batch, features))
        with pytest.raises(tf.errors.InvalidArgumentError, match="lengths"):
            elements(parsed)


@pytest.mark.parametrize("chain", SEEN)
def test_what_is_no_example_costs_the_same_batches(
    tmp_path: Path, files: list[str], chain: str
) -> None:
    records = [record.numpy() for record in tf.data.TFRecordDataset(files)]
    records[10:11] = [b"no Example"]
    bad = write_shard(tmp_path / "bad", records)
    tfr.Reader(bad).close()
    apply = SEEN[chain]
    ours, theirs = (
        apply(reader(bad).batch(4)) for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert tfr.explain(ours).steps[-1].fused
    assert elements(ours.ignore_errors()) == elements(theirs.ignore_errors())
    for dataset in (ours, theirs):
        iterator = iter(dataset)
        next(iterator), next(iterator)
        with pytest.raises(tf.errors.InvalidArgumentError):
            next(iterator)


def test_parsed_batches_can_still_be_repeated(files: list[str]) -> None:
    tfr.Reader(files).close()
    dataset = tfr.TFRecordDataset(files).shuffle(1, seed=1).batch(8).map(pairs)
    ids = [number for _, label in dataset.repeat(2) for number in label.numpy().tolist()]
    assert sorted(ids[:31]) == sorted(ids[31:]) == list(range(31))


def test_in_a_graph(files: list[str]) -> None:
    tfr.Reader(files).close()

    @tf.function
    def total() -> Any:
        batches = tfr.TFRecordDataset(files).batch(8).map(parse)
        return batches.reduce(
            tf.constant(0, tf.int64), lambda so_far, batch: so_far + tf.reduce_sum(batch["id"])
        )

    assert total().numpy() == sum(range(31))


@pytest.mark.parametrize("label", [None, "id"])
def test_batched_features_datasets(files: list[str], label: str | None) -> None:
    def made(reader: Any) -> list[Any]:
        return elements(
            tf.data.experimental.make_batched_features_dataset(
                files,
                batch_size=8,
                features=FEATURES,
                reader=reader,
                label_key=label,
                num_epochs=2,
                shuffle=False,
            )
        )

    assert made(tfr.TFRecordDataset) == made(tf.data.TFRecordDataset)


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("label", [None, "id"])
@pytest.mark.parametrize("drop", [False, True])
def test_our_batched_features_dataset_gives_what_tensorflows_gives(
    files: list[str], label: str | None, epochs: int, drop: bool
) -> None:
    def made(make: Any, **options: Any) -> Any:
        return make(
            files,
            batch_size=8,
            features=FEATURES,
            label_key=label,
            num_epochs=epochs,
            drop_final_batch=drop,
            **options,
        )

    theirs = made(tf.data.experimental.make_batched_features_dataset, shuffle=False)
    ours = made(make_batched_features_dataset, shuffle=False)
    assert elements(ours) == elements(theirs)
    shuffled = made(make_batched_features_dataset, shuffle_seed=3)
    calls = {step.call.partition("(")[0]: step.fused for step in tfr.explain(shuffled).steps}
    assert [calls[each] for each in ("shuffle", "batch", "parse_example")] == [True] * 3
    if not drop:
        ids = tf.data.Dataset.unbatch(shuffled.map(lambda *batch: id_of(*batch)))
        found = [int(each) for each in ids]
        expected = tf.data.Dataset.unbatch(theirs.map(lambda *batch: id_of(*batch)))
        assert sorted(found) == sorted(int(each) for each in expected)
        assert found != sorted(found)


def id_of(*batch: Any) -> Any:
    return batch[1] if len(batch) == 2 else batch[0]["id"]


def test_a_key_that_is_parsed_twice_is_tensorflows(files: list[str]) -> None:
    def twice(batch: Any) -> Any:
        return tf.raw_ops.ParseExampleV2(
            serialized=batch,
            names=tf.constant([], tf.string),
            sparse_keys=tf.constant([], tf.string),
            dense_keys=["id", "id"],
            ragged_keys=tf.constant([], tf.string),
            dense_defaults=[tf.constant([7], tf.int64)] * 2,
            num_sparse=0,
            sparse_types=[],
            ragged_value_types=[],
            ragged_split_types=[],
            dense_shapes=[[1], [1]],
        ).dense_values[0]

    ours, theirs = (
        reader(files).batch(8).map(twice)
        for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert not tfr.explain(ours).steps[-1].fused
    assert elements(ours) == elements(theirs)


def test_a_batched_features_dataset_takes_any_function_that_opens_files(tmp_path: Path) -> None:
    path = str(tmp_path / "shard")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        for number in range(20):
            writer.write(some_example(number))

    def gzip_reader_fn(name: Any, kind: str = "GZIP") -> Any:
        return tf.data.TFRecordDataset(name, compression_type=kind)

    def made(make: Any, *reader_args: str) -> Any:
        options = {"reader": gzip_reader_fn, "reader_args": reader_args or None}
        return elements(make(path, 8, FEATURES, num_epochs=1, shuffle=False, **options))

    theirs = made(tf.data.experimental.make_batched_features_dataset)
    assert made(make_batched_features_dataset) == theirs
    assert made(make_batched_features_dataset, "GZIP") == theirs
    with pytest.raises(tf.errors.DataLossError):
        made(make_batched_features_dataset, "")


def test_a_batched_features_dataset_says_what_it_cannot_do(files: list[str]) -> None:
    with pytest.raises(ValueError, match="label_key is 'none', but must be a feature: one of 'id'"):
        make_batched_features_dataset(files, 8, {"id": FEATURES["id"]}, label_key="none")
    with pytest.raises(TypeError, match="reads whole TFRecord files"):
        make_batched_features_dataset(files, 8, FEATURES, reader=tf.data.TextLineDataset)
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched"):
        make_batched_features_dataset(files[0] + "-none-*", 8, FEATURES)
