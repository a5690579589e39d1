"""Datasets of photos: their strings are not copied from record to tensor."""

from __future__ import annotations

from pathlib import Path

import pytest

from photo_files import some_photos, write_photos

tf = pytest.importorskip("tensorflow")

import tfrfast.tensorflow as tfr_tf  # noqa: E402

PHOTOS = some_photos(60)
SPECS = {
    "a label": tf.io.FixedLenFeature((), tf.int64, default_value=-1),
    "image": tf.io.FixedLenFeature((), tf.string),
    "name": tf.io.VarLenFeature(tf.string),
}


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_parsed_dataset_holds_what_was_written(tmp_path: Path, shuffled: bool) -> None:
    files = [write_photos(tmp_path / f"photos-{i}", PHOTOS[i::3]) for i in range(3)]
    dataset = tfr_tf.TFRecordDataset(files)
    if shuffled:
        dataset = dataset.shuffle(100, seed=1)
    dataset = dataset.batch(25).map(lambda records: tf.io.parse_example(records, SPECS))
    found = []
    for batch in dataset:
        names = tf.sparse.to_dense(batch["name"], default_value=b"none").numpy()
        rows = zip(batch["a label"].numpy(), names[:, 0], batch["image"].numpy(), strict=True)
        found += [(int(label), name, image) for label, name, image in rows]
    expected = [
        (
            -1 if photo.label is None else photo.label,
            b"none" if photo.name is None else photo.name,
            photo.image,
        )
        for i in range(3)
        for photo in PHOTOS[i::3]
    ]
    if shuffled:
        assert sorted(found) == sorted(expected)
    else:
        assert found == expected
