"""The example of robots' episodes, which TensorFlow Datasets writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from example_scripts import load_example

tfds = pytest.importorskip("tensorflow_datasets")


def test_a_policy_learns_and_goes_on_with_the_same_steps(tmp_path: Path) -> None:
    example = load_example("robot_policy")
    counts = {"pusher": 40, "reacher": 20}
    folders = {name: example.write_set(tmp_path, name, n) for name, n in counts.items()}
    mixture = example.open_mixture(folders)
    first = example.train(mixture, example.Policy(), 30, tmp_path / "checkpoint")
    second = example.train(mixture, example.Policy(), 50, tmp_path / "checkpoint")
    whole = example.train(mixture, example.Policy(), 80, tmp_path / "other")
    assert first.numbers + second.numbers == whole.numbers
    assert first.losses + second.losses == pytest.approx(whole.losses, rel=1e-3)
    assert whole.losses[-1] < whole.losses[0] / 5

    # TensorFlow Datasets itself reads the same.
    builder = tfds.builder_from_directory(str(folders["reacher"]))
    in_order = tfds.ReadConfig(interleave_cycle_length=1)
    episodes = builder.as_dataset("train", read_config=in_order)
    steps = [step for episode in episodes for step in tfds.as_numpy(episode["steps"])]
    reader = mixture.reader
    found = example.decoded(tfr.parse_example(reader[len(reader) - len(steps) :], example.FEATURES))
    for row, step in enumerate(steps):
        seen = step["observation"]
        assert np.array_equal(found.images[row, 1], seen["wrist_cam"].astype(np.float32) / 255)
        assert np.array_equal(found.positions[row], seen["joints"])
        assert np.array_equal(found.actions[row, 0], step["action"][:2])
        at_end = [bool(each["is_last"]) for each in steps[row : row + example.CHUNK]]
        real = at_end.index(True) + 1 if True in at_end else example.CHUNK
        assert found.valid[row].sum() == real
