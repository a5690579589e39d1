"""Compresses bytes in all forms of GZIP and ZLIB files."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable


def deflated(data: bytes, compression: str, level: int = -1, strategy: int = 0) -> bytes:
    """Returns one member."""
    wbits = 31 if compression == "GZIP" else 15
    packer = zlib.compressobj(level, zlib.DEFLATED, wbits, 9, strategy)
    return packer.compress(data) + packer.flush()


def in_members(data: bytes, compression: str, member_bytes: int) -> bytes:
    """Returns many members, cut anywhere."""
    return b"".join(
        deflated(data[at : at + member_bytes], compression)
        for at in range(0, max(1, len(data)), member_bytes)
    )


def flushed(data: bytes, compression: str, piece_bytes: int) -> bytes:
    """Returns one member. Every piece ends like after `flush` of a writer."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31 if compression == "GZIP" else 15)
    pieces = [
        packer.compress(data[at : at + piece_bytes]) + packer.flush(zlib.Z_SYNC_FLUSH)
        for at in range(0, len(data), piece_bytes)
    ]
    return b"".join(pieces) + packer.flush()


def with_long_header(data: bytes) -> bytes:
    """Returns a GZIP member whose header has a name, a comment, an extra field and its own
    checksum.
    """
    header = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x05\0extra" + b"name\0" + b"a comment\0"
    header += (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little")
    return header + gzip.compress(data)[10:]


def one_block_of_zeros(count: int) -> bytes:
    """Returns GZIP data without a trailer: a deflate block with fixed codes, of `count` zeros or a few
    more.
    """
    match = "1100010100000"  # 258 bytes from one byte back
    # Eight matches fill 13 bytes. The block's header and its first literal come first.
    bits = "11000110000" + match * 8
    start, period = bits[:11], bits[11:]
    whole = start + period * 8
    as_bytes = [int(whole[i : i + 8][::-1], 2) for i in range(0, len(whole) - 7, 8)]
    header = b"\x1f\x8b\x08" + bytes(7)
    return header + bytes(as_bytes[:2]) + bytes(as_bytes[2:15]) * (count // (8 * 258) + 1)


Pack = Callable[[bytes], bytes]


def ways_to_pack(compression: str) -> dict[str, Pack]:
    ways: dict[str, Pack] = {
        f"level {level}": lambda data, level=level: deflated(data, compression, level)
        for level in range(10)
    }
    ways["huffman only"] = lambda data: deflated(data, compression, strategy=zlib.Z_HUFFMAN_ONLY)
    ways["fixed codes"] = lambda data: deflated(data, compression, strategy=zlib.Z_FIXED)
    ways["large members"] = lambda data: in_members(data, compression, 1 << 20)
    ways["odd members"] = lambda data: in_members(data, compression, 99_991)
    ways["flushed"] = lambda data: flushed(data, compression, 50_000)
    if compression == "GZIP":
        ways["long header"] = with_long_header
    return ways
