"""Records with images, and their pixels and windows from a Loader, for the tests of every adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tfrfast as tfr

GOLDEN = Path(__file__).parent.parent / "golden" / "images"
NAMES = ["subsampled.jpg", "color.png", "grey.jpg", "palette.png", "progressive.jpg"]
COUNT = 37
SIZED = tfr.Image((12, 10), crop="random", flip=True, area=(0.1, 0.8))
OWN = tfr.Image(crop="random", flip=True, area=(0.1, 0.8))
FEATURES = {"sized": SIZED, "own": OWN, "number": tfr.FixedLen((), "int64")}
FIELDS = (
    "top",
    "left",
    "height",
    "width",
    "image_height",
    "image_width",
    "flipped",
    "damaged",
)

Row = tuple[Any, ...]


def write_images(folder: Path) -> str:
    """Writes COUNT records, whose images have the features "sized" and "own"."""
    path = folder / "images.tfrecord"
    with tfr.Writer(path) as writer:
        for number in range(COUNT):
            image = (GOLDEN / NAMES[number % len(NAMES)]).read_bytes()
            writer.write(tfr.encode_example({"sized": image, "own": image, "number": number}))
    return str(path)


def loader_of(path: str, **options: Any) -> tfr.Loader:
    return tfr.Loader(path, 5, features=FEATURES, seed=3, **options)


def windows(crops: Any) -> list[Row]:
    """Returns the fields of a batch's crops, row by row."""
    return list(zip(*(np.asarray(crops[field]).tolist() for field in FIELDS), strict=True))


def rows_of(batch: Any) -> dict[int, Row]:
    """Returns the pixels of each record, by the record's number."""
    return {
        int(batch["number"][row]): (
            np.asarray(batch["sized"][row]).tobytes(),
            np.asarray(batch["own"][row]).shape,
            np.asarray(batch["own"][row]).tobytes(),
        )
        for row in range(len(batch["number"]))
    }
