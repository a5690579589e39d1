"""Two robots' data as TensorFlow Datasets writes RLDS, mixed, for one small policy.

    python examples/robot_policy.py [--episodes 60] [--steps 150]

Each record is a whole episode. The policy learns from single steps: two frames of history, the
arm's position, and the next 16 actions. The second robot names its features differently and lacks
an instruction. JPEGs are decoded in the Loader's threads. The run is stopped in the middle and
resumed: the resumed run continues with the same steps as a run that was not stopped.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

import tfrfast as tfr

SIDE = 32
CHUNK = 16
FRAMES = 2
BATCH_SIZE = 64
IMAGE, STATE = "steps/observation/image", "steps/observation/state"

WINDOWS = {
    "steps/action": tfr.Window(after=CHUNK - 1),
    IMAGE: tfr.Window(before=FRAMES - 1),
}
FEATURES = {
    "steps/action": tfr.FixedLen((CHUNK, 7), "float32"),
    "steps/action/valid": tfr.FixedLen((CHUNK,), "int64"),
    IMAGE: tfr.FixedLen((FRAMES,), "bytes"),
    STATE: tfr.FixedLen((2,), "float32"),
    "steps/language_instruction": tfr.FixedLen((), "bytes"),
}


class Robot(NamedTuple):
    camera: str
    position: str
    has_instruction: bool


ROBOTS = {
    "pusher": Robot("image", "state", True),
    "reacher": Robot("wrist_cam", "joints", False),
}


def episodes(count: int, seed: int) -> Iterator[list[dict[str, Any]]]:
    """Yields episodes: an arm goes to a bright square, a tenth of the way in each step."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        goal, position = random.random(2), random.random(2)
        steps = []
        for _ in range(int(random.integers(20, 60))):
            image = random.integers(0, 60, (SIDE, SIDE, 3), np.uint8)
            y, x = (goal * (SIDE - 8)).astype(int)
            image[y : y + 8, x : x + 8] = 255
            action = np.zeros(7, np.float32)
            action[:2] = 0.1 * (goal - position)
            steps.append(
                {"image": image, "position": position.astype(np.float32), "action": action}
            )
            position = position + action[:2]
        yield steps


class RobotSet(tfds.core.GeneratorBasedBuilder):  # type: ignore[misc, name-defined]
    """Episodes of one robot, whose name is the set's configuration."""

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS: ClassVar[list[Any]] = [tfds.core.BuilderConfig(name=name) for name in ROBOTS]
    count = 0

    def _info(self) -> Any:
        robot = ROBOTS[self.builder_config.name]
        observation = {
            robot.camera: tfds.features.Image(shape=(SIDE, SIDE, 3), encoding_format="jpeg"),
            robot.position: tfds.features.Tensor(shape=(2,), dtype=np.float32),
        }
        step = {
            "observation": tfds.features.FeaturesDict(observation),
            "action": tfds.features.Tensor(shape=(7,), dtype=np.float32),
            "is_first": np.bool_,
            "is_last": np.bool_,
        }
        if robot.has_instruction:
            step["language_instruction"] = tfds.features.Text()
        features = tfds.features.FeaturesDict({"steps": tfds.features.Dataset(step)})
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, _: Any) -> Any:
        return {"train": self._generate_examples()}

    def _generate_examples(self) -> Iterator[tuple[int, Any]]:
        robot = ROBOTS[self.builder_config.name]
        for number, steps in enumerate(episodes(self.count, seed=len(robot.camera))):
            made = []
            for at, step in enumerate(steps):
                seen = {robot.camera: step["image"], robot.position: step["position"]}
                ends = {"is_first": at == 0, "is_last": at == len(steps) - 1}
                made.append({"observation": seen, "action": step["action"], **ends})
                if robot.has_instruction:
                    made[-1]["language_instruction"] = "go to the square"
            yield number, {"steps": made}


def write_set(folder: Path, name: str, count: int) -> Path:
    """Prepares a set of RLDS with TensorFlow Datasets, and returns its folder."""
    builder = RobotSet(config=name, data_dir=str(folder))
    builder.count = count
    config = tfds.download.DownloadConfig(num_shards=2)
    builder.download_and_prepare(download_config=config)
    return Path(builder.data_path)


def open_mixture(folders: dict[str, Path]) -> tfr.Mixture:
    """Mixes both sets under the same names: two steps of the first for each step of the second."""
    sets = {}
    for name, folder in folders.items():
        robot = ROBOTS[name]
        names = {
            f"steps/observation/{robot.camera}": IMAGE,
            f"steps/observation/{robot.position}": STATE,
        }
        sets[name] = tfr.Steps(
            tfr.tfds(folder, split="train").reader,
            along="steps/",
            windows=WINDOWS,
            rename={old: new for old, new in names.items() if old != new},
            absent={"steps/language_instruction": b"do what the others do"},
        )
    return tfr.Mixture({"pusher": (sets["pusher"], 2), "reacher": (sets["reacher"], 1)}, seed=1)


class Samples(NamedTuple):
    images: np.ndarray
    positions: np.ndarray
    actions: np.ndarray
    valid: np.ndarray
    numbers: list[int]


def decoded(batch: Any) -> Samples:
    """Returns the inputs of the policy. The Loader's threads call this ahead of time."""
    jpegs = np.asarray(batch[IMAGE].tolist(), object).reshape(-1)
    images = np.stack([tf.io.decode_jpeg(each).numpy() for each in jpegs])
    return Samples(
        images.reshape(-1, FRAMES, SIDE, SIDE, 3).astype(np.float32) / 255,
        np.asarray(batch[STATE]),
        np.asarray(batch["steps/action"])[:, :, :2],
        np.asarray(batch["steps/action/valid"], np.float32),
        batch.indices.tolist(),
    )


def make_loader(mixture: tfr.Mixture) -> tfr.Loader:
    return tfr.Loader(
        mixture,
        BATCH_SIZE,
        features=FEATURES,
        transform=decoded,
        threads=2,
        remainder="drop",
    )


class Policy:
    """A small network, with its optimizer."""

    def __init__(self) -> None:
        layers = tf.keras.layers
        tf.keras.utils.set_random_seed(0)
        images = tf.keras.Input((FRAMES, SIDE, SIDE, 3))
        positions = tf.keras.Input((2,))
        seen = layers.AveragePooling3D((FRAMES, 4, 4))(images)
        joined = layers.Concatenate()([layers.Flatten()(seen), positions])
        hidden = layers.Dense(64, "relu")(joined)
        actions = layers.Reshape((CHUNK, 2))(layers.Dense(CHUNK * 2)(hidden))
        self.model = tf.keras.Model([images, positions], actions)
        self.model.compile(tf.keras.optimizers.Adam(3e-3), "mse")
        self.model.optimizer.build(self.model.trainable_variables)  # what a checkpoint restores

    def train(self, samples: Samples) -> float:
        """One step. Actions beyond the end of an episode do not count."""
        loss = self.model.train_on_batch(
            [samples.images, samples.positions],
            samples.actions * 10,
            sample_weight=samples.valid,
        )
        return float(np.ravel(loss)[0])


class Run(NamedTuple):
    losses: list[float]
    numbers: list[list[int]]  # of the steps of each batch


def train(mixture: tfr.Mixture, policy: Policy, steps: int, checkpoint: Path) -> Run:
    """Continues from the checkpoint, if there is one, and saves a new checkpoint."""
    loader = make_loader(mixture)
    weights, state = checkpoint / "policy.weights.h5", checkpoint / "loader.json"
    if state.exists():
        policy.model.load_weights(weights)
        loader.load_state_dict(json.loads(state.read_text()))
    run = Run([], [])
    while len(run.losses) < steps:
        for samples in loader:
            run.losses.append(policy.train(samples))
            run.numbers.append(samples.numbers)
            if len(run.losses) == steps:
                break
    checkpoint.mkdir(exist_ok=True)
    policy.model.save_weights(weights)
    state.write_text(json.dumps(loader.state_dict()))
    loader.close()
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--steps", type=int, default=150)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        counts = {"pusher": options.episodes, "reacher": options.episodes // 2}
        mixture = open_mixture({name: write_set(folder, name, n) for name, n in counts.items()})
        print(f"{len(mixture.reader):,} steps of {sum(counts.values())} episodes of two robots")
        half = options.steps // 2
        first = train(mixture, Policy(), half, folder / "checkpoint")
        second = train(mixture, Policy(), options.steps - half, folder / "checkpoint")
        whole = train(mixture, Policy(), options.steps, folder / "other")
        same = first.numbers + second.numbers == whole.numbers
        print(f"loss {first.losses[0]:.4f}, {first.losses[-1]:.4f} when it was stopped, ", end="")
        print(f"{second.losses[-1]:.4f} at the end")
        print(f"resumed with {'the same' if same else 'OTHER'} steps; ", end="")
        print(f"a run that was not stopped ends at {whole.losses[-1]:.4f}")


if __name__ == "__main__":
    main()
