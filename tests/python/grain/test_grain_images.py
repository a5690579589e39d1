"""Images by every way of JAX and Grain: the same pixels as a Loader's, or a refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from image_records import COUNT, FEATURES, epoch_of, loader_of, rows_of, windows_of, write_images
from tfrfast import _native

jax = pytest.importorskip("jax")
grain = pytest.importorskip("grain")
tj = pytest.importorskip("tfrfast.jax")
tg = pytest.importorskip("tfrfast.grain")

pytestmark = pytest.mark.skipif(
    not _native.DECODES_IMAGES, reason="tfrfast was built without libjpeg-turbo and libpng"
)


def by_jax(path: str) -> Any:
    return tj.Loader(loader_of(path))


def by_batches(path: str) -> Any:
    return tg.IterDataset(loader_of(path))


def by_batches_of_a_worker(path: str) -> Any:
    parts = []
    for worker in (0, 1):
        part = tg.IterDataset(loader_of(path))
        part.set_slice(slice(worker, None, 2))
        parts.append(list(part))
    return [parts[step % 2][step // 2] for step in range(sum(map(len, parts)))]


@pytest.mark.parametrize("way", [by_jax, by_batches, by_batches_of_a_worker])
def test_every_way_has_the_pictures_of_a_loader(tmp_path: Path, way: Any) -> None:
    path = write_images(tmp_path)
    wanted, found = list(loader_of(path)), list(way(path))
    assert epoch_of(found) == epoch_of(wanted)
    assert windows_of(found) == windows_of(wanted)


def test_a_source_with_an_order_has_the_pictures_of_a_loader(tmp_path: Path) -> None:
    path = write_images(tmp_path)
    source = tg.Source(path, features=FEATURES, order=tfr.Shuffle(3), epochs=2)
    loader = loader_of(path)
    for epoch in range(2):
        items = [source[epoch * COUNT + position] for position in range(COUNT)]
        assert {
            number: row
            for item in items
            for number, row in rows_of({name: [value] for name, value in item.items()}).items()
        } == epoch_of(loader)
    with pytest.raises(ValueError, match="give order=tfr.Shuffle"):
        tg.Source(path, features=FEATURES)


def test_crops_are_arrays_on_devices_and_pictures_of_any_size_stay_on_the_host(
    tmp_path: Path,
) -> None:
    batch = next(iter(by_jax(write_images(tmp_path))))
    assert isinstance(batch.crops["sized"]["top"], jax.Array)
    assert isinstance(batch["own"][0], np.ndarray)
    doubled = jax.jit(lambda batch: batch.crops["sized"]["top"] * 2)(batch)
    assert np.array_equal(doubled, np.asarray(batch.crops["sized"]["top"]) * 2)
    assert jax.tree.map(lambda each: each, batch)[1:3].crops["own"]["left"].shape == (2,)
