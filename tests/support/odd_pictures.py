"""Odd JPEGs and PNGs, which are decoded after each other and compared with each decoded alone."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path
from typing import Any

import tfrfast as tfr
from image_records import GOLDEN

_HUFFMAN, _QUANTA, _COMMENT = b"\xff\xc4", b"\xff\xdb", b"\xff\xfe"


def with_other_quanta(jpeg: bytes) -> bytes:
    """The same with three times the contrast: a picture whose tables must not reach another."""
    at = jpeg.index(_QUANTA) + 5
    quanta = bytes(min(255, value * 3) for value in jpeg[at : at + 64])
    return jpeg[:at] + quanta + jpeg[at + 64 :]


def chunk(kind: bytes, content: bytes) -> bytes:
    body = kind + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def with_chunk(png: bytes, kind: bytes, content: bytes, *, last: bool = False) -> bytes:
    """Adds a chunk behind the header, or before the end."""
    at = len(png) - 12 if last else 33
    return png[:at] + chunk(kind, content) + png[at:]


def exif(orientation: int) -> bytes:
    return b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0)


def odd_pictures() -> dict[str, bytes]:
    pictures: dict[str, bytes] = {"nothing": b"", "text": b"no picture at all"}
    for path in sorted(GOLDEN.iterdir()):
        whole = path.read_bytes()
        name = path.name
        odd = {"": whole, "half of ": whole[: len(whole) // 2], "begin of ": whole[:100]}
        if name.endswith(".jpg"):
            # A frame of Motion JPEG has no Huffman tables: they are the JPEG standard's.
            odd["no Huffman tables in "] = whole.replace(_HUFFMAN, _COMMENT)
            odd["no quanta in "] = whole.replace(_QUANTA, _COMMENT)
            odd["other quanta in "] = with_other_quanta(whole)
        else:
            odd["EXIF in "] = with_chunk(whole, b"eXIf", exif(6), last=len(name) % 2 == 0)
            odd["gamma in "] = with_chunk(whole, b"gAMA", struct.pack(">I", 45455))
            odd["a flipped bit in "] = whole[:-20] + bytes([whole[-20] ^ 4]) + whole[-19:]
        pictures |= {kind + name: picture for kind, picture in odd.items()}
    return pictures


def differing_pictures(folder: Path, count: int, threads: int, seed: int) -> list[str]:
    """Decodes `count` odd pictures after each other in random order, in several threads. Returns
    those that differ from the picture decoded alone, with the picture before them.
    """
    chosen = random.Random(seed)
    options: dict[str, Any] = {
        "size": chosen.choice([(36, 52), (12, 10)]),
        "channels": chosen.choice([1, 3]),
        "upright": True,
        "damaged": "grey",
        "resize": chosen.choice(["area", "bilinear"]),
        "layout": chosen.choice(["HWC", "CHW"]),
    }
    pictures = odd_pictures()
    alone = {}
    for name, picture in pictures.items():
        # A new spec has a decoder of its own, which has decoded no picture before.
        features = {"x": tfr.Image(**options)}
        batch = tfr.parse_example([tfr.encode_example({"x": picture})], features)
        alone[name] = (batch["x"][0].tobytes(), batch.crops["x"]["damaged"][0])
    names = chosen.choices(list(pictures), k=count)
    path = folder / f"pictures-{seed}.tfrecord"
    with tfr.Writer(path) as writer:
        for name in names:
            writer.write(tfr.encode_example({"x": pictures[name]}))
    loader = tfr.Loader(
        path, 50, features={"x": tfr.Image(**options)}, shuffle=False, threads=threads
    )
    found = []
    for batch in loader:
        for number, pixels, damaged in zip(
            batch.indices, batch["x"], batch.crops["x"]["damaged"], strict=True
        ):
            if (pixels.tobytes(), damaged) != alone[names[number]]:
                found.append(f"{names[number]}, after {names[max(number - 1, 0)]}")
    return found
