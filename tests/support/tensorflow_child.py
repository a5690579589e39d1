"""Runs saved graphs and iterators in a fresh process, and tasks that need a process of their own.

tensorflow_child.py FOLDER FILES...   prints {task: result} as JSON; the parent has saved FOLDER
tensorflow_child.py --worker ADDRESS PORT  is a tf.data service worker of that dispatcher, until stdin ends
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

import tfrfast as tfr
import tfrfast.tensorflow  # the ops: graphs that were built elsewhere need them

FEATURES: dict[str, Any] = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "dense": tf.io.FixedLenFeature([3], tf.float32),
}


def shuffled(files: list[str]) -> Any:
    """Three epochs, decoded during reading."""
    dataset = tfr.TFRecordDataset(files).shuffle(1, seed=7).batch(4).repeat(3)
    return dataset.parse_example(FEATURES).map(lambda batch: batch["id"])


def loaded(files: list[str]) -> Any:
    """Record numbers of two epochs of a loader."""
    loader = tfr.Loader(files, 4, seed=7)
    return loader.to_tf_dataset(epochs=2, with_indices=True).map(lambda _, indices: indices)


def loaded_again(files: list[str]) -> Any:
    """An epoch in one iteration, the next epoch in another iteration."""
    loader = tfr.Loader(files, 4, seed=7)
    return loader.to_tf_dataset(with_indices=True).map(lambda _, indices: indices)


def row_of(record: Any) -> Any:
    """A dataset whose parse is lifted out, with a division that can fail."""
    row = tf.io.parse_single_example(record, FEATURES)
    return row["id"], (row["dense"][0] - 0.5) / 0.25, tf.constant(60, tf.int64) // (row["id"] + 1)


def lifted(files: list[str]) -> Any:
    """The first result of row_of, for three epochs."""
    dataset = tfr.TFRecordDataset(files).shuffle(1, seed=7).map(row_of).batch(4).repeat(3)
    return dataset.map(lambda numbers, *_: numbers)


def flat(dataset: Any) -> list[int]:
    return [number for batch in dataset for number in batch.numpy().tolist()]


def restore(make: Callable[[list[str]], Any], path: Path, files: list[str]) -> list[int]:
    iterator = iter(make(files))
    tf.train.Checkpoint(iterator=iterator).read(str(path)).assert_consumed()
    return flat(iterator)


def run_saved_graph(folder: Path, files: list[str]) -> list[list[int]]:
    module = tf.saved_model.load(str(folder / "model"))
    ids = [tf.io.parse_example(module.stream(tf.constant(files)), FEATURES)["id"]]
    return [
        each.numpy().tolist() for each in (*ids, module.shuffle(), module.load(), *module.lift())
    ]


def distribute(files: list[str]) -> dict[str, list[int]]:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def seen(distributed: Any) -> list[int]:
        found: list[int] = []
        for per_replica in distributed:
            parts = strategy.experimental_local_results(per_replica)
            assert len(parts) == 2
            found += [number for part in parts for number in part.numpy().tolist()]
        return found

    def of_pipeline(context: Any) -> Any:
        shard = (context.num_input_pipelines, context.input_pipeline_id)
        return (
            tfr.TFRecordDataset(files)
            .shuffle(1, seed=3)
            .shard(*shard)
            .batch(5)
            .parse_example(FEATURES)
            .map(lambda batch: batch["id"])
        )

    one_epoch = tfr.TFRecordDataset(files).shuffle(1, seed=7).batch(8).parse_example(FEATURES)
    loader = tfr.Loader(files, 8).to_tf_dataset(with_indices=True)
    return {
        "dataset": seen(
            strategy.experimental_distribute_dataset(one_epoch.map(lambda batch: batch["id"]))
        ),
        "loader": seen(strategy.experimental_distribute_dataset(loader.map(lambda _, i: i))),
        "lifted": seen(
            strategy.experimental_distribute_dataset(
                tfr.TFRecordDataset(files).map(row_of).batch(8).map(lambda numbers, *_: numbers)
            )
        ),
        "function": seen(strategy.distribute_datasets_from_function(of_pipeline)),
    }


def estimate(files: list[str], folder: Path) -> dict[str, Any] | None:
    """Trains for two epochs, then predicts: an Estimator of TensorFlow 1 and its graph mode."""
    if not hasattr(tf, "estimator"):
        return None
    v1 = tf.compat.v1

    def model(features: Any, mode: str) -> Any:
        weight = v1.get_variable("weight", [3])
        loss = tf.reduce_mean(tf.reduce_sum(features["dense"] * weight, axis=1) ** 2)
        step = v1.train.get_global_step()
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return tf.estimator.EstimatorSpec(mode, {"id": features["id"]}, loss, train)

    def feed(epochs: int) -> Any:
        return tfr.TFRecordDataset(files).shuffle(1).repeat(epochs).batch(8).parse_example(FEATURES)

    config = tf.estimator.RunConfig(model_dir=str(folder / "estimator"), save_summary_steps=10**6)
    estimator = tf.estimator.Estimator(model, config=config)
    estimator.train(lambda: feed(2))
    return {
        "steps": int(estimator.get_variable_value("global_step")),
        "ids": [int(each["id"]) for each in estimator.predict(lambda: feed(1))],
    }


def run_tasks(folder: Path, files: list[str]) -> None:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    tasks: dict[str, Callable[[], Any]] = {
        "restored shuffle": lambda: restore(shuffled, folder / "shuffled", files),
        "restored lifted": lambda: restore(lifted, folder / "lifted", files),
        "restored loader": lambda: restore(loaded, folder / "loaded", files),
        "restored second iteration": lambda: restore(loaded_again, folder / "again", files),
        "saved graph": lambda: run_saved_graph(folder, files),
        "mirrored": lambda: distribute(files),
        "estimator": lambda: estimate(files, folder),
    }
    results: dict[str, Any] = {}
    for name, task in tasks.items():
        try:
            results[name] = task()
        except Exception:
            results[name] = {"error": traceback.format_exc()}
    print(json.dumps(results))


def serve(address: str, port: str) -> None:
    config = tf.data.experimental.service.WorkerConfig(dispatcher_address=address, port=int(port))
    worker = tf.data.experimental.service.WorkerServer(config)
    sys.stdin.read()  # ends when the parent ends for any reason
    os._exit(0 if worker else 1)  # without waiting for its clients


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        serve(*sys.argv[2:])
    else:
        run_tasks(Path(sys.argv[1]), sys.argv[2:])
