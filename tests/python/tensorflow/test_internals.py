"""The private names of TensorFlow: one file lists them, and without one TensorFlow reads."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrfast as tfr
from example_files import write_examples

tf = pytest.importorskip("tensorflow")

import tfrfast.tensorflow  # noqa: E402
from tfrfast.tensorflow import internals, reasons  # noqa: E402

_FILES = [
    each
    for each in Path(tfrfast.tensorflow.__file__).parent.rglob("*.py")
    if each.name != "internals.py"
]


def test_this_tensorflow_has_all_private_names() -> None:
    assert internals.missing() == ()
    function = tf.function(lambda given: given).get_concrete_function(tf.TensorSpec([], tf.int64))
    mapped = tf.data.Dataset.from_tensors(0).map(lambda number: number)
    owners = (mapped, mapped._inputs()[0], mapped, function.graph)
    lacking = [
        name
        for name, owner in zip(internals.OF_OBJECTS, owners, strict=True)
        if not hasattr(owner, name)
    ]
    assert lacking == []


@pytest.mark.parametrize(
    "name",
    [
        "tensorflow.python",
        "._variant_tensor",
        "._map_func",
        *(f'"{each}"' for each in internals._MAKERS if each[0] == "_"),
    ],
)
def test_private_names_stand_in_one_file(name: str) -> None:
    assert [each.name for each in _FILES if name in each.read_text("utf-8")] == []


def test_this_tensorflow_has_all_datasets_that_are_known_by_their_class() -> None:
    known = set()
    for place in ("tensorflow.python.data.ops", "tensorflow.python.data.experimental.ops"):
        folder = importlib.import_module(place)
        for module in pkgutil.iter_modules(folder.__path__, f"{place}."):
            known |= vars(importlib.import_module(module.name)).keys()
    assert {*internals._MAKERS} - known == set()


class TestWithout:
    @pytest.fixture(params=internals.PURPOSES)
    def name(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[str]:
        found = internals.found
        lacks: str = request.param
        monkeypatch.setattr(
            internals, "found", lambda place: None if place == lacks else found(place)
        )
        monkeypatch.setattr(reasons, "_told", set())
        internals.missing.cache_clear()
        yield lacks
        internals.missing.cache_clear()

    def test_a_private_name_tensorflow_reads(self, tmp_path: Path, name: str) -> None:
        files = write_examples(tmp_path, [3])
        plain = tf.data.TFRecordDataset(files)
        batches = plain.shuffle(9).batch(8)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert tfr.accelerate(batches) is batches
            ours = tfr.TFRecordDataset(files)
        assert [name in str(each.message) for each in caught] == [True]
        assert list(ours.as_numpy_iterator()) == list(plain.as_numpy_iterator())
        with pytest.raises(NotImplementedError, match="on_corruption= is not possible"):
            tfr.TFRecordDataset(files, on_corruption="skip")
