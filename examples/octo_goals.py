"""Octo's samples: a history of two cameras, a chunk of actions, and a goal later in the episode.

    python examples/octo_goals.py ~/tensorflow_datasets/bridge_dataset/1.0.0

A sample has the last two pictures of both cameras with a mask of padding, the next actions, and as
its goal the pictures of one later step of the episode, drawn uniformly as in Octo's
`goal_relabeling.uniform`; the last step is its own goal. All frames of a sample are cropped alike,
as policies need, by a draw that a resumed run repeats. Actions are normalised by mean and
deviation, but for the gripper. Each epoch draws other goals, and a run that stops goes on with the
next batch.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import tfrfast as tfr

HISTORY, CHUNK = 2, 4
PRIMARY, WRIST = "steps/observation/image_0", "steps/observation/image_1"
STATE, ACTION = "steps/observation/state", "steps/action"
MASK = [True] * 6 + [False]


def open_steps(folder: str | Path, goal_seed: int = 0) -> Any:
    """Returns the steps of a folder of TensorFlow Datasets."""
    goals = {
        f"goal/{number}": tfr.Later(name, seed=goal_seed)
        for number, name in enumerate((PRIMARY, WRIST))
    }
    windows: dict[str, Any] = {
        PRIMARY: tfr.Window(before=HISTORY - 1),
        WRIST: tfr.Window(before=HISTORY - 1),
        STATE: tfr.Window(before=HISTORY - 1),
        ACTION: tfr.Window(after=CHUNK - 1),
        **goals,
    }
    return tfr.tfds(folder, split="train").steps(windows=windows).reader


def features_of(steps: Any, size: tuple[int, int], crop: Any) -> dict[str, Any]:
    """Returns the specs of a sample. `crop` is None, "center" or "random"."""
    stats = tfr.statistics(steps, features=[ACTION, STATE])
    action, state = stats[ACTION], stats[STATE]
    actions = tfr.FixedLen((CHUNK, *action.mean.shape), "float32")
    states = tfr.FixedLen((HISTORY, *state.mean.shape), "float32")
    image = tfr.Image(size=size, crop=crop, area=(0.8, 1.0), ratio=(0.9, 1.1))
    return {
        PRIMARY: image,
        WRIST: tfr.Image(size=size),
        f"{PRIMARY}/valid": tfr.FixedLen((HISTORY,), "int64"),
        "goal/0": image,
        "goal/1": tfr.Image(size=size),
        # (x - mean) / (std + 1e-8), and the gripper as it is
        ACTION: tfr.Scaled(
            actions, action.mean, action.std, epsilon=1e-8, mask=MASK, constant="scaled"
        ),
        f"{ACTION}/valid": tfr.FixedLen((CHUNK,), "int64"),
        STATE: tfr.Scaled(states, state.mean, state.std, epsilon=1e-8, constant="scaled"),
    }


def as_octo(batch: tfr.Batch) -> dict[str, Any]:
    """Returns a batch under Octo's names."""
    return {
        "observation": {
            "image_primary": batch[PRIMARY],
            "image_wrist": batch[WRIST],
            "proprio": batch[STATE],
            "pad_mask": batch[f"{PRIMARY}/valid"].astype(np.bool_),
        },
        "task": {"image_primary": batch["goal/0"], "image_wrist": batch["goal/1"]},
        "action": batch[ACTION],
        "action_pad_mask": batch[f"{ACTION}/valid"].astype(np.bool_),
        "steps": batch.indices,
    }


def open_loader(
    folder: str | Path,
    batch_size: int,
    *,
    size: tuple[int, int] = (256, 256),
    crop: Any = "random",
    goal_seed: int = 0,
    features: Any = None,
    **options: Any,
) -> tfr.Loader:
    """Returns the batches of a rank. Another `goal_seed` draws other goals, for another epoch.

    The `features` of an earlier epoch save its pass over all numbers.
    """
    steps = open_steps(folder, goal_seed)
    if features is None:
        features = features_of(steps, size, crop)
    return tfr.Loader(steps, batch_size, features=features, transform=as_octo, **options)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", help="a version of a set, as TensorFlow Datasets prepares it")
    options.add_argument("--batch-size", type=int, default=128)
    options.add_argument("--epochs", type=int, default=1)
    options.add_argument("--checkpoint", type=Path, default=Path("loader.json"))
    given = options.parse_args()
    first, state = 0, None
    if given.checkpoint.exists():
        first, state = json.loads(given.checkpoint.read_text())
    features = features_of(open_steps(given.folder), (256, 256), "random")
    for epoch in range(first, given.epochs):
        loader = open_loader(
            given.folder, given.batch_size, seed=epoch, goal_seed=epoch, features=features
        )
        if state is not None:
            loader.load_state_dict(state)
            state = None
        for batch in loader:
            print(epoch, batch["observation"]["image_primary"].shape, batch["action"].shape)
            given.checkpoint.write_text(json.dumps([epoch, loader.state_dict()]))
        given.checkpoint.write_text(json.dumps([epoch + 1, None]))


if __name__ == "__main__":
    main()
