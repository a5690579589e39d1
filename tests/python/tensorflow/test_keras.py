"""Keras reads each record once an epoch, however it counts its epochs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import write_examples

tf = pytest.importorskip("tensorflow")

TRAIN, VALIDATE, ROWS, EPOCHS = 60, 25, 8, 3
STEPS = -(-TRAIN // ROWS)
FEATURES = {"id": tfr.FixedLen((), "int64"), "dense": tfr.FixedLen((3,), "float32")}


class SumOfIds(tf.keras.metrics.Metric):  # type: ignore[misc]
    """Sums the labels: 2 to the power of the record's number. So a sum is a set of records."""

    def __init__(self) -> None:
        super().__init__(name="ids")
        self.sum = self.add_weight(name="sum", initializer="zeros", dtype="float64")

    def update_state(self, labels: Any, predictions: Any, sample_weight: Any = None) -> None:
        self.sum.assign_add(tf.reduce_sum(tf.cast(labels, tf.float64)))

    def result(self) -> Any:
        return tf.convert_to_tensor(self.sum)


def samples(batch: Any) -> Any:
    """Inputs and labels."""
    return batch["dense"], tf.pow(tf.constant(2, tf.float64), tf.cast(batch["id"] % 52, tf.float64))


def ids(count: int) -> float:
    """Returns the sum for the records 0 to `count` - 1, each once."""
    return float(sum(2 ** (number % 52) for number in range(count)))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("train"), [TRAIN - 20, 20])


@pytest.fixture(scope="module")
def validation(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("validate")
    dataset = tfr.TFRecordDataset(write_examples(folder, [VALIDATE]))
    return dataset.batch(ROWS).parse_example(FEATURES).map(samples)


def source(files: list[str], which: str, endless: bool) -> Any:
    if which == "loader":
        loader = tfr.Loader(files, ROWS, features=FEATURES)
        dataset = loader.to_tf_dataset(epochs=None if endless else 1)
    else:
        dataset = tfr.TFRecordDataset(files).shuffle(1).batch(ROWS)
        if endless:
            dataset = dataset.repeat()
        dataset = dataset.parse_example(FEATURES)
    return dataset.map(samples).prefetch(1)


@pytest.mark.parametrize("steps", [None, STEPS], ids=["whole datasets", "steps_per_epoch"])
@pytest.mark.parametrize("which", ["dataset", "loader"])
def test_fits(files: list[str], validation: Any, which: str, steps: int | None) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mae", metrics=[SumOfIds()])
    dataset = source(files, which, endless=steps is not None)
    history = model.fit(
        dataset,
        epochs=EPOCHS,
        steps_per_epoch=steps,
        validation_data=validation,
        verbose=0,
    ).history
    assert history["ids"] == [ids(TRAIN)] * EPOCHS
    assert history["val_ids"] == [ids(VALIDATE)] * EPOCHS


def test_evaluates_and_predicts(files: list[str], validation: Any) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mae", metrics=[SumOfIds()])
    assert model.evaluate(validation, verbose=0)[1] == ids(VALIDATE)
    assert model.predict(validation, verbose=0).shape == (VALIDATE, 1)
