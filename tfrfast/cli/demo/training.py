"""Trains a small Keras model for a globally shuffled epoch, and stops and resumes it exactly."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfrfast.bench.digits import SIDE
from tfrfast.bench.pipelines import import_tensorflow
from tfrfast.bench.shapes import SHAPES
from tfrfast.loading.loader import Loader
from tfrfast.order import InOrder
from tfrfast.reader import Reader

BATCH_SIZE = 64
_SEED = 7


class Training(NamedTuple):
    """The results of the whole epoch, and of the epoch that was stopped and resumed."""

    steps: int
    accuracy: float
    """On the last quarter of the whole epoch."""
    stopped_after: int
    state_bytes: int
    """The size of the loader's state as JSON."""
    same_records: bool
    """True if both runs saw the same records at every step."""
    same_weights: bool
    """True if both models ended with the same weights, bit for bit."""


def train_and_resume(reader: Reader, folder: Path) -> Training:
    """Trains a whole epoch; then trains half an epoch, and resumes from saved files of model and
    loader.
    """
    tf = import_tensorflow()
    whole, loader = _model(tf), _loader(reader)
    in_one_go = _train(whole, loader)
    accuracy = _accuracy(whole, reader, np.concatenate(in_one_go)[-len(reader) // 4 :])

    stopped, loader = _model(tf), _loader(reader)
    half = len(loader) // 2
    before = _train(stopped, loader, steps=half)
    stopped.save(folder / "model.keras")
    (folder / "loader.json").write_text(json.dumps(loader.state_dict()))

    resumed = tf.keras.models.load_model(folder / "model.keras")
    loader = _loader(reader)
    loader.load_state_dict(json.loads((folder / "loader.json").read_text()))
    after = _train(resumed, loader)
    return Training(
        steps=len(in_one_go),
        accuracy=accuracy,
        stopped_after=half,
        state_bytes=(folder / "loader.json").stat().st_size,
        same_records=_equal(in_one_go, before + after),
        same_weights=_equal(whole.get_weights(), resumed.get_weights()),
    )


def _loader(reader: Reader) -> Loader:
    return Loader(reader, BATCH_SIZE, features=SHAPES["mnist"].features, seed=_SEED)


def _model(tf: Any) -> Any:
    tf.keras.utils.set_random_seed(_SEED)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((SIDE * SIDE,)),
            tf.keras.layers.Rescaling(1 / 255),
            tf.keras.layers.Dense(64, "relu"),
            tf.keras.layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    return model


def _train(model: Any, loader: Loader, steps: int | None = None) -> list[Any]:
    """Trains on the rest of the loader's epoch, or `steps` batches. Returns each step's records."""
    seen = []
    for batch in loader:
        model.train_on_batch(batch["image"], batch["label"])
        seen.append(batch.indices.copy())
        if len(seen) == steps:
            break
    return seen


def _accuracy(model: Any, reader: Reader, records: Any) -> float:
    right = 0
    for batch in Loader(
        reader, 1024, order=InOrder(indices=records), features=SHAPES["mnist"].features
    ):
        right += int((model(batch["image"]).numpy().argmax(1) == batch["label"]).sum())
    return right / len(records)


def _equal(one: Iterable[Any], other: Iterable[Any]) -> bool:
    one, other = list(one), list(other)
    return len(one) == len(other) and all(map(np.array_equal, one, other))
