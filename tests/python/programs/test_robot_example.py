"""The example of robots' episodes, which TensorFlow Datasets writes."""

from __future__ import annotations

from pathlib import Path

import pytest

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
