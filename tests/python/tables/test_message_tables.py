"""Fields of protobuf messages as Arrow's nested lists, and event files as tables."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import tfrfast as tfr
from cli_files import damage
from tfrfast.cli import main

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def tagged(number: int, data: bytes) -> bytes:
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def value(tag: bytes, data: bytes) -> bytes:
    return tagged(1, tagged(1, tag) + data)


def simple(number: float) -> bytes:
    return b"\x15" + struct.pack("<f", number)


def tensor(data: bytes, plugin: bytes = b"scalars") -> bytes:
    return tagged(8, data) + tagged(9, tagged(1, tagged(1, plugin)))


def event(step: int, *values: bytes) -> bytes:
    return (
        b"\x09" + struct.pack("<d", step + 0.25) + bytes([0x10, step]) + tagged(5, b"".join(values))
    )


EVENTS = [
    b"\x09" + struct.pack("<d", 0.25) + tagged(3, b"brain.Event:2"),
    event(1, value(b"loss", simple(0.5)), value(b"rate", simple(0.0))),
    event(2, value(b"loss", tensor(b"\x08\x01" + tagged(4, struct.pack("<f", 0.25))))),
    event(3, value(b"loss", tensor(b"\x08\x02" + tagged(6, struct.pack("<d", 2.5))))),
    event(4, value(b"step", tensor(b"\x08\x09" + tagged(10, b"\x07")))),
    event(4, value(b"n", tensor(b"\x08\x17" + b"\x8a\x01\x01\x09"))),  # uint64_val
    event(4, value(b"n", tensor(b"\x08\x16" + b"\x82\x01\x01\x0a"))),  # uint32_val
    event(4, value(b"n", tensor(b"\x08\x0a" + tagged(11, b"\x01")))),
    event(4, value(b"n", tensor(b"\x08\x13" + tagged(13, b"\x80\x7c")))),  # half 0x3e00
    event(4, value(b"n", tensor(b"\x08\x0e" + tagged(13, b"\xc0\x80\x03")))),  # bfloat16 0xc040
    event(4, value(b"n", tensor(b"\x08\x0e" + tagged(4, b"\x40\xc0")))),
    event(4, value(b"n", tensor(b"\x08\x17" + tagged(4, b"\0" * 7 + b"\x80")))),
    event(4, value(b"n", tensor(b"\x08\x0a" + tagged(4, b"\x01")))),
    event(4, value(b"n", tensor(b"\x08\x06" + tagged(4, b"\xfe")))),
    # No scalars: a vector, text, an image.
    event(
        5,
        value(b"v", tensor(b"\x08\x01" + tagged(2, tagged(2, b"\x08\x02")) + tagged(4, b"\0" * 4))),
    ),
    event(6, value(b"text", tensor(b"\x08\x01" + tagged(5, b"\0" * 4), b"text"))),
    event(6, value(b"text", tensor(b"\x08\x01" + tagged(5, b"\0" * 4), b"scalars\0"))),
    event(7, value(b"image", tagged(4, b"\x08\x01"))),
]
SCALARS = {
    "step": [1, 1, 2, 3, 4] + [4] * 9,
    "wall_time": [1.25, 1.25, 2.25, 3.25, 4.25] + [4.25] * 9,
    "tag": ["loss", "rate", "loss", "loss", "step"] + ["n"] * 9,
    "value": [0.5, 0.0, 0.25, 2.5, 7.0, 9.0, 10.0, 1.0, 1.5, -3.0, -3.0, 2.0**63, 1.0, -2.0],
}


@pytest.fixture
def shard(tmp_path: Path) -> str:
    path = str(tmp_path / "events.out.tfevents.1.host")
    with tfr.Writer(path) as writer:
        for record in EVENTS:
            writer.write(record)
    return path


def test_levels_of_rows_are_lists_in_lists(shard: str) -> None:
    message = tfr.Message.event()
    features = {
        "step": message["step"],
        "tag": message["summary.value.tag"],
        "n": message["summary.value.tensor.double_val"],
        "again": message["summary.value.tensor.double_val"],
        "has": message.has("summary.value.tensor"),
    }
    table = pa.table(tfr.scan(shard, features=features, batch_size=3, record_column=True))
    text = pa.field("item", pa.large_string(), nullable=False)
    assert table.schema.field("tag").type == pa.large_list(text)
    inner = pa.field("item", pa.large_list(pa.field("item", pa.float64(), False)), False)
    assert table.schema.field("n").type == pa.large_list(inner)
    with tfr.Reader(shard) as reader:
        parsed = tfr.parse_example(reader[:], features)
    assert table["step"].to_pylist() == parsed["step"].tolist()
    assert [[t.encode() for t in row] for row in table["tag"].to_pylist()] == parsed["tag"].tolist()
    for name in ("n", "again", "has"):
        assert table[name].to_pylist() == parsed[name].tolist()
    assert parsed["n"].tolist()[3] == [[2.5]]
    some = tfr.scan(shard, features=features, columns=["n"], records=[3, 2])
    assert pa.table(some).to_pydict() == {"n": [[[2.5]], [[]]]}
    assert pa.table(pa.record_batch(parsed))["n"].to_pylist() == parsed["n"].tolist()


def test_text_that_is_no_text_names_its_record(tmp_path: Path) -> None:
    path = str(tmp_path / "shard")
    bad = event(1, value(b"a", tagged(8, tagged(8, b"ok") + tagged(8, b"\xff"))))
    with tfr.Writer(path) as writer:
        writer.write(EVENTS[0])
        writer.write(event(1, value(b"a", b""), value(b"b", tagged(8, tagged(8, b"ok")))))
        writer.write(bad)
    features = {"s": tfr.Message.event()["summary.value.tensor.string_val"]}
    with pytest.raises(Exception, match="of record 2 is not text in UTF-8"):
        pa.table(tfr.scan(path, features=features, text=["s"]))
    assert pa.table(tfr.scan(path, features=features))["s"].to_pylist()[2] == [[b"ok", b"\xff"]]


def test_export_writes_the_scalars_of_event_files(shard: str, tmp_path: Path) -> None:
    out = str(tmp_path / "scalars.parquet")
    assert main(["export", shard, "--out", out]) == 0
    assert pq.read_table(out).to_pydict() == SCALARS
    assert main(["export", shard, "--out", out]) == 2  # it exists
    other = shard.replace(".1.", ".2.")
    with tfr.Writer(other) as writer:
        writer.write(EVENTS[2])
    assert main(["export", shard, other, "--out", out, "--overwrite"]) == 0
    table = pq.read_table(out).to_pydict()
    assert table["value"] == [*SCALARS["value"], 0.25]
    assert table["file"] == [shard] * 14 + [other]


def test_export_leaves_out_a_damaged_first_event(shard: str, tmp_path: Path) -> None:
    damage(shard, 0)
    out = str(tmp_path / "scalars.parquet")
    assert main(["export", shard, "--out", out]) == 2
    assert main(["export", shard, "--out", out, "--on-corruption", "skip"]) == 1
    assert pq.read_table(out).to_pydict() == SCALARS


def test_export_writes_fields_of_a_message(shard: str, tmp_path: Path) -> None:
    out = str(tmp_path / "fields.parquet")
    chosen = ["--message", "tensorflow.Event", "--columns", "step,summary.value.tag"]
    assert main(["export", shard, "--out", out, *chosen]) == 0
    table = pq.read_table(out).to_pydict()
    assert list(table) == ["step", "summary.value.tag"]
    assert table["summary.value.tag"][:3] == [[], ["loss", "rate"], ["loss"]]
