"""Source gives Grain the records that a Reader reads."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import image_records
import tfrfast as tfr
from mixed_files import mixture_of, write_sets
from tfrfast import _native
from torch_data import FEATURES, NUM_RECORDS, example

grain = pytest.importorskip("grain")
tg = pytest.importorskip("tfrfast.grain", exc_type=ModuleNotFoundError)

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*")

FIXED = {name: FEATURES[name] for name in ("id", "dense", "name")}


def records(shards: list[str]) -> list[bytes]:
    with tfr.Reader(shards) as reader:
        return reader[:].tolist()


def check_row(row: Any, number: int) -> None:
    expected = example(number)
    assert set(row) == set(expected)
    assert row["id"] == number
    assert row["dense"].tolist() == expected["dense"]
    assert row["numbers"].tolist() == expected["numbers"]
    assert row["name"] == expected["name"]
    assert row["words"].tolist() == expected["words"]


def test_records_and_rows_by_number(shards: list[str]) -> None:
    source = tg.Source(shards)
    assert isinstance(source, grain.sources.RandomAccessDataSource)
    assert len(source) == NUM_RECORDS
    assert [source[i] for i in range(len(source))] == records(shards)
    assert source[np.int64(5)] == source[5]
    with pytest.raises(IndexError):
        source[NUM_RECORDS]
    decoded = tg.Source(tfr.Reader(shards), features=FEATURES)
    wanted = [102, 0, 40, 40]
    for row, number in zip(decoded._getitems(wanted), wanted, strict=True):
        check_row(row, number)
        check_row(decoded[number], number)


@pytest.mark.parametrize("pushdown", [False, True])
def test_a_map_dataset_batches_each_record_once(
    shards: list[str], pushdown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if pushdown:
        from grain._src.python.dataset.transformations import batch

        monkeypatch.setattr(batch, "_is_batch_map_pushdown_experiment_enabled", lambda: True)
    asked: list[int] = []

    class Watched(tg.Source):  # type: ignore[misc, name-defined]
        def _getitems(self, indices: Any) -> Any:
            asked.append(len(indices))
            return super()._getitems(indices)

    source = Watched(shards, features=FIXED)
    dataset = grain.MapDataset.source(source).shuffle(seed=1).batch(10)
    batches = list(dataset)
    numbers = np.concatenate([each["id"] for each in batches]).tolist()
    assert sorted(numbers) == list(range(NUM_RECORDS))
    assert numbers != sorted(numbers)
    for each in batches:
        assert each["dense"].tolist() == [example(i)["dense"] for i in each["id"].tolist()]
        assert each["name"].tolist() == [example(i)["name"] for i in each["id"].tolist()]
    assert sorted(asked) == ([3] + [10] * 10 if pushdown else [1] * NUM_RECORDS)


def test_processes_and_slices_get_each_record_once(shards: list[str]) -> None:
    dataset = grain.MapDataset.source(tg.Source(shards, features=FIXED)).shuffle(seed=1).repeat(2)
    alone = [row["id"] for row in dataset.to_iter_dataset()]
    loaded = dataset.to_iter_dataset().mp_prefetch(grain.MultiprocessingOptions(num_workers=2))
    assert [int(row["id"]) for row in loaded] == alone
    assert sorted(alone) == sorted(2 * list(range(NUM_RECORDS)))


def test_a_data_loader_resumes_from_a_checkpoint_where_the_files_have_moved(
    shards: list[str], tmp_path: Path
) -> None:
    def iterator(files: list[str]) -> Any:
        sampler = grain.samplers.IndexSampler(NUM_RECORDS, shuffle=True, seed=3, num_epochs=1)
        return iter(grain.DataLoader(data_source=tg.Source(files), sampler=sampler))

    expected = list(iterator(shards))
    assert sorted(expected) == sorted(records(shards))
    first = iterator(shards)
    assert [next(first) for _ in range(40)] == expected[:40]
    moved = shutil.copytree(Path(shards[0]).parent, tmp_path / "moved", copy_function=shutil.copy2)
    resumed = iterator([str(moved / Path(name).name) for name in shards])
    resumed.set_state(first.get_state())
    assert list(resumed) == expected[40:]
    fewer = iterator(shards[:1])
    with pytest.raises(ValueError, match="data source"):
        fewer.set_state(first.get_state())


def test_a_pickled_source_reads_the_same(shards: list[str]) -> None:
    source = tg.Source(shards, features=["id", "name"], verify="header")
    again = pickle.loads(pickle.dumps(source))
    assert repr(again) == repr(source)
    assert again.features == source.features
    assert again[17] == source[17] == {"id": 17, "name": b"record 17"}
    assert f"{source.reader._fingerprint:016x}" in repr(source)
    assert os.path.dirname(shards[0]) not in repr(source)


@pytest.mark.parametrize("features", [None, FIXED])
def test_damaged_records_are_none_or_an_error(damaged: list[str], features: Any) -> None:
    with pytest.raises(tfr.RecordError):
        tg.Source(damaged, features=features)[20]
    source = tg.Source(damaged, features=features, on_corruption="skip")
    assert source[20] is None
    rows = source._getitems([20, 19, 20, 20, 21])
    assert [row is None for row in rows] == [True, False, True, True, False]
    from_the_end = source._getitems([20, 19 - NUM_RECORDS, 20 - NUM_RECORDS, 21])
    assert [row is None for row in from_the_end] == [True, False, True, False]
    kept = list(grain.MapDataset.source(source).to_iter_dataset())
    assert len(kept) == NUM_RECORDS - 1


def test_options_of_a_reader_belong_to_paths(shards: list[str]) -> None:
    with pytest.raises(TypeError, match="verify: options of a Reader"):
        tg.Source(tfr.Reader(shards), verify="header")


def test_a_source_of_a_mixture_has_its_epochs(tmp_path: Path) -> None:
    mixture = mixture_of(write_sets(tmp_path))
    source = tg.Source(mixture, features={"id": FEATURES["id"]}, epochs=2)
    assert len(source) == 400
    assert source[-1] == source[399]
    with pytest.raises(IndexError, match="Item 400 does not exist"):
        source[400]
    assert "mixture=permuted" in repr(source)
    with pytest.raises(TypeError, match="needs an order: give order="):
        tg.Source(mixture.reader, epochs=2)


@pytest.mark.skipif(not _native.DECODES_IMAGES, reason="tfrfast was built without image codecs")
def test_images_that_are_drawn_need_an_order(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give order=tfr.Shuffle"):
        tg.Source(image_records.write_images(tmp_path), features=image_records.FEATURES)
