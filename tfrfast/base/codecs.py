"""The kinds of compression that the core's table lists."""

from __future__ import annotations

from typing import NamedTuple

from tfrfast import _native


class Codec(NamedTuple):
    name: str
    code: int
    """The number in index files and graphs; 0 stands for no compression."""
    window_bits: int
    """zlib's `wbits` for this wrapper with the largest window."""
    written_in_members: bool
    """True if files consist of members that can be decoded separately."""


CODECS = {codec.name: codec for codec in map(Codec._make, _native.codecs())}
