#!/usr/bin/env python3
"""make_seeds FOLDER: writes the fuzzers' seeds to FOLDER/<fuzzer>/, a few small files each."""

import struct
import sys
from pathlib import Path


def framing_seeds() -> dict[str, bytes]:
    def verb(kind: int, count: int, data: bytes = b"") -> bytes:
        return bytes([count << 3 | kind]) + data

    good = verb(0, 5, b"hello") + verb(0, 0) + verb(0, 20, bytes(range(20)))
    return {
        "good": good,
        "bad-header": good + verb(2, 9, b"123456789") + good,
        "bad-payload": good + verb(1, 3, b"abc") + good,
        "torn": good + verb(6, 7),
        "huge-length": good + verb(3, 8, b"\xff" * 8) + good,
        "stray": good + verb(4, 5, b"stray") + good,
        "nested": good + verb(5, 3) + verb(7, 0) + verb(2, 2, b"xy") + verb(7, 1),
    }


def index_seed(offsets: list[int], damage: list[tuple[int, ...]]) -> bytes:
    """An entry, damage, and a block of offsets above a level line. The fuzzer fills in checksums
    and the shard's facts.
    """
    entries = b"".join(struct.pack("<5Q", *each) for each in damage)
    width = max(offsets).bit_length()
    bits = sum(offset << width * i for i, offset in enumerate(offsets))
    residuals = bits.to_bytes((len(offsets) * width + 63) // 64 * 8, "little") + bytes(8)
    section = bytes(8) + struct.pack("<QII", width, 0, 0) + residuals
    places = (128 + len(entries), len(section), 128, len(entries))
    entry = bytes(56) + struct.pack("<5Q", len(offsets) - 1, *places)
    return entry.ljust(128, b"\0") + entries + section


def index_seeds() -> dict[str, bytes]:
    # The fuzzer's shard: frames of 16, 21, 56 (with a bad header), 21 and 116 bytes, then 7 bytes.
    gap = (37, 93, 2, 1, 1)
    tail = (230, 237, 4, 1, 2)
    as_damage = [(b, e, n, lost, kind) for b, e, n, lost, kind in (gap, tail)]
    return {
        "right": index_seed([0, 16, 93, 114, 230], as_damage),
        "empty": index_seed([0], []),
        "no-damage": index_seed([0, 16, 37], []),
        "wrong": index_seed([0, 16, 40, 41, 300], []),
    }


def number(value: int) -> bytes:
    return struct.pack("<Q", value % 2**64)


def string(value: bytes) -> bytes:
    return number(len(value)) + value


def description_seeds() -> dict[str, bytes]:
    """Bodies of plans and feature schemas; the fuzzer puts their heads in front."""

    def order(name: bytes, *numbers: int) -> bytes:
        return number(1) + string(name) + b"".join(map(number, numbers))

    def plan(order: bytes, batch_size: int = 2) -> bytes:
        return order + b"".join(map(number, (5, batch_size, 1, 3))) + string(b"pad") + number(2)

    def feature(layout: bytes, kind: bytes, shape: tuple[int, ...], default: bytes) -> bytes:
        sizes = number(len(shape)) + b"".join(map(number, shape))
        words = b"".join(map(string, (b"name", b"example", layout, kind)))
        return words + sizes + number(0) * 3 + default

    def sequence(order: bytes, *calls: int) -> bytes:
        every_second = b"".join(map(number, (1, 2, 9)))
        return every_second + order + every_second[:16] + number(4) + b"".join(map(number, calls))

    def mixture(arrangement: bytes, *numbers: int) -> bytes:
        sources = order(b"exact", 5) + order(b"none", 3)
        return order(b"mixture", 2) + sources + string(arrangement) + b"".join(map(number, numbers))

    chosen = order(b"chosen") + order(b"exact", 3) + b"".join(map(number, (9, 3, 1, 1, 8)))
    strings = number(1) + string(b"") + number(1) + string(b"text")
    return {
        "given": plan(order(b"none", 10)),
        "exact": plan(order(b"exact", 10)),
        "blocks": plan(order(b"blocks", 100, 4, 2, 3)),
        "chosen": plan(chosen),
        "weighted": plan(
            order(b"weighted") + order(b"exact", 9) + b"".join(map(number, (3, 5, 0, 1)))
        ),
        # The first record, records, no indices, one table without a file, its hash; then options.
        "by tokens": plan(order(b"by tokens", 0, 5, 0, 0, 1, 0, 9, 28), 1),
        "packed": plan(order(b"packed", 0, 5, 0, 0, 1, 0, 9, 1, 8) + string(b"split")),
        # Not a description, but lengths: budgets, their tokens, what is too long; then lengths.
        "one budget": b"\0\x0f\0\2" + bytes(range(0, 60, 3)),
        "two budgets": b"\1\x0f\x1f\1" + bytes(range(40)),
        # Repeats, length, rows of a unit; then segments: epoch, position, weights.
        "permuted": plan(mixture(b"permuted", 1, 20, 1, 2, 0, 0, 2, 3, 1, 2, 7, 2, 0, 9)),
        "spread": plan(mixture(b"spread", 0, 5, 1, 1, 0, 0, 2, 2, 1)),
        "units": plan(mixture(b"spread", 1, 20, 5, 1, 0, 0, 2, 2, 1)),
        "once": sequence(order(b"none", 9), 0, 1, 0, 0, 0),
        "repeated": sequence(order(b"exact", 9), 1, -1, 3, 0, 0),
        "batched": sequence(order(b"blocks", 9, 2, 2, 2), 1, 5, 3, 1, 1),
        "fixed": number(1) + feature(b"fixed", b"bytes", (1,), strings),
        "padded": number(1) + feature(b"padded", b"int64", (2,), number(0)),
        "ragged": number(1) + feature(b"ragged", b"float32", (), number(0)),
        "sparse": number(1) + feature(b"sparse", b"bool", (), number(0)),
    }


def steps_seeds() -> dict[str, bytes]:
    """Episodes, each after the number of changes of its step file and the changes."""

    def field(tag: int, content: bytes) -> bytes:
        return bytes([tag, len(content)]) + content

    def entry(name: bytes, values: bytes) -> bytes:
        return field(10, field(10, name) + field(18, values))

    strings = entry(b"s/b", field(10, field(10, b"one") + field(10, b"") + field(10, b"three")))
    floats = entry(b"s/f", field(18, field(10, bytes(range(24)))))
    ints = entry(b"s/i", field(26, b"\x08\x01\x08\x80\x02\x08\x03"))
    lengths = entry(b"s/r/ragged_row_lengths_0", field(26, field(10, b"\x02\x00\x01")))
    values = entry(b"s/r/ragged_flat_values", field(26, field(10, b"\x07\x08\x09")))
    whole = field(10, strings + floats + ints + entry(b"id", field(10, field(10, b"x"))))
    return {
        "whole": b"\0" + whole,
        "ragged": b"\0" + field(10, lengths + values),
        "changed": b"\2" + struct.pack("<HBHB", 200, 7, 500, 255) + whole,
    }


GOLDEN = Path(__file__).parent.parent / "golden"


def image_seeds() -> dict[str, bytes]:
    """Each picture after another: as it is, and a JPEG with tables that become comments."""
    paths = sorted((GOLDEN / "images").iterdir())
    seeds = {}
    for number, path in enumerate(paths):
        before, image = paths[number - 1].read_bytes(), path.read_bytes()
        for how, tables in enumerate((b"", b"\xff\xc4", b"\xff\xdb")):
            kind = bytes([2 + 32 * how, 7]) + struct.pack("<H", len(before))
            picture = image.replace(tables, b"\xff\xfe") if tables else image
            seeds[f"{path.name}.{how}"] = kind + before + picture
    return seeds


def resize_seeds() -> dict[str, bytes]:
    def sizes(*sides: int) -> bytes:
        return b"".join(struct.pack("<HB", side - 1, 0) for side in sides)

    rare = b"\xff".ljust(300, b"\0")
    return {
        "area": b"\x02" + sizes(250, 250, 1, 1) + b"\0\0\0" + rare,
        "planes": b"\x0a" + sizes(2, 30000, 1, 1) + b"\0\0\0" + rare,
        "bilinear": b"\x01" + sizes(1, 60000, 1, 43) + b"\0\0\0\xff\0",
        "larger": b"\x74" + sizes(9, 7, 64, 50) + b"\3\4\5" + bytes(range(256)),
    }


def message_seeds() -> dict[str, bytes]:
    """Messages with the fields of fuzz_message.cpp. The first byte cuts the records."""

    def field(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2, len(data)]) + data

    def entry(key: bytes, value: bytes) -> bytes:
        return field(1, key) + field(2, value)

    parts = field(2, field(1, bytes(8)) + field(2, b"bytes")) + b"\x1b\x0a\x01t\x1c"
    items = field(1, b"\x08\x05" + parts) + field(1, b"")
    numbers = field(5, b"\x08\x03\x10\x01") + field(5, b"\x08\x03\x10\x07")
    inner = field(1, b"\x01\x02") + b"\x08\x07" + numbers
    maps = field(4, entry(b"a", inner)) + field(4, entry(b"b", b"")) + field(4, entry(b"a", inner))
    oneof = field(8, maps + b"\x0d" + bytes(4)) + b"\x30\x01" + field(7, b"text")
    lists = field(9, bytes(16)) + field(10, b"\0\1\x05") + b"\x58\x01" + field(13, b"\x7f" * 40)
    return {
        "items": b"\0" + items * 2,
        "maps": b"\0" + maps + numbers,
        "oneof": b"\0" + oneof + field(8, b"\x0d" + bytes(4)),
        "lists": b"\0" + lists + field(12, b"s"),
    }


def seeds_of_all() -> dict[str, dict[str, bytes]]:
    framing = {name: bytes([0, 7, 0]) + seed for name, seed in framing_seeds().items()}
    # Four times 2**62 bytes; once 2**45.
    huge = {f"huge-{how}": bytes([2, 7, how]) + framing_seeds()["good"] for how in (107, 1)}
    folder_index = (GOLDEN / "folder.2.index").read_bytes()
    return {
        "fuzz_message": message_seeds(),
        "fuzz_resize": resize_seeds(),
        "fuzz_image": image_seeds(),
        "fuzz_steps": steps_seeds(),
        "fuzz_framing": framing | huge,
        "fuzz_descriptions": description_seeds(),
        "fuzz_folder_index": {f"golden-{how}": bytes([how]) + folder_index for how in (0, 15, 47)},
        "fuzz_index": {
            f"{name}-{how}": bytes([how, 0]) + seed
            for how in (0, 63, 127)
            for name, seed in index_seeds().items()
        },
    }


def main() -> None:
    for fuzzer, seeds in seeds_of_all().items():
        folder = Path(sys.argv[1]) / fuzzer
        folder.mkdir(parents=True, exist_ok=True)
        for name, seed in seeds.items():
            (folder / name).write_bytes(seed)


main()
