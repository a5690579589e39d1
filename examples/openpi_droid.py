"""openpi's loader of DROID for PyTorch, on any number of ranks, which resumes.

    torchrun --nproc-per-node 8 examples/openpi_droid.py ~/tensorflow_datasets/droid/1.0.1 \\
        --keep-ranges keep_ranges_1_0_1.json --norm-stats norm_stats.json

A sample is a step: one of two exterior cameras and one of three instructions, drawn anew in each
epoch, the wrist camera, the state, and the next 15 actions. Idle frames are left out by openpi's
table, and so are episodes that failed. Numbers are normalised by the 1st and 99th percentile. Ranks
read different steps of one global shuffle, and a run that stops goes on with the next batch, on any
number of ranks. openpi's own loader shuffles in a buffer of 250,000 frames, which takes tens of
gigabytes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tfrfast as tfr
import tfrfast.torch

CHUNK = 15
SIZE = (180, 320)  # DROID's own, so pictures are not resized
JOINTS, GRIPPER = "steps/observation/joint_position", "steps/observation/gripper_position"
JOINT_ACTIONS = "steps/action_dict/joint_position"
GRIPPER_ACTIONS = "steps/action_dict/gripper_position"
WRIST = "steps/observation/wrist_image_left"
FILE = "episode_metadata/file_path"

#: What openpi calls the numbers that it normalises, and the features that they are put together of.
NORMALISED = {"state": [JOINTS, GRIPPER], "actions": [JOINT_ACTIONS, GRIPPER_ACTIONS]}


def open_steps(folder: str | Path, keep_ranges: str | Path | None = None, seed: int = 0) -> Any:
    """Returns the steps of a folder of TensorFlow Datasets."""
    in_ranges = None if keep_ranges is None else tfr.keep_ranges(keep_ranges)

    def only(batch: tfr.Batch) -> Any:
        success = np.array([b"success" in path for path in batch[FILE].tolist()])
        return success if in_ranges is None else success & in_ranges(batch)

    windows = {
        "image": tfr.OneOf(
            "steps/observation/exterior_image_1_left",
            "steps/observation/exterior_image_2_left",
            seed=seed,
        ),
        "prompt": tfr.OneOf(
            "steps/language_instruction",
            "steps/language_instruction_2",
            "steps/language_instruction_3",
            seed=seed,
        ),
        JOINT_ACTIONS: tfr.Window(after=CHUNK - 1),  # past the end, the last action is repeated
        GRIPPER_ACTIONS: tfr.Window(after=CHUNK - 1),
    }
    return tfr.tfds(folder, split="train").steps(windows=windows, only=only).reader


def norm_stats(steps: Any, path: str | Path) -> dict[str, Any]:
    """Returns the content of openpi's norm_stats.json, and writes it if it does not exist."""
    if Path(path).exists():
        loaded: dict[str, Any] = json.loads(Path(path).read_text())
        return loaded
    names = [name for parts in NORMALISED.values() for name in parts]
    stats = tfr.statistics(steps, features=names, quantiles=(0.01, 0.99))
    return stats.to_openpi(NORMALISED, path)


def features_of(stats: dict[str, Any], size: tuple[int, int] = SIZE) -> dict[str, Any]:
    """Returns the specs of a step: what openpi's Normalize does is done as numbers are decoded."""
    features: dict[str, Any] = {
        "image": tfr.Image(size=size),
        WRIST: tfr.Image(size=size),
        "prompt": tfr.FixedLen((), "bytes"),
    }
    for name, (joints, gripper) in NORMALISED.items():
        low, high = stats["norm_stats"][name]["q01"], stats["norm_stats"][name]["q99"]
        rows = (CHUNK,) if name == "actions" else ()
        for feature, some in ((joints, slice(0, 7)), (gripper, slice(7, 8))):
            spec = tfr.FixedLen((*rows, len(low[some])), "float32")
            # (x - q01) / (q99 - q01 + 1e-6) * 2 - 1, not clipped
            features[feature] = tfr.Bounds(
                spec, low[some], high[some], epsilon=1e-6, constant="scaled"
            )
    return features


def as_observation(batch: tfrfast.torch.Batch) -> dict[str, Any]:
    """Returns a batch under openpi's names. Runs in the Loader's threads."""
    return {
        "observation": {
            "image": batch["image"],
            "wrist_image": batch[WRIST],
            "state": torch.cat([batch[name] for name in NORMALISED["state"]], -1),
        },
        "actions": torch.cat([batch[name] for name in NORMALISED["actions"]], -1),
        "prompt": [text.decode() for text in batch["prompt"]],
        "steps": batch.indices,
    }


@contextlib.contextmanager
def first_rank_first() -> Iterator[None]:
    """What is within makes files that do not exist: the other ranks wait, and then read them."""
    group = torch.distributed.is_initialized()
    waits = group and torch.distributed.get_rank() > 0
    if waits:
        torch.distributed.barrier()
    yield
    if group and not waits:
        torch.distributed.barrier()


def open_loader(
    folder: str | Path,
    batch_size: int,
    stats_path: str | Path,
    *,
    keep_ranges: str | Path | None = None,
    seed: int = 0,
    size: tuple[int, int] = SIZE,
    **options: Any,
) -> tfrfast.torch.Loader:
    """Returns the batches of this rank: torch.distributed's, unless `rank` and `world` say."""
    with first_rank_first():
        steps = open_steps(folder, keep_ranges, seed)
        if not len(steps):
            raise SystemExit(f"No step is left of {folder}: does {keep_ranges} name its episodes?")
        features = features_of(norm_stats(steps, stats_path), size)
    return tfrfast.torch.Loader(
        steps, batch_size, features=features, transform=as_observation, seed=seed, **options
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", help="a version of DROID, as TensorFlow Datasets prepares it")
    options.add_argument("--keep-ranges")
    options.add_argument("--norm-stats", default="norm_stats.json")
    options.add_argument("--batch-size", type=int, default=32)
    options.add_argument("--steps", type=int, default=100)
    options.add_argument("--checkpoint", type=Path, default=Path("loader.json"))
    given = options.parse_args()
    if "RANK" in os.environ:  # torchrun's
        torch.distributed.init_process_group("gloo")
    loader = open_loader(
        given.folder, given.batch_size, given.norm_stats, keep_ranges=given.keep_ranges
    )
    if given.checkpoint.exists():
        loader.load_state_dict(json.loads(given.checkpoint.read_text()))
    step = 0
    while step < given.steps:
        for batch in loader:
            print(step, batch["actions"].shape, batch["prompt"][0])  # train on the batch here
            step += 1
            if step == given.steps:
                break
    if os.environ.get("RANK", "0") == "0":
        given.checkpoint.write_text(json.dumps(loader.state_dict()))


if __name__ == "__main__":
    main()
