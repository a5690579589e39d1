"""Written records are read back, and damage is judged like the model judges damage."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tfrfast as tfr
from tfrecord_model import Damage, Frame, crc32c, frame, scan, shard_of
from tfrfast import _native

records = st.lists(st.binary(max_size=60), max_size=12)
often = settings(max_examples=150)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shard"


def open_reader(path: Path, data: bytes, io: Any, **options: Any) -> tfr.Reader:
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    return tfr.Reader(path, io=io, index="memory", threads=1, **options)


@given(data=st.binary(max_size=200))
def test_checksums(data: bytes) -> None:
    assert _native.crc32c(data) == crc32c(data)
    assert _native.frame(data) == frame(data)


@often
@given(written=records, numbers=st.lists(st.integers(-15, 15)), key=st.slices(14))
def test_what_is_written_is_read(
    path: Path, io: Any, written: list[bytes], numbers: list[int], key: slice
) -> None:
    reader = open_reader(path, shard_of(written), io)
    assert list(reader) == written
    assert reader[key].tolist() == written[key]
    if all(-len(written) <= number < len(written) for number in numbers):
        batch = reader.read(numbers)
        assert batch.tolist() == [written[number] for number in numbers]
        assert batch.indices.tolist() == [number % len(written) for number in numbers]
    else:
        with pytest.raises(IndexError):
            reader.read(numbers)


@st.composite
def broken_shards(draw: st.DrawFn) -> bytes:
    data = bytearray(shard_of(draw(st.lists(st.binary(max_size=30), min_size=1, max_size=6))))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["flip", "cut", "insert", "erase", "append"])):
            case "flip" if at < len(data):
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del data[at:]
            case "insert":
                data[at:at] = draw(st.binary(max_size=20))
            case "erase":
                del data[at : at + draw(st.integers(0, 20))]
            case "append":
                data += shard_of(draw(st.lists(st.binary(max_size=10), max_size=2)))
    return bytes(data)


KINDS = {
    "bad header": tfr.CorruptRecordError,
    "torn header": tfr.TruncatedRecordError,
    "torn payload": tfr.TruncatedRecordError,
}


def check_structure(path: Path, data: bytes, io: Any, damage: list[Damage]) -> None:
    """The first structural damage is raised at opening."""
    with pytest.raises(tfr.RecordError) as raised:
        open_reader(path, data, io)
    # For example, a short file that looks like text is not called a torn shard.
    if len(data) <= 4 or "is not a TFRecord file" not in str(raised.value):
        assert type(raised.value) is KINDS[damage[0].kind]
    assert raised.value.offset == damage[0].begin
    assert raised.value.record == damage[0].records_before


def check_payloads(reader: tfr.Reader, frames: list[Frame]) -> None:
    seen: list[Any] = []
    iterator = iter(reader)
    for _ in range(len(frames)):
        try:
            seen.append(next(iterator))
        except tfr.CorruptRecordError as error:
            seen.append(error.offset)
    assert next(iterator, None) is None
    assert seen == [each.payload if each.payload_is_good else each.offset for each in frames]


@often
@example(data=b"\t")
@given(data=broken_shards())
def test_what_is_broken_is_judged_as_the_model_judges_it(path: Path, io: Any, data: bytes) -> None:
    frames, damage = scan(data)
    skipping = open_reader_or_none(path, data, io)
    if skipping is None:
        return
    if damage:
        check_structure(path, data, io, damage)
    else:
        check_payloads(open_reader(path, data, io), frames)
    good = [each.payload for each in frames if each.payload_is_good]
    assert len(skipping) == len(frames)
    assert list(skipping) == skipping[:].tolist() == good
    expected = [(each.begin, each.end) for each in damage] + [
        (each.offset, each.offset + 16 + len(each.payload))
        for each in frames
        if not each.payload_is_good
    ]
    assert [(each.begin, each.end) for each in skipping.skipped] == expected


def open_reader_or_none(path: Path, data: bytes, io: Any) -> tfr.Reader | None:
    """The reader, or None if the damaged shard happens to begin like compressed data."""
    reader = open_reader(path, data, io, on_corruption="skip")
    return reader if reader.shards[0].compression is None else None


@often
@given(data=st.binary(max_size=100))
def test_any_bytes(path: Path, io: Any, data: bytes) -> None:
    frames, damage = scan(data)
    reader = open_reader_or_none(path, data, io)
    if reader is not None:
        assert len(reader) == len(frames)
        assert len(reader.skipped) == len(damage)


@often
@given(
    parts=st.lists(records, max_size=5),
    order=st.lists(st.integers(0, 4), max_size=5),
)
def test_many_shards_are_one_array(
    tmp_path: Path, io: Any, parts: list[list[bytes]], order: list[int]
) -> None:
    for number, part in enumerate(parts):
        (tmp_path / f"s{number}").unlink(missing_ok=True)
        (tmp_path / f"s{number}").write_bytes(shard_of(part))
    order = [number for number in order if number < len(parts)]
    reader = tfr.Reader([tmp_path / f"s{number}" for number in order], io=io, index="memory")
    whole = [record for number in order for record in parts[number]]
    assert list(reader) == reader[:].tolist() == whole
    places = [(i, j) for i, number in enumerate(order) for j in range(len(parts[number]))]
    located = [reader.locate(i) for i in range(len(reader))]
    assert [(each.shard, each.length) for each in located] == [
        (i, len(parts[order[i]][j])) for i, j in places
    ]
    shuffled = np.random.default_rng(len(whole)).permutation(len(whole))
    assert reader.read(shuffled).tolist() == [whole[i] for i in shuffled]
