"""Long strings are not copied from record to column, and columns have the usual values."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from photo_files import FEATURES, Photo, some_photos, write_photos

PHOTOS = some_photos(60)


@pytest.fixture
def shard(tmp_path: Path) -> str:
    return write_photos(tmp_path / "photos", PHOTOS)


def check_batch(batch: Any, photos: list[Photo]) -> None:
    assert list(batch["image"]) == [photo.image for photo in photos]
    labels = [-1 if photo.label is None else photo.label for photo in photos]
    np.testing.assert_array_equal(batch["a label"], labels)
    names = [[] if photo.name is None else [photo.name] for photo in photos]
    assert [list(row) for row in batch["name"]] == names


@pytest.mark.parametrize("io", ["mmap", "pread"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_columns_hold_what_was_written(shard: str, io: Any, shuffle: bool) -> None:
    loader = tfr.Loader(tfr.Reader(shard, io=io), 25, features=FEATURES, shuffle=shuffle, seed=2)
    for _ in range(2):
        for batch in loader:
            check_batch(batch, [PHOTOS[number] for number in batch.indices])


def test_a_damaged_photo_is_left_out_or_named(shard: str) -> None:
    frames = tfr.Reader(shard).shards[0]
    number = next(i for i in range(30, 60) if len(PHOTOS[i].image) > 100_000)
    spoilt = bytearray(Path(shard).read_bytes())
    spoilt[int(frames.offsets[number]) + 12 + 60_000] ^= 1
    Path(shard).write_bytes(spoilt)
    photos = [photo for i, photo in enumerate(PHOTOS) if i != number]
    reader = tfr.Reader(shard, on_corruption="skip")
    (batch,) = tfr.Loader(reader, 60, features=FEATURES, shuffle=False)
    check_batch(batch, photos)
    assert len(reader.skipped) == 1
    with pytest.raises(tfr.CorruptRecordError, match=f"record {number} "):
        list(tfr.Loader(tfr.Reader(shard), 60, features=FEATURES, shuffle=False))


def test_a_missing_feature_names_the_record(tmp_path: Path) -> None:
    photos = [Photo(1, b"name", random.Random(i).randbytes(120_000)) for i in range(20)]
    shard = write_photos(tmp_path / "photos", [*photos, photos[0]._replace(label=None)])
    features = FEATURES | {"a label": tfr.FixedLen((), "int64")}
    loader = tfr.Loader(tfr.Reader(shard), 21, features=features, shuffle=False)
    with pytest.raises(tfr.FeatureError, match="ecord 20") as first:
        list(loader)
    with pytest.raises(tfr.FeatureError) as second:  # the record is tried again
        list(loader)
    assert str(first.value) == str(second.value)
