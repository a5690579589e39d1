"""The example pipelines that need TensorFlow, on small data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from example_scripts import load_example

tf = pytest.importorskip("tensorflow")


@pytest.mark.parametrize("pixels", ["floats", "bytes"])
def test_mnist_with_keras(tmp_path: Path, pixels: str) -> None:
    digits = load_example("mnist_data").write_digits(tmp_path / "data", pixels, 3000)
    outcome = load_example("mnist_keras").train_and_evaluate(digits, pixels, epochs=3)
    assert outcome.evaluated == 761
    assert outcome.accuracy > 0.5


@pytest.mark.newest
def test_jpegs_are_decoded_for_keras(tmp_path: Path) -> None:
    example = load_example("jpegs_keras")
    example.write_images(tmp_path, 1000)
    outcome = example.train_and_evaluate(tmp_path, epochs=8)
    assert outcome.evaluated == 200
    assert outcome.accuracy > 0.3


def test_mnist_trains_on_all_digits_every_epoch(tmp_path: Path) -> None:
    digits = load_example("mnist_data").write_digits(tmp_path / "data", "floats", 500)
    example = load_example("mnist_keras")
    dataset = example.train_dataset(digits.train, "floats", seed=1)
    epochs = [epoch_images(dataset, epoch, steps=8) for epoch in range(2)]
    assert [len(epoch) for epoch in epochs] == [500, 500]
    assert sorted(epochs[0]) == sorted(epochs[1])
    assert epochs[0] != epochs[1]


def epoch_images(dataset: Any, epoch: int, steps: int) -> list[bytes]:
    batches = dataset.skip(epoch * steps).take(steps).as_numpy_iterator()
    return [image.tobytes() for images, _ in batches for image in images]


@pytest.mark.skipif(not hasattr(tf, "estimator"), reason="this TensorFlow has no tf.estimator")
def test_mnist_with_an_estimator(tmp_path: Path) -> None:
    digits = load_example("mnist_data").write_digits(tmp_path / "data", "floats", 1000)
    example = load_example("mnist_estimator")
    metrics = example.train_and_evaluate(digits, tmp_path / "model", steps=60)
    assert metrics["examples"] == 761
    assert metrics["accuracy"] > 0.5
    theirs = example.train_and_evaluate(
        digits, tmp_path / "theirs", steps=1, dataset_class=tf.data.TFRecordDataset
    )
    assert theirs["examples"] == 761


@pytest.mark.newest
def test_imagenet_both_ways(tmp_path: Path) -> None:
    example = load_example("imagenet")
    shards, per_shard = 64, 8
    total = shards * per_shard
    example.write_images(tmp_path / "data", shards, per_shard)
    pattern = str(tmp_path / "data" / "train-*")
    ours = example.our_records(pattern, total)
    usual = example.usual_records(pattern, total)
    mixed = {
        name: example.quality(each, shards, per_shard)
        for name, each in {"ours": ours, "usual": usual}.items()
    }
    assert mixed["ours"][:2] == mixed["usual"][:2] == (0, 0)
    assert abs(mixed["ours"].apart - 1 / 3) < 0.05
    assert mixed["usual"].apart < 0.25
    datasets = {"ours": example.batches(ours), "usual": example.batches(usual)}
    images, labels = zip(*datasets["ours"].as_numpy_iterator(), strict=True)
    assert np.concatenate(images).shape == (total, 64, 64, 3)
    assert np.bincount(np.concatenate(labels)).tolist() == [total // 16] * 16
    assert all(rate > 0 for rate in example.images_per_s(datasets, rounds=1).values())
    history = example.small_model().fit(datasets["ours"], epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2


@pytest.mark.newest
def test_a_data_service_of_two_workers_gives_each_record_once(tmp_path: Path) -> None:
    digits = load_example("mnist_data").write_digits(tmp_path / "data", "bytes", 530)
    assert load_example("tf_data_service").count(digits.train) == (530, 530)
