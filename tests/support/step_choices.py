"""Episodes of steps whose camera and text are drawn from several, and what is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tfrfast as tfr
from reference_order import derive_key, siphash24

LENGTHS = (40, 3, 57)
COUNT = sum(LENGTHS)


def write_choices(path: Path, missing: int | None = None) -> str:
    first = 0
    with tfr.Writer(path) as writer:
        for episode, length in enumerate(LENGTHS):
            steps = np.arange(first, first + length)
            made: dict[str, Any] = {
                "steps/n": steps,
                "steps/text_2": [b"second %d" % step for step in steps],
                "meta/folder": f"folder {episode}",
                "meta/file": f"file_{'success' if episode != 1 else 'failure'}.h5",
            }
            for camera in range(2):
                if missing != camera:
                    made[f"steps/camera_{camera}"] = [b"%d:%d" % (camera, s) * 99 for s in steps]
            made["steps/text_0"] = [b"first %d" % s if s % 3 else b"" for s in steps]
            made["steps/text_1"] = [b"other %d" % s for s in steps]
            writer.write(tfr.encode_example(made))
            first += length
    return str(path)


CAMERA = tfr.OneOf("steps/camera_0", "steps/camera_1", seed=5)
TEXT = tfr.OneOf("steps/text_0", "steps/text_1", "steps/text_2", seed=5)
FEATURES = {
    "camera": tfr.FixedLen((), "bytes"),
    "text": tfr.FixedLen((), "bytes"),
    "steps/n": tfr.FixedLen((), "int64"),
}


def choosing(path: str | tfr.Reader, **windows: Any) -> tfr.Steps:
    return tfr.Steps(path, along="steps/", windows={"camera": CAMERA, "text": TEXT, **windows})


def drawn(seed: int, epoch: int, step: int, count: int) -> int:
    word = siphash24(derive_key(14, seed, epoch), [step, count])
    return word * count >> 64


def row_of(epoch: int, step: int) -> tuple[bytes, bytes]:
    camera, text = drawn(5, epoch, step, 2), drawn(5, epoch, step, 3)
    first = b"first %d" % step if step % 3 else b""
    return b"%d:%d" % (camera, step) * 99, [first, b"other %d" % step, b"second %d" % step][text]
