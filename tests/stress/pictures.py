"""Pictures: odd ones after each other have the pixels that they have alone in a new process, and
resized ones those of exact weights.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import numpy as np

import tfrfast as tfr
from scene import Scene, outcome
from truth import png, write
from whole_children import finish, started

GOLDEN = Path(__file__).parents[1] / "golden" / "images"
_TABLES = {0xDB, 0xC4, 0xDD}  # quantisation, Huffman, restart intervals
_EXIF = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0%c\0\0\0\0\0\0"


def _segments(jpeg: bytes) -> list[tuple[int, bytes]]:
    """Returns the segments before the first scan, by marker, and the rest."""
    found, at = [], 2
    while jpeg[at + 1] != 0xDA:
        length = int.from_bytes(jpeg[at + 2 : at + 4])
        found.append((jpeg[at + 1], jpeg[at : at + 2 + length]))
        at += 2 + length
    return [*found, (0xDA, jpeg[at:])]


def odd(chosen: random.Random, name: str) -> bytes:
    """Returns a picture, often without some of its tables, with a new EXIF, cut or damaged."""
    picture = (GOLDEN / name).read_bytes()
    if chosen.random() < 0.3:
        return picture
    if name.endswith(".jpg"):
        parts = _segments(picture)
        kind = chosen.choice(
            ["no Huffman", "no quantisation", "some tables", "EXIF", "cut", "flip"]
        )
        without = {"no Huffman": {0xC4}, "no quantisation": {0xDB}}.get(kind, set())
        if kind == "some tables":
            without = {marker for marker in _TABLES if chosen.random() < 0.5}
        parts = [each for each in parts if each[0] not in without]
        if kind == "EXIF":
            body = _EXIF % chosen.randrange(10)
            parts.insert(0, (0xE1, b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body))
        picture = picture[:2] + b"".join(part for _, part in parts)
        if kind not in ("cut", "flip"):
            return picture
    changed = bytearray(picture)
    if chosen.random() < 0.5:
        return bytes(changed[: chosen.randrange(len(changed))])
    changed[chosen.randrange(len(changed))] ^= 1 << chosen.randrange(8)
    return bytes(changed)


def after_each_other(scene: Scene) -> None:
    chosen = scene.chosen
    size = chosen.choice([None, (9, 13), (40, 30)])
    spec = tfr.Image(
        size,
        channels=chosen.choice([1, 3]),
        resize=chosen.choice(["bilinear", "area"]),
        dtype=chosen.choice(["uint8", "float32"]),
        layout=chosen.choice(["HWC", "CHW"]) if size else "HWC",
        upright=chosen.random() < 0.5,
        damaged="grey",
    )
    names = sorted(path.name for path in GOLDEN.iterdir())
    pictures = [odd(chosen, chosen.choice(names)) for _ in range(30)]
    alone = []
    for number, picture in enumerate(pictures):
        kept = scene.folder / f"alone-{number}"
        finish(
            started(lambda p=picture, k=kept: k.write_bytes(_decoded(p, spec)), scene.folder),
            scene.folder,
        )
        alone.append(kept.read_bytes())
    rows = [chosen.randrange(len(pictures)) for _ in range(chosen.choice([30, 300]))]
    for number, pixels in _pixels(scene, [pictures[row] for row in rows], spec) * 2:
        assert pixels == alone[rows[number]], f"record {number} has other pixels than alone: {spec}"


def exactly(scene: Scene) -> None:
    chosen = scene.chosen
    channels, kept = chosen.choice([(1, 1), (3, 3), (3, 1)])
    height, width = (chosen.choice([1, 2, 40, 300, 700, 4000]) for _ in range(2))
    if height * width > 200_000:
        height = 43
    size = tuple(chosen.choice([1, 2, 7, 43, 200]) for _ in range(2))
    spec = tfr.Image(
        size,
        channels=kept,
        resize=chosen.choice(["bilinear", "area"]),
        dtype=chosen.choice(["uint8", "float32"]),
        layout=chosen.choice(["HWC", "CHW"]),
    )
    scene.case = f"{height} x {width} x {channels}, {spec}"
    shape = (height, width, channels)
    random = np.random.default_rng(chosen.randrange(1 << 32))
    images = [random.integers(0, chosen.choice([2, 256]), shape, np.uint8) for _ in range(3)]
    images += [np.full(shape, chosen.randrange(256), np.uint8), np.zeros(shape, np.uint8)]
    images[-1][:, :, chosen.randrange(channels)] = 255
    said = _pixels(scene, [png(*shape, image.tobytes()) for image in images], spec)
    for number, pixels in said:
        found = np.frombuffer(pixels, spec.dtype).astype(float)
        found = found.reshape((kept, *size) if spec.layout == "CHW" else (*size, kept))
        found = np.moveaxis(found, 0, -1) if spec.layout == "CHW" else found
        image = images[number].astype(float)
        if kept < channels:
            image = image @ [[0.299], [0.587], [0.114]]  # of BT.601, as in JPEGs
        rows, columns = (_weights(*each, spec.resize) for each in zip(shape, size, strict=False))
        exact = np.einsum("ah,hwc,bw->abc", rows, image, columns, optimize=True)
        # One level, and one for the grey of a color.
        away = np.abs(found - exact).max()
        assert away <= 1.001 + (kept < channels), f"image {number} is {away:.1f} levels away"


def _weights(before: int, after: int, resize: str) -> Any:
    """Returns what each pixel before adds to each pixel after."""
    scale = before / after
    begin, pixel = np.arange(after)[:, None] * scale, np.arange(before)[None]
    if resize == "area":
        weights = np.minimum(begin + scale, pixel + 1) - np.maximum(begin, pixel)
    else:
        weights = 1 - abs(pixel + 0.5 - (begin + scale / 2)) / max(scale, 1)
    weights = np.maximum(weights, 0)
    return weights / weights.sum(1, keepdims=True)


def _pixels(scene: Scene, pictures: list[bytes], spec: tfr.Image) -> list[tuple[int, bytes]]:
    """Returns the number and the pixels of each picture, as the road decodes them."""
    scene.files = [scene.folder / "pictures"]
    write(scene.files[0], [tfr.encode_example({"picture": picture}) for picture in pictures])
    said = outcome(scene.open(picture=spec))
    assert said.error is None, f"{said.error!r}"
    assert sorted(number for number, _ in said.items) == list(range(len(pictures)))
    scene.counts.update(epochs=1, records=len(pictures))
    return said.items


def _decoded(picture: bytes, spec: tfr.Image) -> bytes:
    record = tfr.encode_example({"picture": picture})
    column = tfr.parse_example([record], {"picture": spec})["picture"]
    return np.ascontiguousarray(column[0]).tobytes()
