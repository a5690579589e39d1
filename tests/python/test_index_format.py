"""Decodes index files by docs/index-format.md alone."""

import gzip
import os
import random
import struct
from pathlib import Path
from typing import NamedTuple

import pytest

from cached_indexes import cached_index
from tfrecord_model import crc32c, write_shard

GOLDEN = Path(__file__).parent.parent / "golden"


class Decoded(NamedTuple):
    offsets: list[int]
    damage: list[tuple[int, ...]]
    widths: list[int]
    spans: list[tuple[int, ...]]
    windows: list[bytes]
    samples_crc: int | None


def section_of(entry: bytes, at: int, within: bytes) -> bytes:
    begin, size = struct.unpack_from("<QQ", entry, at)
    assert begin % 8 == 0
    assert begin + size <= len(within)
    return within[begin : begin + size]


def offsets_of(section: bytes, count: int, crc: int) -> tuple[list[int], list[int]]:
    pages = -(-count // 4096)
    blocks = -(-count // 128)
    blocks_at = (4 * pages + 7) // 8 * 8
    assert crc32c(section[:blocks_at]) == crc
    residuals_at = blocks_at + 16 * blocks
    residuals = section[residuals_at:]
    offsets, widths, ends = [], [], [0]
    for number in range(blocks):
        head = section[blocks_at + 16 * number :][:16]
        width, base = head[0], int.from_bytes(head[1:8], "little", signed=True)
        slope, at = struct.unpack_from("<II", head, 8)
        assert width <= 57 or width == 64
        assert 16 * at == ends[-1]
        of_block = min(128, count - 128 * number)
        size = (of_block * width + 63) // 64 * 8
        bits = int.from_bytes(residuals[16 * at : 16 * at + size], "little")
        for j in range(of_block):
            residual = bits >> j * width & ((1 << width) - 1)
            offsets.append(base + slope * j // 256 + residual)
        assert bits >> of_block * width == 0
        widths.append(width)
        ends.append(16 * at + size)
    assert residuals[ends[-1] :] == bytes(8)
    ends[-1] += 8
    for page in range(pages):
        first, end = 32 * page, min(32 * page + 32, blocks)
        body = section[blocks_at + 16 * first : blocks_at + 16 * end]
        body += residuals[ends[first] : ends[end]]
        assert struct.unpack_from("<I", section, 4 * page) == (crc32c(body),)
    return offsets, widths


def decode_shard(entry: bytes, sections: bytes) -> Decoded:
    (records,) = struct.unpack_from("<Q", entry, 56)
    offsets_crc, damage_crc, seek_crc, samples_crc = struct.unpack_from("<4I", entry, 112)
    has_samples = struct.unpack_from("<I", entry, 44)[0] & 4
    assert has_samples or samples_crc == 0
    offsets, widths = offsets_of(section_of(entry, 64, sections), records + 1, offsets_crc)
    damage = section_of(entry, 80, sections)
    assert crc32c(damage) == damage_crc
    spans, windows = [], []
    seek = section_of(entry, 96, sections)
    if seek:
        (count,) = struct.unpack_from("<Q", seek)
        assert crc32c(seek[: 16 + 48 * count]) == seek_crc
        spans = list(struct.iter_unpack("<3Q4IQ", seek[16 : 16 + 48 * count]))
        for _, _, at, size, crc, *_ in spans:
            windows.append(seek[at : at + size])
            assert crc32c(windows[-1]) == crc
    listed = list(struct.iter_unpack("<5Q", damage))
    samples = samples_crc if has_samples else None
    return Decoded(offsets, listed, widths, spans, windows, samples)


def decode_folder(index: bytes, of: int = 0) -> dict[str, Decoded]:
    """`of` is the data folder in the entries."""
    assert index[:16] == b"TFRFSET\n" + struct.pack("<II", 2, 0)
    assert struct.unpack_from("<I", index, 60) == (crc32c(index[:60]),)
    end, at, parts, first_shards = struct.unpack_from("<4Q", index, 16)
    assert index[48:60] == bytes(12)
    assert end == len(index)
    shards: dict[str, Decoded] = {}
    for number in reversed(range(parts)):
        size, previous, count, directory_bytes = struct.unpack_from("<4Q", index, at)
        part = index[at : at + size]
        assert at + size == end
        assert struct.unpack_from("<I", part, 36) == (crc32c(part[:36]),)
        directory = part[40 : 40 + directory_bytes]
        assert struct.unpack_from("<I", part, 32) == (crc32c(directory),)
        assert number > 0 or (previous, at, count) == (0, 64, first_shards)
        decoded = decode_part(part, directory, count, of)
        shards = decoded | shards
        at, end = previous, at
    return dict(sorted(shards.items()))


def decode_cached(shard: str | Path) -> Decoded:
    folder = os.fsencode(os.path.realpath(Path(shard).parent))
    index = cached_index(shard).read_bytes()
    return decode_folder(index, fnv1a(folder))[Path(shard).name]


def fnv1a(text: bytes) -> int:
    found = 0xCBF29CE484222325
    for byte in text:
        found = (found ^ byte) * 0x100000001B3 % 2**64
    return found


def decode_part(part: bytes, directory: bytes, count: int, of: int) -> dict[str, Decoded]:
    names = directory[160 * count :]
    shards: dict[str, Decoded] = {}
    end = 40 + len(directory)
    for number in range(count):
        entry = directory[160 * number : 160 * number + 160]
        data, name_at, name_bytes = struct.unpack_from("<QII", entry, 144)
        name = names[name_at : name_at + name_bytes].decode()
        assert data == of
        assert not shards or name > max(shards)
        begin, sections_bytes = struct.unpack_from("<QQ", entry, 128)
        assert begin == end
        end = (begin + sections_bytes + 7) // 8 * 8
        shards[name] = decode_shard(entry, part[begin : begin + sections_bytes])
    assert end == len(part)
    return shards


def offsets_in(shard: bytes) -> list[int]:
    offsets = [0]
    while offsets[-1] < len(shard):
        offsets.append(offsets[-1] + 16 + struct.unpack_from("<Q", shard, offsets[-1])[0])
    return offsets


def samples_crc_of(shard: bytes, offsets: list[int]) -> int:
    records = len(offsets) - 1
    stride = 1
    while -(-records // stride) > 32:
        stride *= 2
    samples = b""
    for at in offsets[:-1:stride]:
        footer = at + 12 + struct.unpack_from("<Q", shard, at)[0]
        samples += shard[at : at + 12] + shard[footer : footer + 4]
    return crc32c(samples)


@pytest.mark.parametrize("lengths", ["one", "few", "many", "wide"])
@pytest.mark.parametrize("count", [0, 1, 127, 128, 5000])
def test_a_built_index_is_as_the_page_says(tmp_path: Path, lengths: str, count: int) -> None:
    rng = random.Random(count)
    length = {
        "one": lambda: 30,
        "few": lambda: rng.choice([0, 4]),
        "many": lambda: int(abs(rng.gauss(60, 20))),
        "wide": lambda: 200_000 if rng.random() < 0.002 else rng.randrange(10),
    }[lengths]
    shard = write_shard(tmp_path / "shard", [bytes(length()) for _ in range(count)])
    decoded = decode_cached(shard)
    assert decoded.offsets == offsets_in(Path(shard).read_bytes())
    assert decoded.samples_crc == samples_crc_of(Path(shard).read_bytes(), decoded.offsets)
    assert decoded.damage == decoded.spans == []
    if lengths == "one":
        assert set(decoded.widths) == {0}


def test_an_index_of_several_parts_is_as_the_page_says(tmp_path: Path) -> None:
    for name, count in [("b", 5), ("a", 300), ("b", 200)]:
        shard = write_shard(tmp_path / name, [bytes(number % 7) for number in range(count)])
        index = cached_index(shard).read_bytes()
    assert struct.unpack_from("<Q", index, 32) == (3,)
    decoded = decode_folder(index, fnv1a(os.fsencode(os.path.realpath(tmp_path))))
    assert list(decoded) == ["a", "b"]
    for name, each in decoded.items():
        assert each.offsets == offsets_in((tmp_path / name).read_bytes())


def test_the_golden_index_is_as_the_page_says() -> None:
    plain = gzip.decompress((GOLDEN / "shard.gz").read_bytes())
    offsets = offsets_in(plain)
    decoded = decode_folder((GOLDEN / "folder.2.index").read_bytes())
    assert list(decoded) == ["damaged", "giants", "gzipped", "plain", "sampled"]
    assert decoded["plain"].samples_crc is None
    assert decoded["sampled"].samples_crc == samples_crc_of(plain, offsets)
    assert decoded["sampled"].offsets == offsets
    assert decoded["plain"].offsets == offsets
    assert decoded["gzipped"].offsets == offsets
    assert decoded["damaged"].offsets == offsets[:100] + offsets[101:]
    assert decoded["damaged"].damage == [
        (offsets[100], offsets[101], 100, 1, 1),
        (len(plain), len(plain) + 4, 299, 1, 2),
    ]
    assert decoded["giants"].widths[0] == 0
    assert decoded["giants"].widths[-1] == 64
    assert decoded["giants"].offsets[-1] == decoded["giants"].offsets[-2] + 2**58
