"""Errors of pipelines begin with the cause, not with the place in the pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import some_example
from record_files import flip_payload_byte, write_shard

tf = pytest.importorskip("tensorflow")

from tfrfast.tensorflow import TFRecordDataset  # noqa: E402

FEATURES = {"id": tf.io.FixedLenFeature([], tf.int64)}
Chain = Callable[[Any], Any]

CHAINS: dict[str, Chain] = {
    "records": lambda source: source,
    "batches": lambda source: source.batch(4),
    "shuffled": lambda source: source.shuffle(100),
    "shuffled batches": lambda source: source.shuffle(100).batch(4),
    "columns": lambda source: source.batch(4).parse_example(FEATURES),
    "shuffled columns": lambda source: source.shuffle(100).batch(4).parse_example(FEATURES),
    "every third": lambda source: source.shard(3, 2),
    "rest": lambda source: source.skip(3),
}


def message_of(dataset: Any) -> str:
    with pytest.raises(tf.errors.OpError) as raised:
        list(dataset)
    message: str = raised.value.message
    # Eager calls put the op before every message, TensorFlow's own included.
    return message.split("}} ", 1)[1] if message.startswith("{{function_node") else message


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    records = list(map(some_example, range(12)))
    path = write_shard(tmp_path / "damaged", records)
    flip_payload_byte(path, records, 5)
    return path


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_damage_comes_first(damaged: str, chain: Chain) -> None:
    message = message_of(chain(TFRecordDataset(damaged)))
    assert message.startswith(f"Corrupt payload: record 5 of '{damaged}'")


FULL_CHAINS: dict[str, Chain] = {
    "batches": lambda source: source.batch(4, drop_remainder=True),
    "columns": lambda source: source.batch(4, drop_remainder=True).parse_example(FEATURES),
    "shuffled": lambda source: source.shuffle(100).batch(4, drop_remainder=True),
}


@pytest.mark.parametrize("chain", FULL_CHAINS.values(), ids=FULL_CHAINS)
def test_damage_of_full_batches_is_told_after_tensorflows_words(damaged: str, chain: Chain) -> None:
    message = message_of(chain(TFRecordDataset(damaged)))
    assert f"Corrupt payload: record 5 of '{damaged}'" in message


# Loaders with and without full batches, and with dense and other columns.
LOADERS: dict[str, dict[str, Any]] = {
    "records": {},
    "full records": {"remainder": "drop"},
    "columns": {"features": {"id": tfr.FixedLen((), "int64"), "name": tfr.FixedLen((), "bytes")}},
    "full columns": {"features": {"id": tfr.FixedLen((), "int64")}, "remainder": "pad"},
    "full ragged columns": {
        "features": {
            "id": tfr.FixedLen((), "int64"),
            "words": tfr.VarLen("bytes"),
            "divided": tfr.VarLen("int64", key="marks", partitions=[("uniform_row_length", 1)]),
            "placed": tfr.SparseIndexed("positions", "numbers", "int64", 10),
        },
        "remainder": "drop",
    },
}


@pytest.mark.parametrize("options", LOADERS.values(), ids=LOADERS)
class TestOfALoader:
    def test_damage_comes_first(self, damaged: str, options: dict[str, Any]) -> None:
        dataset = tfr.Loader(damaged, 4, **options).to_tf_dataset()
        assert message_of(dataset).startswith(f"Corrupt payload: record 5 of '{damaged}'")

    def test_is_raised_after_the_good_batches_and_before_the_next(
        self, damaged: str, options: dict[str, Any]
    ) -> None:
        loader = tfr.Loader(damaged, 4, shuffle=False, **options)
        iterator = iter(loader.to_tf_dataset(epochs=2, with_indices=True))
        seen: list[int | str] = []
        for _ in range(6):
            try:
                seen += next(iterator)[1].numpy().tolist()
            except tf.errors.DataLossError:
                seen.append("data loss")
        assert seen == [0, 1, 2, 3, "data loss", 8, 9, 10, 11] * 2
        with pytest.raises(StopIteration):
            next(iterator)

    @pytest.mark.parametrize("epochs", [3, None])
    def test_the_good_batches_are_left_where_errors_are_ignored(
        self, damaged: str, options: dict[str, Any], epochs: int | None
    ) -> None:
        loader = tfr.Loader(damaged, 4, shuffle=False, **options)
        dataset = loader.to_tf_dataset(epochs=epochs, with_indices=True).ignore_errors()
        got = [batch[1].numpy()[0] for batch in dataset.take(6)]
        assert got == [0, 8] * 3

    def test_a_file_that_is_cut_comes_first(self, damaged: str, options: dict[str, Any]) -> None:
        dataset = tfr.Loader(tfr.Reader(damaged, io="pread"), 4, **options).to_tf_dataset()
        os.truncate(damaged, 100)
        assert message_of(dataset).startswith(f"'{damaged}'")


def test_a_feature_that_a_loader_does_not_find_comes_first(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "plain", list(map(some_example, range(12))))
    features = {"name": tfr.FixedLen((3,), "int64")}
    loader = tfr.Loader(path, 4, features=features, remainder="drop", shuffle=False)
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(loader.to_tf_dataset())
    assert message_of(loader.to_tf_dataset()).startswith("Feature 'name': Data types don't match")


def test_a_file_that_is_missing_comes_first(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert message_of(TFRecordDataset(missing)).startswith(f"Opening '{missing}'")


def test_a_missing_feature_comes_first(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "plain", list(map(some_example, range(12))))
    features = {"brand": tf.io.FixedLenFeature([], tf.int64)}
    dataset = TFRecordDataset(path).shuffle(100).batch(4).parse_example(features)
    assert message_of(dataset).startswith("Feature: brand (data type: int64) is required")
