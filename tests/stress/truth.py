"""Shards whose records say what they are, and the verdict on the records that a road returned."""

from __future__ import annotations

import collections
import gzip
import random
import struct
import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tfrfast as tfr
from tfrecord_model import OVERHEAD, scan, shard_of


class CommandFailedError(Exception):
    """A command ended with exit code 2, and said why."""


@dataclass(frozen=True)
class Total:
    """What a road says that only counts records."""

    count: int


#: A row: its record's number, or None, and the record, its text, or its id.
Item = tuple["int | None", "bytes | int"]


def id_of(text: bytes) -> int:
    """Returns a number of 31 bits, which the beginning of the text determines."""
    version, shard, number = map(int, text.split(b" ", 3)[:3])
    return (1 << 30) + version * 10**8 + shard * 10**6 + number


def content_of(id: int, text: bytes) -> bytes:
    """Returns what a decoded row is judged by: the text, if the id belongs to it."""
    try:
        return text if id_of(text) == id else b"id %d beside %s" % (id, text)
    except ValueError:
        return text


def png(height: int, width: int, channels: int, pixels: bytes) -> bytes:
    """Returns a PNG of these pixels, grey or in color, and as good as not compressed."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    row = width * channels
    lines = b"".join(b"\0" + pixels[begin : begin + row] for begin in range(0, len(pixels), row))
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    data = chunk(b"IDAT", zlib.compress(lines, 0))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + data + chunk(b"IEND", b"")


@dataclass
class State:
    """What a shard holds at a time: the texts of its records, and the records themselves."""

    texts: list[bytes]
    records: list[bytes]
    #: The number of each record. Other numbers belong to damaged records.
    numbers: list[int]
    #: All records, with the damaged ones that have a number.
    count: int
    #: False if the shard is damaged or gone, so that reading all of it must be an error.
    is_whole: bool = True
    #: True if not all records can be expected, because nobody knows what is left.
    is_partial: bool = False
    _numbers_of: dict[bytes, list[int]] = field(default_factory=dict)

    def numbers_of(self, text: bytes) -> list[int]:
        if not self._numbers_of:
            for number, each in zip(self.numbers, self.texts, strict=True):
                self._numbers_of.setdefault(each, []).append(number)
        return self._numbers_of.get(text, [])

    @staticmethod
    def of(texts: Sequence[bytes], has_pictures: bool) -> State:
        records = []
        for text in texts:
            example: dict[str, Any] = {"id": id_of(text), "text": text}
            if has_pictures:  # its pixels are the text
                example["picture"] = png(1, len(text), 1, text)
            records.append(tfr.encode_example(example))
        return State(list(texts), records, list(range(len(texts))), len(texts))

    def damaged(self, data: bytes) -> State:
        """Returns what a model finds in this state's damaged bytes."""
        frames, damage = scan(data)
        text_of = dict(zip(self.records, self.texts, strict=True))
        good = [number for number, each in enumerate(frames) if each.payload_is_good]
        records = [frames[number].payload for number in good]
        texts = [text_of.get(record, record) for record in records]
        is_whole = not damage and len(good) == len(frames)
        return State(texts, records, good, len(frames), is_whole)


def gone() -> State:
    return State([], [], [], 0, is_whole=False)


def write(path: Path, records: Iterable[bytes], compression: str | None = None) -> None:
    data = shard_of(records)
    if compression is not None:
        data = (zlib if compression == "ZLIB" else gzip).compress(data)
    path.write_bytes(data)


def some_texts(chosen: random.Random, shard: int, version: int = 0, most: int = 400) -> list[bytes]:
    """Returns texts with their version, shard and number, all of one length or of many."""
    count = min(most, chosen.choice([0, 1, 2, 50, 200, 400]))
    same = chosen.random() < 0.5
    longest = chosen.choice([0, 20, 200, 3000])
    length = chosen.randrange(longest + 1)
    return [
        b"%d %d %06d " % (version, shard, number)
        + chosen.randbytes(length if same else chosen.randrange(longest + 1))
        for number in range(count)
    ]


class Truth:
    """For each shard, the states that it may be in. An epoch has to return one of them whole."""

    def __init__(self, shards: Sequence[Sequence[State]], in_place: Iterable[int] = ()) -> None:
        self.shards = [list(states) for states in shards]
        #: Shards that were rewritten in place: each byte is of one state or of another.
        self._in_place = set(in_place)
        self._texts: dict[bytes | int, bytes] = {}
        self._shards: dict[bytes, int] = {}
        for shard, states in enumerate(self.shards):
            for state in states:
                for text, record in zip(state.texts, state.records, strict=True):
                    self._texts |= dict.fromkeys([text, record, *_id_if_any(text)], text)
                    self._shards[text] = shard

    def judge(self, items: Iterable[Item | Total], error: object, *, in_order: bool) -> None:
        """Checks what a road returned before it ended, or before the error."""
        items = list(items)
        ends = error is None
        for shard, states in enumerate(self.shards):
            assert not ends or any(each.is_whole for each in states), f"shard {shard}: no error"
        if items and isinstance(items[0], Total):
            totals = self._totals()
            assert not ends or items[0].count in totals, f"{items[0].count} is none of {totals}"
            return
        seen: list[list[bytes]] = [[] for _ in self.shards]
        last = 0
        for number, content in items:
            shard, text = self.check_one(number, content)
            assert not in_order or shard >= last, f"shard {shard} comes after shard {last}"
            last = shard
            seen[shard].append(text)
        for shard, states in enumerate(self.shards):
            if shard in self._in_place:
                self._check_bytes(shard, seen[shard], ends)
                continue
            assert any(_is_of(state, seen[shard], ends, in_order) for state in states), (
                f"shard {shard}: {len(seen[shard])} records, {'the end' if ends else repr(error)}, "
                f"instead of one of {[len(state.texts) for state in states]}"
            )

    def check_one(self, number: int | None, content: bytes | int) -> tuple[int, bytes]:
        """Checks that somebody wrote this, and under this number. Returns its shard and text."""
        assert content in self._texts, f"wrong bytes at {number}: {_shown(content)}"
        text = self._texts[content]
        shard = self._shards[text]
        if number is not None and shard not in self._in_place:
            may = self._numbers(shard, text)
            assert may is None or number in may, f"record {number} is called {may}"
        return shard, text

    def _totals(self) -> list[int]:
        counts = [{len(each.texts) for each in states} for states in self.shards]
        for shard, states in enumerate(self.shards):
            if shard in self._in_place or any(each.is_partial for each in states):
                counts[shard] = set(range(max(counts[shard]) + 2))
        totals = {0}
        for each in counts:
            totals = {before + more for before in totals for more in each}
        return sorted(totals)

    def _numbers(self, shard: int, text: bytes) -> list[int] | None:
        """Returns the numbers that this record may have; None if they cannot be known."""
        before = [{state.count for state in states} for states in self.shards[:shard]]
        are_partial = any(each.is_partial for states in self.shards for each in states)
        if are_partial or any(len(counts) > 1 for counts in before):
            return None
        start = sum(min(counts) for counts in before)
        return [start + number for state in self.shards[shard] for number in state.numbers_of(text)]

    def _check_bytes(self, shard: int, seen: list[bytes], ends: bool) -> None:
        """Checks that no record came twice and, without an error, that each byte was read once."""
        assert len({*seen}) == len(seen), f"shard {shard}: a record twice"
        if not ends:
            return
        begins_at: dict[int, list[tuple[int, bytes]]] = collections.defaultdict(list)
        sizes = set()
        for state in self.shards[shard]:
            at = 0
            for text, record in zip(state.texts, state.records, strict=True):
                end = at + len(record) + OVERHEAD
                begins_at[at].append((end, text))
                at = end
            sizes.add(at)
        left, at = {*seen}, 0
        while here := [each for each in begins_at[at] if each[1] in left]:
            at, text = here[0]
            left.remove(text)
        assert not left, f"shard {shard}: {len(left)} records do not follow each other"
        assert at in sizes, f"shard {shard}: read up to byte {at}"


def _is_of(state: State, seen: list[bytes], ends: bool, in_order: bool) -> bool:
    """Returns True if these are the state's records: all or, before an error, some."""
    if state.is_partial:
        return {*seen} <= {*state.texts}
    if ends and not state.is_whole:
        return False
    if in_order:
        left = iter(state.texts)
        return all(text in left for text in seen) and (not ends or len(seen) == len(state.texts))
    missing = collections.Counter(state.texts)
    missing.subtract(seen)
    return min(missing.values(), default=0) >= 0 and not (ends and any(missing.values()))


def _id_if_any(text: bytes) -> list[int]:
    try:
        return [id_of(text)]
    except ValueError:
        return []


def _shown(content: bytes | int) -> str:
    return f"id {content}" if isinstance(content, int) else repr(content[:60])


def is_clear(error: BaseException) -> bool:
    """Returns True for an error that users may have to catch, and that says something."""
    kinds: list[Any] = [tfr.RecordError, OSError, MemoryError, CommandFailedError]
    if "tensorflow" in sys.modules:
        kinds.append(sys.modules["tensorflow"].errors.OpError)
    if "pyarrow" in sys.modules:
        kinds.append(sys.modules["pyarrow"].lib.ArrowException)
    # A shard with damaged first bytes may look like another compression; an iteration of a
    # Loader ends with the next.
    told = ("compress", "has ended")
    is_told = isinstance(error, ValueError | RuntimeError) and any(
        each in str(error) for each in told
    )
    says_something = bool(str(error)) or isinstance(error, MemoryError)  # a text needs memory
    return says_something and (isinstance(error, tuple(kinds)) or is_told)
