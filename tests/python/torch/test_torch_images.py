"""Images in every adapter of PyTorch: the same pixels as a Loader's, or an error with advice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from image_records import COUNT, FEATURES, epoch_of, loader_of, windows_of, write_images
from tfrfast import _native

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")

from torch.utils.data import DataLoader  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.skipif(
        not _native.DECODES_IMAGES, reason="tfrfast was built without libjpeg-turbo and libpng"
    ),
]


def by_loader(path: str, workers: int) -> Any:
    return tt.Loader(path, 5, features=FEATURES, seed=3, threads=workers + 1)


def by_iterable(path: str, workers: int) -> Any:
    dataset = tt.IterableDataset(path, 5, features=FEATURES, seed=3)
    return DataLoader(dataset, batch_size=None, num_workers=workers)


def by_sampler(path: str, workers: int) -> Any:
    dataset = tt.Dataset(path, features=FEATURES)
    sampler = tt.BatchSampler(COUNT, 5, seed=3)
    return DataLoader(dataset, batch_sampler=sampler, collate_fn=tt.collate, num_workers=workers)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("way", [by_loader, by_iterable, by_sampler])
def test_every_way_has_the_pictures_of_a_loader(tmp_path: Path, way: Any, workers: int) -> None:
    path = write_images(tmp_path)
    expected, batches = loader_of(path), way(path, workers)
    for _ in range(2):
        wanted, found = list(expected), list(batches)
        assert epoch_of(found) == epoch_of(wanted)
        assert windows_of(found) == windows_of(wanted)
    assert {len(picture.shape) for picture in found[0]["own"]} == {3}


def test_a_dataset_without_a_sampler_that_knows_the_epoch_refuses(tmp_path: Path) -> None:
    dataset = tt.Dataset(write_images(tmp_path), features=FEATURES)
    for batches in (DataLoader(dataset, collate_fn=tt.collate), dataset):
        with pytest.raises(ValueError, match="batch_sampler=tfrfast.torch.BatchSampler"):
            next(iter(batches))
    plain = tt.Dataset(dataset.reader, features={"own": tfr.Image()})
    assert plain[3]["own"].shape == (36, 52, 3)
