"""Captions refer to the features of their image by key, instead of holding a copy.

    python examples/captions.py [--images 500]

The features of each image are stored once, in a separate data set, and are looked up by record
number while captions stream. The batches are the same, at a fraction of the bytes.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import tfrfast as tfr

WIDTH = 2048
WORDS = 12
BATCH_SIZE = 64
SEED = 3

TOKENS = {"tokens": tfr.FixedLen((WORDS,), "int32")}
VECTOR = {"vector": tfr.FixedLen((WIDTH,), "float32")}
KEY = {"key": tfr.FixedLen((), "bytes")}


class Data(NamedTuple):
    captions: str
    images: str
    copied: str
    """The usual layout, in which every caption has its image's vector."""


class CaptionBatch(NamedTuple):
    tokens: np.ndarray
    vectors: np.ndarray


def write_data(folder: Path, num_images: int) -> Data:
    """Writes 5 to 50 captions for each image, in the same order in both layouts."""
    random = np.random.default_rng(0)
    vectors = random.random((num_images, WIDTH), np.float32)
    image_of = np.repeat(np.arange(num_images), random.integers(5, 51, num_images))
    random.shuffle(image_of)
    tokens = random.integers(0, 30_000, (len(image_of), WORDS))
    keys = [b"image-%06d" % image for image in range(num_images)]
    data = Data(*(str(folder / name) for name in ("captions", "images", "copied")))
    folder.mkdir(parents=True, exist_ok=True)
    with tfr.Writer(data.captions, sync=False, overwrite=True) as writer:
        writer.write_batch(
            tfr.encode_examples({"tokens": tokens, "key": [keys[i] for i in image_of]})
        )
    with tfr.Writer(data.images, sync=False, overwrite=True) as writer:
        writer.write_batch(tfr.encode_examples({"key": keys, "vector": vectors}))
    with tfr.Writer(data.copied, sync=False, overwrite=True) as writer:
        for row in np.array_split(np.arange(len(image_of)), len(image_of) // 512 + 1):
            writer.write_batch(
                tfr.encode_examples({"tokens": tokens[row], "vector": vectors[image_of[row]]})
            )
    return data


def copied_batches(data: Data) -> Iterator[CaptionBatch]:
    for batch in tfr.Loader(data.copied, BATCH_SIZE, features={**TOKENS, **VECTOR}, seed=SEED):
        yield CaptionBatch(batch["tokens"], batch["vector"])


def looked_up_batches(data: Data) -> Iterator[CaptionBatch]:
    with tfr.Reader(data.images) as images:
        record_of = _records_by_key(images)
        for batch in tfr.Loader(data.captions, BATCH_SIZE, features={**TOKENS, **KEY}, seed=SEED):
            records = np.array([record_of[key] for key in batch["key"].tolist()])
            # An image that occurs twice in a batch is read once.
            needed, rows = np.unique(records, return_inverse=True)
            vectors = tfr.parse_example(images.read(needed), VECTOR)["vector"]
            yield CaptionBatch(batch["tokens"], vectors[rows])


def _records_by_key(images: tfr.Reader) -> dict[bytes, int]:
    loader = tfr.Loader(images, 1024, features=KEY, shuffle=False)
    return {
        key: int(record)
        for batch in loader
        for key, record in zip(batch["key"].tolist(), batch.indices, strict=True)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        data = write_data(Path(temporary) / "data", options.images)
        pairs = list(zip(copied_batches(data), looked_up_batches(data), strict=True))
        same = all(
            np.array_equal(one.tokens, other.tokens) and np.array_equal(one.vectors, other.vectors)
            for one, other in pairs
        )
        size = {name: Path(path).stat().st_size for name, path in data._asdict().items()}
        referring = size["captions"] + size["images"]
        print(f"{len(pairs)} batches, the same: {same}")
        print(
            f"copied {size['copied']:,} bytes, referring {referring:,}: "
            f"{size['copied'] / referring:.1f} times fewer"
        )


if __name__ == "__main__":
    main()
