"""Runs the code of the pages about TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
import waymo_like
from event_files import write_events
from quoted_code import run_page, write_shards

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

pytestmark = pytest.mark.usefixtures("own_folder")

SPECS = {
    "image": tf.io.FixedLenFeature((), tf.string),
    "label": tf.io.FixedLenFeature((), tf.int64),
}


class AnyModel:
    """A class that accepts any arguments."""

    def fit(self, batches: Any, epochs: int, steps_per_epoch: int | None = None) -> None:
        for _ in zip(range(3), batches, strict=False):
            pass


def a_parse(record: Any) -> Any:
    parsed = tf.io.parse_single_example(record, SPECS)
    return parsed["image"], parsed["label"]


@pytest.fixture
def given() -> dict[str, Any]:
    """Names that the pages presuppose."""
    for folder in ("data", "imagenet"):
        write_shards(f"{folder}/train")
    return {
        "tf": tf,
        "AUTOTUNE": tf.data.AUTOTUNE,
        "files": tf.io.gfile.glob("data/train-*"),
        "features": SPECS,
        "specs": SPECS,
        "parse": a_parse,
        "model": AnyModel(),
    }


@pytest.fixture
def seeded() -> None:
    keras.utils.set_random_seed(0)


@pytest.mark.usefixtures("seeded")
def test_keras_learns() -> None:
    accuracy = run_page("docs/start-keras.md")["history"].history["accuracy"]
    assert len(accuracy) == 5
    assert accuracy[-1] > accuracy[0] + 0.1


def test_features() -> None:
    rows = {
        "label": [3] * 6,
        "dense": [[0.5] * 13] * 6,
        "image": [bytes(28 * 28)] * 6,
        "clicks": [[1, 2]] * 6,
        "title": ["cat", "dog"] * 3,
    }
    records = tfr.encode_examples(rows)
    done = run_page("docs/features.md", {"tf": tf, "records": records})
    assert done["batch"]["title"].tolist() == [b"cat", b"dog"] * 3
    assert len(done["cats"].indices) == 3


def test_from_tf_data(given: dict[str, Any]) -> None:
    done = run_page("docs/guide.md", given)
    assert done["batch"]["label"].shape == (44,)


def test_tf_data(given: dict[str, Any]) -> None:
    write_shards("train")
    given["ds"] = tf.data.TFRecordDataset(given["files"]).batch(32)
    done = run_page("docs/tensorflow.md", given)
    assert done["labels"].shape == (44,)


def test_compressed_shards(given: dict[str, Any]) -> None:
    for number in range(3):
        with tfr.Writer(f"logs{number}.gz", compression="GZIP") as writer:
            writer.write_batch(tfr.Reader("data/train-*")[:100])
    Path("logs").mkdir()
    for path in Path().glob("*.gz"):
        path.rename(Path("logs") / path.name)
    run_page("docs/compression.md", given | {"files": "logs/*.gz"})


def test_messages_of_any_type() -> None:
    for name in ("scenarios/s", "data/train"):
        with tfr.ShardedWriter(name, num_shards=1) as writer:
            for record in waymo_like.scenarios(2, tracks=2, features=2):
                writer.write(record)
    Path("scenario.binpb").write_bytes(waymo_like.scenario_set())
    Path("logs").mkdir()
    write_events(Path("logs/events.out.tfevents.1"), 4)
    export = "tfrfast export 'logs/events.out.tfevents.*' --out scalars.parquet"
    given = {"paths": "scenarios/*"}
    done = run_page("docs/messages.md", given, {export: "tfrfast info 'logs/events*'"})
    assert done["batch"]["x"].values.values.shape == (2 * 2 * 91,)
    assert next(iter(done["dataset"]))["x"].shape == (2, None, None)
