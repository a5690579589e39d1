"""TensorFlow Datasets from PyPI, unedited: its datasets are accelerated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explained import is_planned

tfds = pytest.importorskip("tensorflow_datasets")
adapter = pytest.importorskip("tfrfast.tensorflow")

RECORDS = 300


class Floats(tfds.core.GeneratorBasedBuilder):  # type: ignore[misc, name-defined]
    VERSION = tfds.core.Version("1.0.0")

    def _info(self) -> Any:
        features = {"x": tfds.features.Tensor(shape=(4,), dtype=np.float32), "id": np.int64}
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, _: Any) -> Any:
        rows = ((i, {"x": np.full(4, i, np.float32), "id": i}) for i in range(RECORDS))
        return {"train": rows}

    def _generate_examples(self) -> Any:
        raise AssertionError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set of four shards."""
    made = tmp_path_factory.mktemp("sets")
    config = tfds.download.DownloadConfig(num_shards=4)
    Floats(data_dir=str(made)).download_and_prepare(download_config=config)
    return made


@pytest.fixture(params=["plain", "installed"])
def load(request: pytest.FixtureRequest, folder: Path) -> Iterator[Any]:
    """Loads a split, as TensorFlow and as tfrfast reads it."""
    if request.param == "installed":
        adapter.install()
    yield lambda split, **named: tfds.load("floats", split=split, data_dir=str(folder), **named)
    adapter.uninstall()


def ids(batches: Any) -> list[int]:
    return [int(each) for batch in tfds.as_numpy(batches) for each in np.ravel(batch["id"])]


@pytest.fixture(scope="module")
def in_order(folder: Path) -> list[int]:
    return ids(Floats(data_dir=str(folder)).as_dataset(split="train"))


def test_a_split_has_its_order(load: Any, in_order: list[int]) -> None:
    assert sorted(in_order) == list(range(RECORDS))
    whole = load("train")
    assert ids(whole) == in_order
    batches = whole.batch(32)
    assert len(batches) == 10
    for _ in range(2):  # the second time from TensorFlow Datasets' cache
        assert ids(batches) == in_order
    faster = getattr(batches, "_tfrfast_accelerated", None)  # None: TensorFlow has read it
    assert faster is None or is_planned(faster)


def test_splits_by_percent_are_parts(load: Any) -> None:
    parts = [ids(load(each).batch(16)) for each in ("train[:30%]", "train[30%:55%]", "train[55%:]")]
    assert [*map(len, parts)] == [90, 75, 135]
    assert sorted(sum(parts, [])) == list(range(RECORDS))
    assert ids(load("train[:30%]")) == parts[0]
    ends = load("train[:10%]+train[90%:]")
    assert ids(ends.batch(16)) == ids(ends)


def test_files_and_records_are_shuffled(load: Any, in_order: list[int]) -> None:
    config = tfds.ReadConfig(try_autocache=False, interleave_cycle_length=2, shuffle_seed=1)
    mixed = load("train", shuffle_files=True, read_config=config).shuffle(RECORDS).batch(32)
    first, second = ids(mixed), ids(mixed)
    assert sorted(first) == sorted(second) == list(range(RECORDS))
    assert first != second
    assert sorted(ids(load("train", shuffle_files=True).batch(32))) == list(range(RECORDS))


def test_examples_have_ids(load: Any, in_order: list[int]) -> None:
    named = load("train", read_config=tfds.ReadConfig(add_tfds_id=True)).batch(32)
    assert ids(named) == in_order
    seen = {name for batch in tfds.as_numpy(named) for name in batch["tfds_id"]}
    assert len(seen) == RECORDS
    assert b"floats-train.tfrecord-00003-of-00004__0" in seen
