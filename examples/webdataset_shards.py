"""Turns tar files in WebDataset's layout into TFRecord shards, and reads an exact epoch of them.

python examples/webdataset_shards.py [--samples 5000] [--tars 8] [--shards 4]
"""

from __future__ import annotations

import argparse
import glob
import io
import itertools
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import tfrfast as tfr

FEATURES = {
    "key": tfr.FixedLen((), "bytes"),
    "png": tfr.FixedLen((), "bytes"),
    "cls": tfr.FixedLen((), "int64"),
}
# Converts the files of a sample to features, by extension. Other files stay bytes.
_READ = {"cls": int}


def write_tars(folder: Path, samples: int, tars: int) -> str:
    """Writes the files of sample i, `<i>.png` and `<i>.cls`. Returns a pattern for all tars."""
    folder.mkdir(parents=True)
    for number, numbers in enumerate(np.array_split(np.arange(samples), tars)):
        with tarfile.open(folder / f"train-{number:04d}.tar", "w") as tar:
            for i in numbers:
                for extension, content in (("png", b"picture %d" % i), ("cls", b"%d" % (i % 10))):
                    member = tarfile.TarInfo(f"train/{i:07d}.{extension}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    return str(folder / "train-*.tar")


def samples_of(path: str) -> Iterator[dict[str, object]]:
    """Yields the samples of a tar file. Consecutive members belong to one sample if their names are
    equal up to the first dot after the last slash.
    """
    with tarfile.open(path) as tar:
        members = (member for member in tar if member.isfile())
        for key, files in itertools.groupby(members, lambda member: _split(member.name)[0]):
            sample: dict[str, object] = {"key": key.encode()}
            for member in files:
                extension, file = _split(member.name)[1], tar.extractfile(member)
                assert file is not None
                sample[extension] = _READ.get(extension, bytes)(file.read())
            yield sample


def _split(name: str) -> tuple[str, str]:
    folder, slash, file = name.rpartition("/")
    key, _, extension = file.partition(".")
    return folder + slash + key, extension.lower()


def convert(pattern: str, prefix: Path, num_shards: int) -> list[str]:
    """Deals the samples to shards, each as a tf.train.Example."""
    with tfr.ShardedWriter(prefix, num_shards=num_shards) as writer:
        for path in sorted(glob.glob(pattern)):
            for sample in samples_of(path):
                writer.write_example(sample)
    return list(map(str, writer.paths))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--tars", type=int, default=8)
    parser.add_argument("--shards", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        pattern = write_tars(Path(temporary) / "tars", options.samples, options.tars)
        began = time.perf_counter()
        shards = convert(pattern, Path(temporary) / "records" / "train", options.shards)
        print(f"{options.samples:,} samples written to {len(shards)} shards in ", end="")
        print(f"{time.perf_counter() - began:.1f} s")
        keys = [key for batch in tfr.Loader(shards, 256, features=FEATURES) for key in batch["key"]]
        print(f"an epoch has {len(keys):,} samples, {len(set(keys)):,} of them different")


if __name__ == "__main__":
    main()
