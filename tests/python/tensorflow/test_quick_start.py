"""The quick start for Keras, as it is quoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoted_code import run_page

pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")


def test_keras_learns_as_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keras.utils.set_random_seed(0)
    accuracy = run_page("start-keras.md")["history"].history["accuracy"]
    assert len(accuracy) == 5
    assert accuracy[-1] > accuracy[0] + 0.1
