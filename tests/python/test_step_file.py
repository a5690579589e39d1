"""Reads step files by docs/step-file.md alone, and damages them."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
import wire_examples as wire
from tfrfast import _native


class Table:
    """The contents of a step file, in the terms of docs/step-file.md."""

    def __init__(self, data: bytes) -> None:
        assert data[:8] == b"tfr.step"
        version, flags, *counts = struct.unpack_from("<II8Q", data, 8)
        assert (version, flags) == (1, 0)
        self.records, self.steps, self.entries, self.fingerprint, _, described, at, size = counts
        assert data[80:92] == bytes(12)
        assert struct.unpack_from("<I", data, 92)[0] == _native.crc32c(
            data[96:at], _native.crc32c(data[:92])
        )
        assert at % 64 == 0
        assert len(data) == at + size
        self.body = data[at:]
        blocks = [self.body[begin : begin + (16 << 10)] for begin in range(0, size, 16 << 10)]
        crcs = struct.unpack_from(f"<{len(blocks)}I", data, 96 + described)
        assert list(crcs) == [_native.crc32c(block) for block in blocks]
        self._rest = data[96 : 96 + described]
        self.axis = self._take(self._number(4))
        self.rows_at, self.entries_at = self._number(8), self._number(8)
        self.features = [self._feature() for _ in range(self._number(4))]
        assert self._rest == b""
        self.first_steps = struct.unpack_from(f"<{self.records + 1}Q", self.body)
        width = 1 + len(self.features)
        self.rows = [
            struct.unpack_from(f"<{width}I", self.body, self.rows_at + 4 * width * row)
            for row in range(self.records + 1)
        ]

    def _take(self, count: int) -> bytes:
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken

    def _number(self, count: int) -> int:
        return int.from_bytes(self._take(count), "little")

    def _feature(self) -> dict[str, Any]:
        made: dict[str, Any] = {"name": self._take(self._number(4)).decode()}
        made.update((key, self._number(4)) for key in ("form", "values", "run", "width"))
        names = ("crcs_at", "crcs", "blocks_at", "residuals_at", "residual_bytes")
        made.update((key, self._number(8)) for key in names)
        return made

    def before(self, feature: dict[str, Any], step: int) -> int:
        """Unpacks an offset by docs/index-format.md."""
        block, inside = divmod(step, 128)
        packed, slope, unit = struct.unpack_from(
            "<qII", self.body, feature["blocks_at"] + 16 * block
        )
        base, bits = packed >> 8, packed & 0xFF
        at = feature["residuals_at"] + 16 * unit
        residuals = int.from_bytes(self.body[at : at + 16 * 128], "little")
        return base + (slope * inside >> 8) + (residuals >> bits * inside & (1 << bits) - 1)

    def piece(self, which: int, record: int, step: int) -> slice | None:
        """Returns the place of the piece in the record."""
        feature, base = self.features[which], self.rows[record][1 + which]
        if base == 0:
            return None
        if feature["width"]:
            begin = base + step * feature["width"]
            return slice(begin, begin + feature["width"])
        first = self.first_steps[record]
        begins = [
            self.before(feature, number) for number in (first, first + step, first + step + 1)
        ]
        return slice(base + begins[1] - begins[0], base + begins[2] - begins[0])

    def crc(self, which: int, record: int, run: int) -> int:
        feature, first = self.features[which], self.first_steps[record]
        length = feature["run"]
        place = first + run if length == 1 else first // length + record + run
        assert place < feature["crcs"]
        found: int = struct.unpack_from("<I", self.body, feature["crcs_at"] + 4 * place)[0]
        return found


LENGTHS = [3, 0, 200, 41, 1]


@pytest.fixture
def path(tmp_path: Path) -> str:
    rng = np.random.default_rng(5)
    name = str(tmp_path / "data")
    with tfr.Writer(name) as writer:
        for number, steps in enumerate(LENGTHS):
            made: dict[str, Any] = {
                "steps/image": [rng.bytes(int(n)) for n in rng.integers(300, 900, steps)],
                "steps/action": rng.random(10 * steps, np.float32),
                "steps/flag": rng.integers(0, 2, steps),
                "name": [b"episode %d" % number],
                "more": [number],
            }
            if number == 3:
                del made["steps/flag"]
            writer.write(tfr.encode_example({k: v for k, v in made.items() if len(v)}))
    return name


def test_the_page_describes_every_byte_that_is_needed(path: str) -> None:
    reader = tfr.Reader(path)
    steps = tfr.Steps(reader, along="steps/")
    table = Table(Path(tfr.build_steps(reader, along="steps/")).read_bytes())
    assert (table.records, table.steps, table.fingerprint) == (5, 245, reader._fingerprint)
    assert list(table.first_steps) == [0, 3, 3, 203, 244, 245]
    assert [each["name"] for each in table.features] == [
        "steps/action",
        "steps/flag",
        "steps/image",
    ]
    assert [each["run"] for each in table.features] == [16, 64, 1]
    for record, count in enumerate(LENGTHS):
        payload = reader[record]
        for which, feature in enumerate(table.features):
            pieces = [table.piece(which, record, step) for step in range(count)]
            for step, piece in enumerate(pieces):
                assert (piece is None) == (record == 3 and feature["name"] == "steps/flag")
                if piece is not None:
                    assert payload[piece] in steps[table.first_steps[record] + step]
            length = feature["run"]
            for run in range(0 if None in pieces else -(-count // length)):
                part = b"".join(payload[each] for each in pieces[run * length : (run + 1) * length])
                assert _native.crc32c(part) == table.crc(which, record, run)
        entries = range(table.rows[record][0], table.rows[record + 1][0])
        assert len(entries) == (2 if count else 0)
        for entry in entries:
            begin, size, crc = struct.unpack_from("<3I", table.body, table.entries_at + 12 * entry)
            assert payload[begin : begin + size][2:6] in (b"name", b"more")
            assert _native.crc32c(payload[begin : begin + size]) == crc


def test_the_page_describes_the_lists_of_sequences(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    lists = {
        b"image": [wire.byte_strings(b"x" * size) for size in (3, 200, 0)],
        b"tick": [wire.ints(300, 1), wire.int_feature(b""), wire.ints(5)],
    }
    entries = (wire.entry(key, wire.strings(*features)) for key, features in lists.items())
    with tfr.Writer(path) as writer:
        context = wire.example_of(name=wire.byte_strings(b"me"))
        writer.write(context + wire.field(2, b"".join(entries)))
    steps = tfr.Steps(path, along=["image", "tick"])
    table = Table(Path(tfr.build_steps(path, along=["image", "tick"])).read_bytes())
    payload = steps.records[0]
    assert [each["form"] for each in table.features] == [5, 8]
    for which, features in enumerate(lists.values()):
        for step, feature in enumerate(features):
            piece = table.piece(which, 0, step)
            assert piece is not None
            assert payload[piece] == wire.field(1, feature)
    specs: Any = {"tick": tfr.VarLen("int64"), "name": tfr.FixedLen((), "bytes")}
    assert tfr.parse_example(steps[:], specs)["tick"].tolist() == [[300, 1], [], [5]]


def test_a_damaged_file_is_refused_or_still_right(path: str) -> None:
    """With any wrong bit, steps equal the intact file's steps, or an error is raised."""
    reader = tfr.Reader(path)
    made = Path(tfr.build_steps(reader, along="steps/"))
    intact = made.read_bytes()
    expected = list(tfr.Steps(reader, along="steps/"))
    required = tfr.Reader(path, index="require")
    refused = 0
    for at in [*range(0, 96, 3), *range(96, len(intact), 211)]:
        made.write_bytes(intact[:at] + bytes([intact[at] ^ 4]) + intact[at + 1 :])
        try:
            found = list(tfr.Steps(required, along="steps/"))
        except (tfr.RecordError, tfr.StaleIndexError, FileNotFoundError) as error:
            assert ".steps'" in str(error)
            refused += 1
        else:
            assert found == expected
    assert refused > 40
    for size in (0, 50, 96, len(intact) - 1):
        made.write_bytes(intact[:size])
        with pytest.raises(tfr.RecordError, match="not an intact step file"):
            tfr.Steps(required, along="steps/")
        made.unlink()


def test_a_file_of_other_features_is_refused_or_made_again(path: str) -> None:
    others = tfr.build_steps(path, along=["steps/action"])
    expected = list(tfr.Steps(path, along=["steps/image"]))
    made = tfr.build_steps(path, along=["steps/image"])
    Path(others).rename(made)
    with pytest.raises(tfr.StaleIndexError, match="other features along its steps"):
        tfr.Steps(path, along=["steps/image"], index="require")
    assert list(tfr.Steps(path, along=["steps/image"])) == expected
