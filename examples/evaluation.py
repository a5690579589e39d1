"""Evaluates 761 examples in batches of 50, each exactly once, on one rank or on several.

python examples/evaluation.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

import tfrfast as tfr

EXAMPLES = 761
BATCH_SIZE = 50
WIDTH = 16
FEATURES = {"x": tfr.FixedLen((WIDTH,), "float32"), "label": tfr.FixedLen((), "int64")}


class Metrics(NamedTuple):
    """Sums, since these add up over batches and ranks. Means do not."""

    examples: int
    right: int
    squared_error: float

    def __add__(self, other: tuple[object, ...]) -> Metrics:
        assert isinstance(other, Metrics)
        return Metrics(*(a + b for a, b in zip(self, other, strict=True)))


NOTHING = Metrics(0, 0, 0.0)


def write_data(folder: Path) -> str:
    random = np.random.default_rng(0)
    rows = random.normal(size=(EXAMPLES, WIDTH)).astype(np.float32)
    folder.mkdir(exist_ok=True)
    with tfr.Writer(folder / "test", sync=False, overwrite=True) as writer:
        writer.write_batch(
            tfr.encode_examples({"x": rows, "label": random.integers(0, 2, EXAMPLES)})
        )
    return str(folder / "test")


def metrics_of(x: np.ndarray, label: np.ndarray) -> Metrics:
    """The metrics of a fixed model, as it is after training."""
    score = x.astype(np.float64) @ np.linspace(-1, 1, WIDTH)
    squared = (score - label) ** 2
    return Metrics(len(label), int(((score > 0) == label).sum()), float(squared.sum()))


def unbatched(path: str) -> Metrics:
    with tfr.Reader(path) as reader:
        everything = tfr.parse_example(reader[:], FEATURES)
    return metrics_of(everything["x"], everything["label"])


def batched(path: str) -> Metrics:
    """Reads fifteen batches of 50 and one of 11."""
    loader = tfr.Loader(path, BATCH_SIZE, features=FEATURES, shuffle=False)
    return sum((metrics_of(batch["x"], batch["label"]) for batch in loader), NOTHING)


def on_ranks(path: str, world: int) -> Metrics:
    """All ranks have the same number of full batches, as collectives need. Padding is ignored."""
    total = NOTHING
    for rank in range(world):
        loader = tfr.Loader(
            path,
            BATCH_SIZE,
            features=FEATURES,
            shuffle=False,
            rank=rank,
            world=world,
            remainder="pad",
        )
        for batch in loader:
            assert len(batch["x"]) == BATCH_SIZE
            total += metrics_of(batch["x"][batch.valid], batch["label"][batch.valid])
    return total


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        path = write_data(Path(temporary) / "data")
        print("unbatched      ", unbatched(path))
        print("batches of 50  ", batched(path))
        for world in (3, 8):
            print(f"on {world} ranks     ", on_ranks(path, world))


if __name__ == "__main__":
    main()
