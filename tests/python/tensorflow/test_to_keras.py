"""Loader.to_keras: Keras gets each record once an epoch, in any order of its requests."""

from __future__ import annotations

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from example_files import write_examples
from record_files import flip_byte, write_shard

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

COUNT, ROWS = 45, 4
STEPS = -(-COUNT // ROWS)
FEATURES = {
    "id": tfr.FixedLen((), "int64"),
    "dense": tfr.FixedLen((3,), "float32"),
    "name": tfr.FixedLen((), "bytes"),
    "numbers": tfr.VarLen("int64"),
    "words": tfr.VarLen("bytes"),
    "lengths": tfr.VarLen("int64", sparse=True),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("examples"), [COUNT - 20, 20])


def loader_of(files: list[str], **options: Any) -> tfr.Loader:
    return tfr.Loader(files, ROWS, features=FEATURES, seed=3, **options)


def epoch_of(files: list[str], epoch: int, **options: Any) -> list[list[int]]:
    """The loader's own batches."""
    loader = loader_of(files, **options)
    loader.set_epoch(epoch)
    return [batch["id"].tolist() for batch in loader]


class TimesSeen(keras.metrics.Metric):  # type: ignore[misc]
    """Returns the smallest and the largest weighted count of any label."""

    def __init__(self) -> None:
        super().__init__(name="times")
        self.counts = self.add_weight(name="counts", shape=(COUNT,), initializer="zeros")

    def update_state(self, labels: Any, _: Any, sample_weight: Any = None) -> None:
        seen = tf.one_hot(tf.cast(tf.reshape(labels, [-1]), tf.int32), COUNT)
        if sample_weight is not None:
            seen *= tf.reshape(tf.cast(sample_weight, tf.float32), [-1, 1])
        self.counts.assign_add(tf.reduce_sum(seen, axis=0))

    def result(self) -> Any:
        counts = tf.convert_to_tensor(self.counts)
        return tf.reduce_min(counts) * 1000 + tf.reduce_max(counts)

    def reset_state(self) -> None:
        self.counts.assign(tf.zeros([COUNT]))


ONCE = 1001.0


def model_of(*, built: bool = False) -> Any:
    layers = [keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((3,)), *layers] if built else layers)
    model.compile("sgd", "mae", metrics=[TimesSeen()], weighted_metrics=[])
    return model


@pytest.mark.parametrize("shuffle", [True, False], ids=["shuffled by Keras", "in order"])
@pytest.mark.parametrize("built", [False, True], ids=["not built", "built"])
def test_fit_sees_each_record_once_an_epoch(files: list[str], shuffle: bool, built: bool) -> None:
    data = loader_of(files).to_keras(features="dense", label="id")
    history = model_of(built=built).fit(data, epochs=3, shuffle=shuffle, verbose=0).history
    assert history["times"] == [ONCE] * 3


def test_padding_weighs_nothing(files: list[str]) -> None:
    data = loader_of(files, remainder="pad").to_keras(features="dense", label="id")
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mae", weighted_metrics=[TimesSeen()])
    history = model.fit(data, epochs=2, verbose=0).history
    assert history["times"] == [ONCE] * 2
    weights = np.concatenate([data[i][2] for i in range(len(data))])
    assert (len(weights), weights.sum()) == (STEPS * ROWS, COUNT)


def test_validates_and_evaluates_and_predicts(files: list[str]) -> None:
    loader = loader_of(files)
    model = model_of()
    history = model.fit(
        loader.to_keras(features="dense", label="id"),
        validation_data=loader.to_keras(features="dense", label="id"),
        epochs=2,
        verbose=0,
    ).history
    assert history["times"] == history["val_times"] == [ONCE] * 2
    evaluated = model.evaluate(loader.to_keras(features="dense", label="id"), verbose=0)
    assert evaluated[1] == ONCE
    assert model.predict(loader.to_keras(features="dense"), verbose=0).shape == (COUNT, 1)


def test_keras_may_be_resumed(files: list[str]) -> None:
    loader = loader_of(files)
    loader.set_epoch(2)
    data = loader.to_keras(features="dense", label="id")
    model_of(built=True).fit(data, initial_epoch=2, epochs=4, shuffle=False, verbose=0)
    assert data.num_batches == STEPS
    assert (data.epoch, loader.epoch) == (4, 2)


class TestAskedByNumber:
    """Requests batches like Keras, without Keras."""

    def ask(self, data: Any, numbers: Any) -> list[list[int]]:
        return [data[number][0].tolist() for number in numbers]

    def begin_a_pass(self, data: Any) -> range:
        return range(data.num_batches)

    def test_in_order_it_gives_the_loaders_epochs(self, files: list[str]) -> None:
        data = loader_of(files).to_keras(features="id")
        for epoch in range(3):
            assert self.ask(data, self.begin_a_pass(data)) == epoch_of(files, epoch)

    def test_in_any_order_it_gives_the_loaders_batches(self, files: list[str]) -> None:
        data = loader_of(files).to_keras(features="id")
        choice = random.Random(1)
        for epoch in range(3):
            numbers = list(self.begin_a_pass(data))
            choice.shuffle(numbers)
            assert self.ask(data, numbers) == epoch_of(files, epoch)

    def test_who_asks_again_gets_the_same_again(self, files: list[str]) -> None:
        data = loader_of(files).to_keras(features="id")
        choice = random.Random(2)
        for epoch in range(2):
            looked_at = choice.sample(self.begin_a_pass(data), 5)  # then thrown away
            first = dict(zip(looked_at, self.ask(data, looked_at), strict=True))
            numbers = list(self.begin_a_pass(data))
            choice.shuffle(numbers)
            got = dict(zip(numbers, self.ask(data, numbers), strict=True))
            assert sorted(got.values()) == sorted(epoch_of(files, epoch))
            assert got | first == got
            assert data.epoch == epoch

    def test_from_threads_each_record_comes_once(self, files: list[str]) -> None:
        data = loader_of(files).to_keras(features="id")
        with ThreadPoolExecutor(4) as pool:
            for epoch in range(5):
                got = list(pool.map(lambda i: data[i][0].tolist(), self.begin_a_pass(data)))
                assert sorted(got) == sorted(epoch_of(files, epoch))

    def test_a_damaged_batch_is_an_error_and_asked_for_again(self, tmp_path: Path) -> None:
        file = write_examples(tmp_path, [12])[0]
        flip_byte(file, tfr.Reader(file).locate(5).offset + 12)
        loader = tfr.Loader(file, 4, features=FEATURES, shuffle=False)
        data = loader.to_keras(features="id")
        assert self.ask(data, [0]) == [[0, 1, 2, 3]]
        for _ in range(2):
            with pytest.raises(tfr.CorruptRecordError):
                data[1]

    def test_numbers_that_do_not_exist_are_refused(self, files: list[str]) -> None:
        data = loader_of(files).to_keras(features="id")
        for number in (-1, STEPS):
            with pytest.raises(IndexError, match="There is no batch"):
                data[number]


def test_several_features_are_a_dict(files: list[str]) -> None:
    loader = loader_of(files)
    inputs, label = loader.to_keras(features=["dense", "id"], label="id")[0]
    (alone,) = loader.to_keras(features=["dense"])[0]
    batch = next(iter(loader))
    assert list(inputs) == ["dense", "id"]
    assert (inputs["dense"] == batch["dense"]).all()
    assert (label == batch["id"]).all()
    assert (alone == batch["dense"]).all()


def test_strings_and_ragged_and_sparse_columns_become_tensors(files: list[str]) -> None:
    names = ["name", "numbers", "words", "lengths"]
    loader = loader_of(files)
    (inputs,) = loader.to_keras(features=names)[0]
    batch = next(iter(loader))
    for name in ("name", "words", "numbers"):
        tensor = inputs[name]
        found = tensor.to_list() if hasattr(tensor, "to_list") else tensor.numpy().tolist()
        assert found == batch[name].tolist()
    assert (inputs["lengths"].indices.numpy() == batch["lengths"].indices).all()
    assert (inputs["lengths"].values.numpy() == batch["lengths"].values).all()


def test_strings_train(files: list[str]) -> None:
    lookup = keras.layers.StringLookup(vocabulary=["a", "b"], output_mode="one_hot")
    model = keras.Sequential([lookup, keras.layers.Dense(1)])
    model.compile("sgd", "mae", metrics=[TimesSeen()])
    data = loader_of(files).to_keras(features="name", label="id")
    assert model.fit(data, epochs=2, verbose=0).history["times"] == [ONCE] * 2


def test_other_backends_take_arrays_only(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    data = loader_of(files).to_keras(features="words")
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(TypeError, match="'words' is Ragged, which Keras takes only where"):
        data[0]
    assert loader_of(files).to_keras(features="dense")[0][0].shape == (ROWS, 3)


class TestRefuses:
    def test_columns_that_do_not_exist(self, files: list[str]) -> None:
        with pytest.raises(ValueError, match="There is no column 'image'"):
            loader_of(files).to_keras(features="image")
        with pytest.raises(ValueError, match="There is no column 'x'"):
            loader_of(files).to_keras(features="id", label="x")
        with pytest.raises(ValueError, match="at least one column"):
            loader_of(files).to_keras(features=[])

    def test_a_loader_without_features(self, files: list[str]) -> None:
        with pytest.raises(ValueError, match="needs columns"):
            tfr.Loader(files, ROWS).to_keras(features="id")

    def test_a_loader_in_the_middle_of_an_epoch(self, files: list[str]) -> None:
        loader = loader_of(files)
        next(iter(loader))
        with pytest.raises(ValueError, match="in the middle of epoch 0"):
            loader.to_keras(features="id")
        again = loader_of(files)
        again.load_state_dict(loader.state_dict())
        with pytest.raises(ValueError, match="in the middle of epoch 0"):
            again.to_keras(features="id")

    def test_padding_without_labels(self, files: list[str]) -> None:
        with pytest.raises(ValueError, match="weights need a label"):
            loader_of(files, remainder="pad").to_keras(features="id")

    def test_other_processes_and_more_workers(self, files: list[str]) -> None:
        data = loader_of(files).to_keras(features="id")
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(data)
        with pytest.raises(ValueError, match="workers must be 1"):
            data.workers = 4


@pytest.mark.parametrize("longest", [[1, 1, 3, 2, 1], [2, 1, 4, 1, 1], [1, 2, 1, 3, 5]])
def test_columns_of_any_width_may_differ_in_every_batch(tmp_path: Path, longest: list[int]) -> None:
    """Keras takes its shapes from batches 0 and 1."""
    records = [
        tfr.encode_example({"ids": [1] * width, "words": [b"a"] * width, "far": [1.0] * width})
        for width in longest
        for _ in range(4)
    ]
    path = write_shard(tmp_path / "shard", records)
    features = {
        "ids": tfr.FixedLenSequence((), "int64"),
        "words": tfr.FixedLenSequence((), "bytes"),
        "far": tfr.VarLen("float32", sparse=True),
    }
    loader = tfr.Loader(path, 4, features=features, shuffle=False)
    data = loader.to_keras(features=list(features))

    class Widths(keras.Model):  # type: ignore[misc]
        def call(self, inputs: Any) -> Any:
            ids = tf.cast(inputs["ids"], tf.float32)
            words = tf.cast(tf.strings.length(inputs["words"]), tf.float32)
            parts = ids, words, tf.sparse.to_dense(inputs["far"])
            widths = tf.ones_like(ids) * tf.cast(tf.shape(ids)[1], tf.float32)
            return tf.stack([*(tf.reduce_sum(p, 1) for p in parts), tf.reduce_mean(widths, 1)], 1)

    expected = [[width] * 4 for width in longest for _ in range(4)]
    model = Widths()
    for _ in range(2):
        predicted = model.predict(loader.to_keras(features=list(features)), verbose=0)
        assert predicted.tolist() == expected
    assert [data[number][0]["ids"].shape[1] for number in range(5)][2:] == longest[2:]


def test_a_transform_makes_columns_for_keras(files: list[str]) -> None:
    def doubled(batch: tfr.Batch) -> tfr.Batch:
        batch["twice"] = batch["dense"] * 2
        return batch

    loader = loader_of(files, transform=doubled, remainder="pad")
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mae", weighted_metrics=[TimesSeen()])
    history = model.fit(loader.to_keras(features="twice", label="id"), epochs=2, verbose=0).history
    assert history["times"] == [ONCE] * 2
    data, plain = (
        each.to_keras(features=name, label="id")
        for each, name in ((loader, "twice"), (loader_of(files), "dense"))
    )
    np.testing.assert_array_equal(data[0][0], plain[0][0] * 2)
    with pytest.raises(TypeError, match="cannot call transform"):
        loader.to_tf_dataset()
    broken = loader_of(files, transform=dict, remainder="pad")
    with pytest.raises(TypeError, match="transform must return the Batch it was given"):
        broken.to_keras(features="dense", label="id")[0]


def test_epochs_count_in_the_loaders_stats(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "x") as writer:
        for number in range(20):
            writer.write_example({"x": float(number), "y": float(number)})
    names = {"x": tfr.FixedLen((1,), "float32"), "y": tfr.FixedLen((1,), "float32")}
    loader = tfr.Loader(tmp_path / "x", 4, features=names)
    epochs = loader.to_keras(features="x", label="y")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(epochs, epochs=2, verbose=0)
    del epochs, model
    stats = loader.stats()
    looks = stats.batches - 10  # Keras looks at one batch or two before it begins
    assert looks in (0, 1, 2)
    assert stats.records == 40 + 4 * looks
    assert stats.bytes > 40 * 10
    assert loader.step == 0
    assert sum(1 for _ in loader) == 5
    assert loader.stats().batches == 15 + looks
