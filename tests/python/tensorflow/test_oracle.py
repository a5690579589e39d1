"""TensorFlow as the judge: good records, records before an error, records that are read back."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tfrfast as tfr
from tfrecord_model import shard_of

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tensorflow

RECORDS = [b"first", b"", b"a longer third record", b"\x00\x01\x02", b"last"]


class Verdict(NamedTuple):
    """The records before the first error, and the error's offset by TensorFlow (None: no error)."""

    records: list[bytes]
    error_at: int | None


def judge(paths: list[Path], between: Path) -> list[Verdict]:
    """Returns the verdict of tf.data.TFRecordDataset on each shard.

    Making an iterator takes long, so one iterator reads all shards. After an error it continues
    with the next file. The marker file `between` separates the shards.
    """
    between.write_bytes(shard_of([b"next shard"]))
    dataset = tf.data.TFRecordDataset([str(each) for path in paths for each in (path, between)])
    verdicts = []
    records: list[bytes] = []
    error_at = None
    iterator = iter(dataset)
    while True:
        try:
            record = next(iterator).numpy()
        except StopIteration:
            return verdicts
        except tf.errors.DataLossError as error:
            assert error_at is None
            found = re.search(r"(corrupted|truncated) record at (\d+)", error.message)
            assert found, error.message
            error_at = int(found[2])
            continue
        if record == b"next shard":
            verdicts.append(Verdict(records, error_at))
            records, error_at = [], None
        else:
            assert error_at is None
            records.append(record)


def ours(path: Path, io: Any) -> Verdict:
    """Returns our verdict. Structural damage is raised at opening, and names its record."""
    try:
        reader = tfr.Reader(path, io=io, index="memory", threads=1)
    except tfr.RecordError as error:
        assert error.path == str(path)
        assert error.record is not None
        assert error.offset is not None
        skipping = tfr.Reader(path, io=io, index="memory", on_corruption="skip", threads=1)
        batch = skipping[: error.record]
        good = int(np.argmin([*(batch.indices == np.arange(len(batch))), False]))
        if good < error.record:  # a bad payload comes first
            return Verdict(batch.tolist()[:good], skipping.locate(good).offset)
        return Verdict(batch.tolist(), error.offset)
    records = []
    try:
        for record in reader:
            records.append(record)
    except tfr.CorruptRecordError as error:
        assert error.record == len(records)
        return Verdict(records, error.offset)
    return Verdict(records, None)


def check_all(folder: Path, shards: list[bytes]) -> list[Verdict]:
    """Compares our verdicts, in both I/O modes, with TensorFlow's. There are two differences. For a
    payload's error, TensorFlow gives the offset after the header, and tfrfast the record's offset.
    A tail that is too short for a header is the end of the shard for TensorFlow, and torn for
    tfrfast.
    """
    paths = []
    for number, data in enumerate(shards):
        paths.append(folder / f"shard{number}")
        paths[-1].write_bytes(data)
    expected = judge(paths, folder / "between")
    assert len(expected) == len(shards)
    for io in ("mmap", "pread"):
        for data, path, verdict in zip(shards, paths, expected, strict=True):
            found = ours(path, io)
            assert found.records == verdict.records
            if verdict.error_at is None:
                assert found.error_at is None or 0 < len(data) - found.error_at < 12
            else:
                assert found.error_at in (verdict.error_at, verdict.error_at - 12)
                assert len(data) - found.error_at >= 12
    return [ours(path, "auto") for path in paths]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shard"


def starts_of(records: list[bytes]) -> list[int]:
    return np.cumsum([0] + [16 + len(record) for record in records]).tolist()


def test_every_flipped_bit(tmp_path: Path) -> None:
    good = shard_of(RECORDS)
    flipped = []
    for bit in range(8 * len(good)):
        data = bytearray(good)
        data[bit // 8] ^= 1 << bit % 8
        flipped.append(bytes(data))
    starts = starts_of(RECORDS)
    for bit, verdict in enumerate(check_all(tmp_path, flipped)):
        hit = int(np.searchsorted(starts, bit // 8, side="right")) - 1
        assert verdict == (RECORDS[:hit], starts[hit])


def test_every_truncation(tmp_path: Path) -> None:
    good = shard_of(RECORDS)
    starts = starts_of(RECORDS)
    verdicts = check_all(tmp_path, [good[:size] for size in range(len(good) + 1)])
    for size, verdict in enumerate(verdicts):
        whole = sum(start <= size for start in starts) - 1
        assert verdict == (RECORDS[:whole], None if size in starts else starts[whole])


def test_bytes_that_are_no_record_behind_the_last(tmp_path: Path) -> None:
    good = shard_of(RECORDS)
    tails = [byte * size for size in (1, 11, 12, 15, 16, 100) for byte in (b"\0", b"\xff", b"x")]
    for verdict in check_all(tmp_path, [good + tail for tail in tails]):
        assert verdict == (RECORDS, len(good))


def test_random_damage(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    damaged = []
    for _ in range(300):
        data = bytearray(shard_of(RECORDS * 2))
        for _ in range(random.integers(1, 4)):
            at = int(random.integers(0, len(data)))
            match random.integers(0, 4):
                case 0:
                    data[at] ^= int(random.integers(1, 256))
                case 1:
                    data[at:at] = random.bytes(int(random.integers(1, 30)))
                case 2:
                    del data[at : at + int(random.integers(1, 30))]
                case 3:
                    del data[max(at, 1) :]
        damaged.append(bytes(data))
    check_all(tmp_path, damaged)


def test_what_tensorflow_writes_is_read_back(path: Path, io: Any) -> None:
    random = np.random.default_rng(1)
    sizes = [0, 1, 2, 376, 4095, 4096, 65_536, 300_000, 1 << 20, 0]
    records = [random.bytes(size) for size in sizes]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    reader = tfr.Reader(path, io=io)
    assert list(reader) == records
    assert reader[::-1].tolist() == records[::-1]
    assert judge([path], path.with_name("between")) == [(records, None)]


def test_an_empty_shard(path: Path) -> None:
    tf.io.TFRecordWriter(str(path)).close()
    assert path.read_bytes() == b""
    assert check_all(path.parent, [b""]) == [([], None)]


def test_a_plain_shard_whose_first_record_has_376_bytes(path: Path) -> None:
    records = [b"x" * 376, b"y"]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    data = path.read_bytes()
    assert data[:2] == b"\x78\x01"
    shards = [data]
    for bit in (*range(64, 96), 8 * 12, 8 * 390):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        shards.append(bytes(damaged))
    verdicts = check_all(path.parent, shards)
    assert verdicts[0] == (records, None)
    assert set(map(str, verdicts[1:])) == {str(Verdict([], 0))}
