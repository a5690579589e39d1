"""Programs of others, as PyPI holds them, run with their datasets accelerated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

tf = pytest.importorskip("tensorflow")
adapter = pytest.importorskip("tfrfast.tensorflow")


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    adapter.install()
    yield
    adapter.uninstall()


def test_keras_trains_and_predicts(tmp_path: Path) -> None:
    for shard in range(2):
        with tfr.Writer(tmp_path / f"data-{shard}") as writer:
            for i in range(40):
                x = np.float32([shard * 40 + i, 1])
                writer.write(tfr.encode_example({"x": x, "y": np.float32([i])}))
    spec = {
        "x": tf.io.FixedLenFeature([2], tf.float32),
        "y": tf.io.FixedLenFeature([1], tf.float32),
    }

    def parse(record: Any) -> Any:
        row = tf.io.parse_single_example(record, spec)
        return row["x"], row["y"]

    names = tf.data.Dataset.list_files(str(tmp_path / "data-*"))
    batches = names.interleave(tf.data.TFRecordDataset).shuffle(80).map(parse).batch(16)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False)])
    model.compile("sgd", "mse")
    seen: list[int] = []
    count = tf.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(batch)
    )
    model.fit(batches.prefetch(2), epochs=2, verbose=0, callbacks=[count])
    assert seen == [0, 1, 2, 3, 4] * 2
    model.set_weights([np.float32([[1], [0]])])
    predicted = model.predict(batches, verbose=0)
    assert sorted(predicted.ravel().tolist()) == list(range(80))
    assert batches._tfrfast_accelerated is not None


def test_tensorflow_datasets_loads_its_splits(tmp_path: Path) -> None:
    tfds = pytest.importorskip("tensorflow_datasets")

    class Floats(tfds.core.GeneratorBasedBuilder):  # type: ignore[misc, name-defined]
        VERSION = tfds.core.Version("1.0.0")

        def _info(self) -> Any:
            features = {"x": tfds.features.Tensor(shape=(4,), dtype=np.float32), "id": np.int64}
            return tfds.core.DatasetInfo(
                builder=self, features=tfds.features.FeaturesDict(features)
            )

        def _split_generators(self, _: Any) -> Any:
            return {"train": ((i, {"x": np.full(4, i, np.float32), "id": i}) for i in range(300))}

        def _generate_examples(self) -> Any:
            raise AssertionError

    builder = Floats(data_dir=str(tmp_path))
    builder.download_and_prepare()

    def ids(dataset: Any) -> list[int]:
        return [int(element["id"]) for element in dataset]

    adapter.uninstall()
    plain = ids(builder.as_dataset(split="train"))
    adapter.install()
    assert ids(builder.as_dataset(split="train")) == plain
    assert ids(tfds.as_numpy(builder.as_dataset(split="train"))) == plain
    parts = [ids(builder.as_dataset(split=each)) for each in ("train[:30%]", "train[30%:]")]
    assert [*map(len, parts)] == [90, 210]
    assert parts[0] + parts[1] == plain
    config = tfds.ReadConfig(try_autocache=False, interleave_cycle_length=2, shuffle_seed=1)
    mixed = builder.as_dataset(split="train", shuffle_files=True, read_config=config)
    assert sorted(ids(mixed.shuffle(100).batch(7).unbatch())) == list(range(300))
