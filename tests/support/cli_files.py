"""Shards of Examples for the tests of the command line, and ways to damage the shards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from tfrecord_model import rested
from tfrfast.cli import main
from tfrfast.reader import Location


def run(*arguments: str) -> int:
    return main(list(arguments))


def write_examples(folder: Path) -> list[str]:
    """Two shards of ten Examples."""
    folder.mkdir(exist_ok=True)
    names = []
    for shard in range(2):
        path = folder / f"train-{shard}"
        with tfr.Writer(path, index=False) as writer:
            for number in range(10):
                writer.write(
                    tfr.encode_example(
                        {
                            "label": shard * 10 + number,
                            "weights": np.full(3, 0.5, np.float32),
                            "name": b"number %d" % number,
                            "raw": bytes([255, number]),
                        }
                    )
                )
        names.append(rested(path))
    return names


def run_shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Returns the exit code, and what was printed on stdout and stderr."""
    status = run(*map(str, arguments))
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def damage(path: str, record: int, byte: int = 12) -> Location:
    """Flips a bit in the record's frame: by default in its payload, in its length with byte 0."""
    with tfr.Reader(path, index="memory") as reader:
        place = reader.locate(record)
    data = bytearray(Path(path).read_bytes())
    data[place.offset + byte] ^= 1
    Path(path).write_bytes(data)
    return place
