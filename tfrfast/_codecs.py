"""The ways in which a shard may be compressed, as the core's table lists them."""

from __future__ import annotations

from typing import NamedTuple

from tfrfast import _native


class Codec(NamedTuple):
    name: str
    code: int
    """In index files and in graphs; 0 stands for none."""
    window_bits: int
    """What zlib calls the wrapper, with the largest window."""
    written_in_members: bool
    """A file may consist of many members, so that each can be decoded without those before it."""


CODECS = {codec.name: codec for codec in map(Codec._make, _native.codecs())}
