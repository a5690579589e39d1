"""Shards of long records, most of which is one string each, as photos are."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

import tfrfast as tfr


class Photo(NamedTuple):
    label: int | None
    name: bytes | None
    image: bytes

    def encode(self) -> bytes:
        """Sorts the features by name, so that features come before and after the image."""
        row: dict[str, object] = {"image": self.image}
        if self.label is not None:
            row["a label"] = self.label
        if self.name is not None:
            row["name"] = self.name
        return tfr.encode_example(row)


FEATURES: tfr.Features = {
    "a label": tfr.FixedLen((), "int64", default=-1),
    "image": tfr.FixedLen((), "bytes"),
    "name": tfr.VarLen("bytes"),
}


def some_photos(count: int) -> list[Photo]:
    """Returns photos, most of more than 100 KB. Their strings begin at different bytes."""
    chosen = random.Random(8)
    return [
        Photo(
            label=chosen.choice([None, 3, 100, 300, 70_000]),
            name=chosen.choice([None, b"", b"n" * 300]),
            image=chosen.randbytes(chosen.choice([0, 100, 15_000, 120_000, 150_000, 170_000])),
        )
        for _ in range(count)
    ]


def write_photos(path: Path, photos: list[Photo]) -> str:
    with tfr.Writer(str(path)) as writer:
        for photo in photos:
            writer.write(photo.encode())
    return str(path)
