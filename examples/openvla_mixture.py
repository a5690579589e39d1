"""OpenVLA's mixture of Open X sets: weights, windows, and the statistics of each set.

    python examples/openvla_mixture.py ~/tensorflow_datasets --batch-size 256

A set's steps have a camera, an action of seven numbers and an instruction, each a feature of its
own, which get common names. Sets whose actions are several features, such as fractal20220817_data,
or whose transform in OpenVLA changes values (bridge_orig: the first step is cut, actions are made
of states, grippers are open or closed) must be written anew first. Actions are normalised by each
set's own 1st and 99th percentile, but for the gripper. The statistics of all steps are written to
dataset_statistics.json, which OpenVLA needs to act. Steps whose chunk of actions would leave the
episode are left out, as in OpenVLA, and so are steps without an instruction; OpenVLA leaves out
episodes that never have one. Sets are mixed by weight and shuffled as a whole, without a buffer.

Weights are as in OpenVLA's RLDSDataset with balance_weights=True: the drawn share of a set is its
weight times its number of steps. OpenVLA counts the steps of the statistics, before any is left
out, and here those that are left count.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tfrfast as tfr

IMAGE, ACTION, TEXT = "image", "action", "instruction"
FUTURE = 7  # actions after now
SIZE = (224, 224)
#: The gripper stays as it is.
MASK = [True] * 6 + [False]


class Robot(NamedTuple):
    """The names of a set's features, without "steps/", and its weight."""

    image: str
    action: str = "action"
    text: str = "language_instruction"
    weight: float = 1.0


MIXTURE = {
    "austin_buds_dataset_converted_externally_to_rlds/0.1.0": Robot("observation/image"),
    "austin_sailor_dataset_converted_externally_to_rlds/0.1.0": Robot("observation/image"),
}


def open_steps(folder: str | Path, robot: Robot, **which: Any) -> tfr.Steps:
    """Returns the steps of a set, under the names that all sets share."""
    names = {robot.image: IMAGE, robot.action: ACTION, robot.text: TEXT}
    return tfr.Steps(
        tfr.tfds(folder, split="train").reader,
        along={f"steps/{robot.image}": 1, f"steps/{robot.action}": 7, f"steps/{robot.text}": 1},
        rename={f"steps/{name}": to for name, to in names.items()},
        **which,
    )


def open_samples(folder: str | Path, robot: Robot) -> tfr.Steps:
    """Returns the steps that have an instruction and all their actions."""
    windows = {IMAGE: tfr.Window(), ACTION: tfr.Window(after=FUTURE, pad=None)}
    return open_steps(folder, robot, windows=windows, only=lambda batch: batch[TEXT] != b"")


def statistics(sets: Mapping[str, tfr.Steps]) -> dict[str, Any]:
    """Returns the statistics of each set's actions, as OpenVLA writes them."""
    found = {}
    for name, steps in sets.items():
        stats = tfr.statistics(steps, features=[ACTION], quantiles=(0.01, 0.99))
        found[name] = stats.to_openvla({"action": ACTION}, mask={"action": MASK})
    return found


def open_mixture(
    sets: Mapping[str, tfr.Steps], robots: Mapping[str, Robot], seed: int = 0
) -> tfr.Mixture:
    """Mixes the sets. A set is drawn by its weight times its number of steps."""
    shares = {name: Fraction(robots[name].weight) * len(steps) for name, steps in sets.items()}
    whole = sum(shares.values())
    weights = {name: max(1, round(1_000_000 * share / whole)) for name, share in shares.items()}
    return tfr.Mixture({name: (sets[name], weights[name]) for name in sets}, seed=seed)


def features_of(size: tuple[int, int] = SIZE) -> dict[str, Any]:
    return {
        IMAGE: tfr.Image(size=size),
        ACTION: tfr.FixedLen((1 + FUTURE, 7), "float32"),
        TEXT: tfr.FixedLen((), "bytes"),
    }


def normaliser(stats: Mapping[str, Any]) -> Any:
    """Returns a function of a batch that normalises each row by its own set, as OpenVLA does.

    One set alone needs no function: tfr.Bounds(spec, low, high, mask=MASK, clip=True,
    epsilon=1e-8, constant=least == most) in its features does the same.
    """
    numbers = {
        part: np.array([each["action"][part] for each in stats.values()])
        for part in ("q01", "q99", "min", "max")
    }

    def normalise(batch: tfr.Batch) -> dict[str, Any]:
        low, high, least, most = (
            numbers[part][batch.sources][:, None] for part in ("q01", "q99", "min", "max")
        )
        actions = batch[ACTION].astype(np.float64)
        scaled = np.clip(2 * (actions - low) / (high - low + 1e-8) - 1, -1, 1)
        scaled = np.where(MASK, scaled, actions)
        return {
            "image_primary": batch[IMAGE],
            "action": np.where(least == most, 0, scaled).astype(np.float32),
            "language_instruction": batch[TEXT],
            "dataset": batch.sources,
        }

    return normalise


def open_loader(
    folder: str | Path,
    robots: Mapping[str, Robot],
    batch_size: int,
    *,
    statistics_path: str | Path | None = None,
    size: tuple[int, int] = SIZE,
    seed: int = 0,
    **options: Any,
) -> tfr.Loader:
    """Returns the batches of a rank: `rank=` and `world=` say which."""
    folders = {name: Path(folder) / name for name in robots}
    stats = statistics({name: open_steps(folders[name], robot) for name, robot in robots.items()})
    if statistics_path is not None:
        # OpenVLA looks a set up by its name, without the version.
        by_set = {name.partition("/")[0]: each for name, each in stats.items()}
        Path(statistics_path).write_text(json.dumps(by_set, indent=2))
    samples = {name: open_samples(folders[name], robot) for name, robot in robots.items()}
    mixture = open_mixture(samples, robots, seed)
    return tfr.Loader(
        mixture, batch_size, features=features_of(size), transform=normaliser(stats), **options
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", help="the data_dir of TensorFlow Datasets")
    options.add_argument("--batch-size", type=int, default=256)
    options.add_argument("--steps", type=int, default=100)
    given = options.parse_args()
    loader = open_loader(
        given.folder, MIXTURE, given.batch_size, statistics_path="dataset_statistics.json"
    )
    for step, batch in zip(range(given.steps), loader, strict=False):
        print(step, batch["action"].shape, np.bincount(batch["dataset"]).tolist())


if __name__ == "__main__":
    main()
