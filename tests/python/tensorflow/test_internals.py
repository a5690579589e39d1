"""The private names of TensorFlow: this TensorFlow has all of them, and one file lists them."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

tf = pytest.importorskip("tensorflow")

import tfrfast.tensorflow  # noqa: E402
from tfrfast.tensorflow import internals  # noqa: E402

_FILES = [
    each
    for each in Path(tfrfast.tensorflow.__file__).parent.rglob("*.py")
    if each.name != "internals.py"
]


def test_this_tensorflow_has_all_private_names() -> None:
    assert internals.missing() == []


@pytest.mark.parametrize("name", ["tensorflow.python", "._variant_tensor", "._map_func"])
def test_private_names_stand_in_one_file(name: str) -> None:
    assert [each.name for each in _FILES if name in each.read_text("utf-8")] == []


def test_this_tensorflow_has_all_datasets_that_are_known_by_their_class() -> None:
    known = {*dir(tf.raw_ops)}
    for place in ("tensorflow.python.data.ops", "tensorflow.python.data.experimental.ops"):
        folder = importlib.import_module(place)
        for module in pkgutil.iter_modules(folder.__path__, f"{place}."):
            known |= vars(importlib.import_module(module.name)).keys()
    named = {
        name
        for each in _FILES
        for name in re.findall(r'"(_?[A-Z]\w+Dataset(?:V\d)?)"', each.read_text("utf-8"))
    }
    assert len(named) > 30
    assert named - known == set()
