"""The examples for JAX on small data."""

from __future__ import annotations

from pathlib import Path

import pytest

from example_scripts import load_example

pytest.importorskip("jax")


def test_jax_loop_learns(tmp_path: Path) -> None:
    example = load_example("jax_loop")
    digits = load_example("mnist_data").write_digits(tmp_path / "data", "floats", 1500, 161)
    rows = example.rows_over_all_devices()
    untrained = example.train(digits.train, rows, epochs=0)
    trained = example.train(digits.train, rows, epochs=2)
    assert example.accuracy(digits.test, rows, trained) > (
        example.accuracy(digits.test, rows, untrained) + 0.3
    )


def test_pretraining_goes_on_with_the_same_losses_on_other_hosts(tmp_path: Path) -> None:
    example = load_example("pretrain")
    sources = example.write_sources(tmp_path)
    _, losses = example.train(example.make_loaders(sources, 1), example.new_model(), 8)
    assert example.stop_and_resume(sources, 4, 2, 8) == pytest.approx(losses, rel=1e-3)
    assert losses[-1] < losses[0] - 0.2
