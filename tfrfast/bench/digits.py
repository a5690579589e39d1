"""Imitates handwriting: digits of 28 x 28 pixels, drawn from a 5 x 7 font, moved and smudged."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

SIDE = 28
_SCALE = 3  # pixels for each dot of the font

_FONT = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00010 00100 01000 11111",
    "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)
_GLYPHS = [
    np.kron([[float(dot) for dot in row] for row in glyph.split()], np.ones((_SCALE, _SCALE)))
    for glyph in _FONT
]


def draw_digit(random: Generator, digit: int) -> NDArray[np.float32]:
    """A picture with the digit at a random place, from 0 for white to 255 for black, with noise."""
    glyph = _GLYPHS[digit]
    height, width = glyph.shape
    top, left = random.integers(0, SIDE - height + 1), random.integers(0, SIDE - width + 1)
    picture = np.zeros((SIDE, SIDE))
    picture[top : top + height, left : left + width] = glyph * random.uniform(120, 250)
    picture += random.normal(0, 20, picture.shape)
    rounded: NDArray[np.float32] = picture.clip(0, 255).round().astype(np.float32)
    return rounded
