"""examples/jax_loop.py on small data."""

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
