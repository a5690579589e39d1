"""The loaders that people copy deliver what the programs they stand for would make of the same
files: tf.data rewrites those programs' steps from their descriptions, as the oracle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import tensorflow as tf

from example_scripts import load_example

tfds = pytest.importorskip("tensorflow_datasets")

LENGTHS = {"droid": (9, 17, 30, 12), "bridge": (11, 25, 9), "fractal": (20, 13, 16, 8)}
SIDE = 24


def step_of(name: str, random: Any, episode: int, step: int) -> dict[str, Any]:
    def picture() -> Any:
        return random.integers(0, 255, (SIDE, SIDE, 3), np.uint8)

    def numbers(count: int) -> Any:
        return random.normal(episode, 1 + step % 3, count).astype(np.float32)

    if name == "droid":
        return {
            "observation": {
                "exterior_image_1_left": picture(),
                "exterior_image_2_left": picture(),
                "wrist_image_left": picture(),
                "joint_position": numbers(7),
                "gripper_position": numbers(1),
            },
            "action_dict": {"joint_position": numbers(7), "gripper_position": numbers(1)},
            "language_instruction": f"one {episode}",
            "language_instruction_2": f"two {episode}",
            "language_instruction_3": f"three {episode}",
        }
    action = np.concatenate([numbers(5), [2.0], [float(step % 2)]]).astype(np.float32)
    return {
        "observation": {"image_0": picture(), "image_1": picture(), "state": numbers(7)},
        "action": action,
        "language_instruction": "" if episode == 1 else f"do {name} {episode}",
    }


class Robots(tfds.core.GeneratorBasedBuilder):  # type: ignore[misc, name-defined]
    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS: ClassVar[list[Any]] = [tfds.core.BuilderConfig(name=name) for name in LENGTHS]

    def _info(self) -> Any:
        kinds = tfds.features
        sample = step_of(self.builder_config.name, np.random.default_rng(0), 0, 0)

        def kind(value: Any) -> Any:
            if isinstance(value, dict):
                return kinds.FeaturesDict({name: kind(each) for name, each in value.items()})
            if isinstance(value, str):
                return kinds.Text()
            if value.ndim == 3:
                return kinds.Image(shape=value.shape, encoding_format="png")
            return kinds.Tensor(shape=value.shape, dtype=value.dtype)

        metadata = {"file_path": kinds.Text(), "recording_folderpath": kinds.Text()}
        features = {
            "steps": kinds.Dataset({name: kind(each) for name, each in sample.items()}),
            "episode_metadata": kinds.FeaturesDict(metadata),
        }
        return tfds.core.DatasetInfo(builder=self, features=kinds.FeaturesDict(features))

    def _split_generators(self, _: Any) -> Any:
        return {"train": self._generate_examples()}

    def _generate_examples(self) -> Iterator[Any]:
        name = self.builder_config.name
        random = np.random.default_rng(len(name))
        for episode, length in enumerate(LENGTHS[name]):
            outcome = "failure" if episode == 2 else "success"
            metadata = {
                "file_path": f"/{outcome}/{episode}/trajectory.h5",
                "recording_folderpath": f"/recordings/{episode}",
            }
            steps = [step_of(name, random, episode, step) for step in range(length)]
            yield episode, {"steps": steps, "episode_metadata": metadata}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("robots")
    for name in LENGTHS:
        Robots(data_dir=str(root), config=name).download_and_prepare()
    return root / "robots"


def episodes_of(folder: Path) -> Any:
    """The episodes as the programs read them: dicts with a tensor of all steps for each feature."""
    builder = tfds.builder_from_directory(str(folder))
    in_order = tfds.ReadConfig(interleave_cycle_length=1)

    def whole(episode: Any) -> Any:
        length = tf.data.experimental.cardinality(episode["steps"])
        steps = episode["steps"].batch(1000).get_single_element()
        return steps | {"metadata": episode["episode_metadata"], "length": length}

    return builder.as_dataset("train", read_config=in_order).map(whole)


def flat(trajectories: Any) -> list[dict[str, Any]]:
    return list(trajectories.flat_map(tf.data.Dataset.from_tensor_slices).as_numpy_iterator())


def row_of(batch: Any, row: int) -> Any:
    if isinstance(batch, dict):
        return {name: row_of(each, row) for name, each in batch.items()}
    return batch[row]


def by_step(loader: Any, epochs: int = 1) -> dict[tuple[int, int], Any]:
    """The samples of some epochs, by epoch and step: each step comes once in an epoch."""
    found = {}
    for epoch in range(epochs):
        for batch in loader:
            for row, step in enumerate(np.asarray(batch["steps"]).tolist()):
                assert (epoch, step) not in found
                found[epoch, step] = row_of(batch, row)
    return found


def test_openpi_droid(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    example = load_example("openpi_droid")
    folder = root / "droid/1.0.0"
    names = [f"/recordings/{e}--/success/{e}/trajectory.h5" for e in range(4)]
    ranges = {names[0]: [[0, 4], [6, 9]], names[1]: [[2, 16]], names[3]: [[5, 99]]}
    (tmp_path / "keep.json").write_text(json.dumps(ranges))

    kept = {f"{name}--{t}" for name, each in ranges.items() for a, b in each for t in range(a, b)}
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(sorted(kept), [True] * len(kept)), False
    )

    def restructure(traj: Any) -> Any:
        length = tf.shape(traj["action_dict"]["joint_position"])[0]
        actions = tf.concat(
            [traj["action_dict"][f"{n}_position"] for n in ("joint", "gripper")], -1
        )
        seen = traj["observation"]
        path = traj["metadata"]["recording_folderpath"] + "--" + traj["metadata"]["file_path"]
        indices = tf.range(length)
        chunk = tf.minimum(indices[:, None] + tf.range(example.CHUNK)[None], length - 1)
        return {
            "actions": tf.gather(actions, chunk),
            "state": tf.concat([seen["joint_position"], seen["gripper_position"]], -1),
            "images": tf.stack(
                [seen["exterior_image_1_left"], seen["exterior_image_2_left"]], axis=1
            ),
            "wrist": seen["wrist_image_left"],
            "prompts": tf.stack(
                [traj[f"language_instruction{n}"] for n in ("", "_2", "_3")], axis=1
            ),
            "passes": table.lookup(path + "--" + tf.strings.as_string(indices)),
        }

    trajectories = episodes_of(folder).filter(
        lambda traj: tf.strings.regex_full_match(traj["metadata"]["file_path"], ".*success.*")
    )
    wanted = [each for each in flat(trajectories.map(restructure)) if each["passes"]]
    stats_path = tmp_path / "norm_stats.json"
    whole = example.open_loader(
        folder, 7, stats_path, keep_ranges=tmp_path / "keep.json", size=(SIDE, SIDE), seed=4
    )
    stats = json.loads(stats_path.read_text())["norm_stats"]
    for part, rows in (("state", None), ("actions", 0)):
        numbers = np.array([each[part] if rows is None else each[part][0] for each in wanted])
        assert np.allclose(stats[part]["q01"], np.quantile(numbers.astype(np.float64), 0.01, 0))
        assert np.allclose(stats[part]["mean"], numbers.astype(np.float64).mean(0))
    low, high = (
        {part: np.array(stats[part][q], np.float64) for part in stats} for q in ("q01", "q99")
    )

    def normalised(part: str, x: Any) -> Any:
        return (x - low[part]) / (high[part] - low[part] + 1e-6) * 2.0 - 1.0

    samples = by_step(whole, epochs=2)
    assert sorted(samples) == [(e, s) for e in range(2) for s in range(len(wanted))]
    cameras = np.zeros(2, int)
    prompts = set()
    for (_epoch, step), sample in samples.items():
        expected = wanted[step]
        observed = sample["observation"]
        same = [np.array_equal(observed["image"], each) for each in expected["images"]]
        assert sum(same) == 1
        cameras += same
        assert np.array_equal(observed["wrist_image"], expected["wrist"])
        assert np.allclose(observed["state"], normalised("state", expected["state"]), atol=1e-5)
        assert np.allclose(sample["actions"], normalised("actions", expected["actions"]), atol=1e-5)
        assert sample["prompt"].encode() in expected["prompts"].tolist()
        prompts.add(sample["prompt"].split()[0])
    assert cameras.min() > len(wanted) / 2
    assert prompts == {"one", "two", "three"}
    (tmp_path / "none.json").write_text('{"another episode": [[0, 9]]}')
    with pytest.warns(UserWarning, match="keeps none"), pytest.raises(SystemExit, match="No step"):
        example.open_loader(folder, 7, stats_path, keep_ranges=tmp_path / "none.json")


def test_openvla_mixture(root: Path, tmp_path: Path) -> None:
    example = load_example("openvla_mixture")
    robots = {
        "bridge/1.0.0": example.Robot("observation/image_0", weight=1.0),
        "fractal/1.0.0": example.Robot("observation/image_1", weight=0.5),
    }
    path = tmp_path / "dataset_statistics.json"
    loader = example.open_loader(root, robots, 16, statistics_path=path, size=(SIDE, SIDE), seed=2)
    stats = json.loads(path.read_text())
    samples: list[list[dict[str, Any]]] = []
    for name, robot in robots.items():
        trajectories = list(episodes_of(root / name).as_numpy_iterator())
        actions = np.concatenate([each["action"] for each in trajectories]).astype(np.float64)
        found = stats[name.split("/")[0]]
        assert found["num_transitions"] == len(actions)
        assert found["num_trajectories"] == len(trajectories)
        numbers = {"mean": actions.mean(0), "std": actions.std(0), "max": actions.max(0)}
        numbers |= {"min": actions.min(0), "q01": np.quantile(actions, 0.01, 0)}
        numbers["q99"] = np.quantile(actions, 0.99, 0)
        for part, values in numbers.items():
            assert np.allclose(found["action"][part], values, rtol=1e-12, atol=1e-12)
        meta = {part: tf.constant(values, tf.float32) for part, values in numbers.items()}

        def normalise(traj: Any, meta: Any = meta) -> Any:
            x = traj["action"]
            low, high = meta["q01"], meta["q99"]
            scaled = tf.clip_by_value(2 * (x - low) / (high - low + 1e-8) - 1, -1, 1)
            x = tf.where(example.MASK, scaled, x)
            return traj | {"action": tf.where(meta["min"] == meta["max"], 0.0, x)}

        def chunk(traj: Any, camera: str = robot.image.split("/")[1]) -> Any:
            length = tf.shape(traj["action"])[0]
            effective = tf.maximum(length - example.FUTURE, 0)
            future = tf.range(effective)[:, None] + tf.range(1 + example.FUTURE)[None]
            return {
                "image_primary": traj["observation"][camera][:effective][:, None],
                "action": tf.gather(traj["action"], tf.minimum(future, length - 1)),
                "language_instruction": traj["language_instruction"][:effective],
            }

        kept = episodes_of(root / name).filter(
            lambda traj: tf.reduce_any(traj["language_instruction"] != "")
        )
        samples.append(flat(kept.map(normalise).map(chunk)))
    seen: list[set[int]] = [set(), set()]
    drawn = np.zeros(2, int)
    for _ in range(6):
        for batch in loader:
            for row, source in enumerate(batch["dataset"].tolist()):
                action = batch["action"][row]
                matches = [
                    number
                    for number, each in enumerate(samples[source])
                    if np.array_equal(each["image_primary"], batch["image_primary"][row])
                ]
                (number,) = matches
                expected = samples[source][number]
                assert np.allclose(action, expected["action"], atol=2e-6)
                assert batch["language_instruction"][row] == expected["language_instruction"]
                seen[source].add(number)
                drawn[source] += 1
    assert [len(each) for each in seen] == [len(each) for each in samples]
    shares = np.array([len(samples[0]), 0.5 * len(samples[1])])
    assert np.allclose(drawn / drawn.sum(), shares / shares.sum(), atol=0.03)


def test_octo_goals(root: Path) -> None:
    example = load_example("octo_goals")
    loader = example.open_loader(root / "bridge/1.0.0", 8, size=(SIDE, SIDE), crop=None, seed=1)
    trajectories = list(episodes_of(root / "bridge/1.0.0").as_numpy_iterator())
    numbers = {
        name: np.concatenate(list(parts)).astype(np.float64)
        for name, parts in (
            ("action", [each["action"] for each in trajectories]),
            ("state", [each["observation"]["state"] for each in trajectories]),
        )
    }

    def chunk(traj: Any) -> Any:
        length = tf.shape(traj["action"])[0]
        here = tf.range(length)[:, None]
        past = here + tf.range(1 - example.HISTORY, 1)[None]
        future = here + tf.range(example.CHUNK)[None]
        seen = {
            name: tf.gather(each, tf.maximum(past, 0)) for name, each in traj["observation"].items()
        }
        action = traj["action"]
        mean, std = (tf.constant(f(numbers["action"], 0), tf.float32) for f in (np.mean, np.std))
        scaled = (action - mean) / (std + 1e-8)
        # Past the end, Octo's chunks repeat the last action.
        action = tf.where(example.MASK, scaled, action)
        return {
            **seen,
            "pad_mask": past >= 0,
            "action": tf.gather(action, tf.minimum(future, length - 1)),
            "action_pad_mask": future < length,
            "later": tf.tile(tf.range(length)[None], [length, 1]) > here,
            "pictures": tf.tile(traj["observation"]["image_0"][None], [length, 1, 1, 1, 1]),
            "wrists": tf.tile(traj["observation"]["image_1"][None], [length, 1, 1, 1, 1]),
        }

    wanted = [
        each
        for trajectory in episodes_of(root / "bridge/1.0.0").map(chunk)
        for each in tf.data.Dataset.from_tensor_slices(trajectory).as_numpy_iterator()
    ]
    samples = by_step(loader)
    assert sorted(samples) == [(0, step) for step in range(len(wanted))]
    mean, std = numbers["state"].mean(0), numbers["state"].std(0)
    far = 0
    for (_, step), sample in samples.items():
        expected, seen = wanted[step], sample["observation"]
        assert np.array_equal(seen["image_primary"], expected["image_0"])
        assert np.array_equal(seen["image_wrist"], expected["image_1"])
        assert np.array_equal(seen["pad_mask"], expected["pad_mask"])
        assert np.allclose(seen["proprio"], (expected["state"] - mean) / (std + 1e-8), atol=1e-5)
        constant = numbers["action"].std(0) == 0
        assert np.allclose(
            sample["action"][:, ~constant], expected["action"][:, ~constant], atol=1e-5
        )
        assert np.abs(sample["action"][:, constant]).max(initial=0) < 1e-3
        assert np.array_equal(sample["action_pad_mask"], expected["action_pad_mask"])
        goal = sample["task"]
        allowed = np.flatnonzero(expected["later"])
        if len(allowed) == 0:
            allowed = np.array([len(expected["later"]) - 1])
        places = [
            at for at in allowed if np.array_equal(goal["image_primary"], expected["pictures"][at])
        ]
        assert len(places) == 1
        assert np.array_equal(goal["image_wrist"], expected["wrists"][places[0]])
        far += places[0] > allowed[0]
    assert far > len(wanted) / 3
