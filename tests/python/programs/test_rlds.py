"""Steps equal the steps that TensorFlow Datasets reads from its own sets of episodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

tfds = pytest.importorskip("tensorflow_datasets")

LENGTHS = (3, 0, 12, 1)


class EveryKind(tfds.core.GeneratorBasedBuilder):  # type: ignore[misc, name-defined]
    VERSION = tfds.core.Version("1.0.0")

    def _info(self) -> Any:
        kinds = tfds.features
        observation = {
            "image": kinds.Image(shape=(8, 8, 3), encoding_format="png"),
            "depth": kinds.Tensor(shape=(2, 3), dtype=np.float64),
            "pixels": kinds.Tensor(shape=(4,), dtype=np.uint8),
            "touches": kinds.Sequence(np.float32),
            "grid": kinds.Sequence(kinds.Sequence(np.int32)),
            "joints": kinds.FeaturesDict({"angle": np.float32, "moves": np.bool_}),
        }
        steps = {
            "observation": kinds.FeaturesDict(observation),
            "action": kinds.Tensor(shape=(7,), dtype=np.float32),
            "label": kinds.ClassLabel(names=["push", "pick"]),
            "tick": np.int64,
            "text": kinds.Text(),
            "is_first": np.bool_,
        }
        features = {
            "steps": kinds.Dataset(steps),
            "episode_metadata": kinds.FeaturesDict({"file": kinds.Text(), "number": np.int64}),
        }
        return tfds.core.DatasetInfo(builder=self, features=kinds.FeaturesDict(features))

    def _split_generators(self, _: Any) -> Any:
        return {"train": self._generate_examples()}

    def _generate_examples(self) -> Iterator[tuple[int, Any]]:
        for number, length in enumerate(LENGTHS):
            random = np.random.default_rng(number)
            steps = [
                {
                    "observation": {
                        "image": random.integers(0, 255, (8, 8, 3), np.uint8),
                        "depth": random.random((2, 3)),
                        "pixels": random.integers(0, 255, 4, np.uint8),
                        "touches": random.random(random.integers(0, 4)).astype(np.float32),
                        "grid": [[1] * int(n) for n in random.integers(0, 3, 2)],
                        "joints": {"angle": np.float32(random.random()), "moves": at % 2 == 0},
                    },
                    "action": random.random(7, np.float32),
                    "label": at % 2,
                    "tick": int(random.integers(-5, 1 << 50)),
                    "text": f"pick {number}",
                    "is_first": at == 0,
                }
                for at in range(length)
            ]
            about = {"file": f"episode {number}", "number": number}
            yield number, {"steps": steps, "episode_metadata": about}


def flat(value: Any, name: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {name: value}
    return {
        key: each
        for inner, part in value.items()
        for key, each in flat(part, f"{name}/{inner}".strip("/")).items()
    }


def listed(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def test_every_kind_of_feature(tmp_path: Path) -> None:
    builder = EveryKind(data_dir=str(tmp_path))
    builder.download_and_prepare()
    as_stored = {"steps": {"observation": {"image": tfds.decode.SkipDecoding()}}}
    train = tfr.tfds(builder.data_path, split="train").steps()
    reader: Any = train.reader
    batch = tfr.parse_example(reader[:], train.features)
    episodes = builder.as_dataset("train", decoders=as_stored)
    row = 0
    for episode in episodes:
        about = tfds.as_numpy({k: v for k, v in episode.items() if k != "steps"})
        for step in episode["steps"]:
            ragged = {n: v.to_list() if hasattr(v, "to_list") else v for n, v in flat(step).items()}
            wanted = {f"steps/{name}": each for name, each in ragged.items()} | flat(about)
            for name, value in wanted.items():
                found = listed(batch[name][row])
                expected = listed(value.numpy() if hasattr(value, "numpy") else value)
                if name == "steps/observation/depth":  # stored as float32
                    assert np.allclose(found, expected)
                else:
                    assert found == expected, name
            row += 1
    assert row == len(reader) == sum(LENGTHS)
    assert sorted(reader.episodes.lengths) == sorted(LENGTHS)
    assert set(wanted) == set(train.features)
