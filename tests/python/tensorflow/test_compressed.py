"""Compressed shards against TensorFlow: shards that TensorFlow wrote, and damaged shards."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import tfrfast as tfr
from compressed_files import deflated
from record_files import frame_starts
from tfrecord_model import rested, shard_of
from tfrfast.loading import shuffle_costs

tf = pytest.importorskip("tensorflow")

from tfrfast.tensorflow import reasons  # noqa: E402

pytestmark = pytest.mark.newest

KINDS = ["GZIP", "ZLIB"]


def records_of(seed: int, count: int = 800) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(rng.randrange(300)) + b"abc" * rng.randrange(400) for _ in range(count)]


RECORDS = records_of(1)


def told_by_tensorflow(path: Path, compression: str) -> tuple[list[bytes], bool]:
    """Returns the records before the first damage, and whether there was damage."""
    records = []
    try:
        for record in tf.data.TFRecordDataset(str(path), compression).as_numpy_iterator():
            records.append(record)
    except tf.errors.DataLossError:
        return records, True
    return records, False


@pytest.mark.parametrize("compression", KINDS)
@pytest.mark.parametrize("level", range(10))
def test_what_tensorflow_writes(tmp_path: Path, compression: str, level: int) -> None:
    path = tmp_path / "shard"
    options = tf.io.TFRecordOptions(compression, compression_level=level)
    with tf.io.TFRecordWriter(str(path), options) as writer:
        for record in RECORDS:
            writer.write(record)
    reader = tfr.Reader(path, index="memory")
    assert reader.shards[0].compression == compression
    assert list(reader) == told_by_tensorflow(path, compression)[0] == RECORDS
    order = np.random.default_rng(level).permutation(len(RECORDS))
    assert reader.read(order).tolist() == [RECORDS[i] for i in order]


@pytest.mark.parametrize("records", [[], [b""], [b"x" * 3_000_000]])
@pytest.mark.parametrize("compression", KINDS)
def test_small_and_large(tmp_path: Path, compression: str, records: list[bytes]) -> None:
    path = tmp_path / "shard"
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for record in records:
            writer.write(record)
    assert list(tfr.Reader(path, index="memory")) == records


def damaged_shards(tmp_path: Path, compression: str, count: int, seed: int) -> Iterator[Path]:
    """Writes copies of the first 400 records, alternately cut off and with a flipped bit."""
    whole = deflated(shard_of(RECORDS[:400]), compression)
    rng = random.Random(seed)
    for number in range(count):
        data = bytearray(whole)
        if number % 2:
            del data[rng.randrange(20, len(data)) :]
        else:
            data[rng.randrange(10, len(data))] ^= 1 << rng.randrange(8)
        path = tmp_path / f"shard{number}"
        path.write_bytes(data)
        yield path


@pytest.mark.parametrize("compression", KINDS)
def test_damage_is_never_missed_and_hides_no_record(tmp_path: Path, compression: str) -> None:
    records = RECORDS[:400]
    for path in damaged_shards(tmp_path, compression, 24, seed=2):
        theirs, damaged = told_by_tensorflow(path, compression)
        ours = list(tfr.Reader(path, on_corruption="skip", index="memory"))
        assert ours[: len(theirs)] == theirs == records[: len(theirs)]
        # TensorFlow takes a stream that was cut off for a complete stream.
        if damaged or theirs != records:
            with pytest.raises(tfr.RecordError):
                list(tfr.Reader(path, index="memory"))


# ---- the drop-in


def write_set(tmp_path: Path, compression: str, shards: int = 3) -> tuple[list[str], list[bytes]]:
    names, records = [], []
    for number in range(shards):
        mine = records_of(number, 3500)  # more than two spans
        path = tmp_path / f"shard-{number}"
        path.write_bytes(deflated(shard_of(mine), compression))
        names.append(rested(path))
        records += mine
    return names, records


def values(dataset: Any) -> list[bytes]:
    return [
        record for each in dataset.as_numpy_iterator() for record in np.atleast_1d(each).tolist()
    ]


@pytest.mark.parametrize("compression", KINDS)
def test_the_drop_in_streams_and_plans(tmp_path: Path, compression: str) -> None:
    names, records = write_set(tmp_path, compression)
    for turn in range(2):  # the second time with indexes
        dataset = tfr.TFRecordDataset(names, compression)
        assert int(dataset.cardinality()) == (tf.data.UNKNOWN_CARDINALITY, len(records))[turn]
        assert values(dataset) == records
    assert values(tfr.TFRecordDataset(names, compression).batch(100)) == records
    assert values(dataset.skip(4000).take(50)) == records[4000:4050]
    mixed = tfr.TFRecordDataset(names, compression, num_parallel_reads=2)
    theirs = tf.data.TFRecordDataset(names, compression, num_parallel_reads=2)
    assert values(mixed.take(500)) == values(theirs.take(500))


@pytest.mark.parametrize("is_kept", [False, True])
def test_the_drop_in_shuffles(tmp_path: Path, is_kept: bool) -> None:
    names, records = write_set(tmp_path, "GZIP")
    mirror = tfr.DiskCache(tmp_path / "mirror", "64M") if is_kept else None
    dataset = tfr.TFRecordDataset(names, "GZIP", decompressed_cache=mirror)
    for _ in range(2 + is_kept):  # inflated, kept, read from the mirror
        shuffled = values(dataset.shuffle(10, seed=1).batch(100))
        assert shuffled != records
        assert sorted(shuffled) == sorted(records)
        assert values(dataset.batch(100)) == records
        tfr._native.finish_cache_writes()
    assert is_kept == any((tmp_path / "mirror").rglob("v2/*/*"))


def test_explain_names_the_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, _ = write_set(tmp_path, "GZIP")
    monkeypatch.setattr(shuffle_costs, "_MUCH_INFLATED_BYTES", 0)
    monkeypatch.setattr(tfr._native, "inflated_bytes", lambda: 0)
    monkeypatch.setattr(reasons, "_told", set())
    with pytest.warns(tfr.SlowPathWarning, match="of the dataset keeps the inflated bytes"):
        explained = tfr.explain(tfr.TFRecordDataset(names, "GZIP").shuffle(10, seed=1))
    assert "decompressed_cache=tfr.DiskCache(folder, limit)" in str(explained)
    mirror = tfr.DiskCache(tmp_path / "mirror", "64M")
    kept = tfr.TFRecordDataset(names, "GZIP", decompressed_cache=mirror).shuffle(10, seed=1)
    assert "decompressed_cache=" not in str(tfr.explain(kept))


def plain_and_packed(
    tmp_path: Path, record: Callable[[int, int], bytes]
) -> tuple[list[str], list[str]]:
    """Three shards of 300 records with a damaged payload in each; and the same shards as GZIP."""
    plain: list[str] = []
    packed: list[str] = []
    for number in range(3):
        records = [record(number, i) for i in range(300)]
        shard = bytearray(shard_of(records))
        shard[frame_starts(records)[100 + number] + 50] ^= 1  # of a payload
        for names, kind, data in (
            (plain, "plain", bytes(shard)),
            (packed, "packed", deflated(bytes(shard), "GZIP")),
        ):
            path = tmp_path / f"{kind}-{number}"
            path.write_bytes(data)
            names.append(rested(path))
    return plain, packed


@pytest.mark.parametrize("on_corruption", ["raise", "skip"])
def test_shuffled_batches_are_as_from_plain_shards(
    tmp_path: Path, on_corruption: Literal["raise", "skip"]
) -> None:
    plain, packed = plain_and_packed(tmp_path, lambda number, i: bytes([number]) * (4000 + i * 7))
    expected, found = (
        tfr.TFRecordDataset(names, compression, on_corruption=on_corruption)
        .shuffle(1, seed=3)
        .batch(400)  # read in several pieces
        .ignore_errors()
        for names, compression in ((plain, ""), (packed, "GZIP"))
    )
    batches = [batch.numpy().tolist() for batch in found]
    assert batches == [batch.numpy().tolist() for batch in expected]
    assert sum(map(len, batches)) == 897


def test_shuffled_columns_are_as_from_plain_shards(tmp_path: Path) -> None:
    plain, packed = plain_and_packed(
        tmp_path,
        lambda number, i: tfr.encode_example({"x": 1000 * number + i, "s": b"s" * (3000 + i * 7)}),
    )
    features = {"x": tf.io.FixedLenFeature((), tf.int64), "s": tf.io.FixedLenFeature((), tf.string)}
    expected, found = (
        tfr.TFRecordDataset(names, compression, on_corruption="skip")
        .shuffle(1, seed=3)
        .batch(400)
        .parse_example(features)
        for names, compression in ((plain, ""), (packed, "GZIP"))
    )
    batches = [batch["x"].numpy().tolist() for batch in found]
    assert batches == [batch["x"].numpy().tolist() for batch in expected]
    assert sum(map(len, batches)) == 897
    for one, other in zip(found, expected, strict=True):
        assert one["s"].numpy().tolist() == other["s"].numpy().tolist()


def test_names_may_be_symbolic(tmp_path: Path) -> None:
    names, records = write_set(tmp_path, "ZLIB")
    files = tf.data.Dataset.from_tensor_slices(names)
    assert values(files.flat_map(lambda name: tfr.TFRecordDataset(name, "ZLIB"))) == records


def test_a_loader_over_compressed_and_plain_shards(tmp_path: Path) -> None:
    names, records = write_set(tmp_path, "GZIP", 2)
    Path(names[1]).write_bytes(shard_of(records[3500:]))
    loader = tfr.Loader(names, 512)
    expected = [record for batch in loader for record in batch]
    assert sorted(expected) == sorted(records)
    assert values(tfr.Loader(names, 512).to_tf_dataset()) == expected


@pytest.mark.parametrize("compression", KINDS)
def test_everything_before_damage_arrives_first(tmp_path: Path, compression: str) -> None:
    records = RECORDS[:400]
    for path in damaged_shards(tmp_path, compression, 8, seed=4):
        theirs, _ = told_by_tensorflow(path, compression)
        for _ in range(2):
            ours = []
            with pytest.raises(tf.errors.DataLossError, match=str(path)):
                for record in tfr.TFRecordDataset(str(path), compression).as_numpy_iterator():
                    ours.append(record)
            assert len(ours) >= len(theirs)
            assert ours == records[: len(ours)]


def test_what_lies_behind_a_damaged_member_is_read_if_damage_is_skipped(tmp_path: Path) -> None:
    records = records_of(8, 4000)
    data = shard_of(records)
    members = [deflated(data[at : at + 200_000], "GZIP") for at in range(0, len(data), 200_000)]
    members[5] = members[5][:1000] + members[5][1500:]
    members[12] = b""  # only the broken chain of records reveals this damage
    path = str(tmp_path / "shard")
    Path(path).write_bytes(b"".join(members))
    with tfr.Reader(path, index="memory", on_corruption="skip") as reader:
        expected = list(reader)
        assert len(reader.skipped) >= 2
    assert len(records) // 2 < len(expected) < len(records)
    assert (expected[:200], expected[-200:]) == (records[:200], records[-200:])
    for _ in range(2):  # the second time with an index
        assert values(tfr.TFRecordDataset(path, "GZIP", on_corruption="skip")) == expected
        before = []
        with pytest.raises(tf.errors.DataLossError, match=path):
            for record in tfr.TFRecordDataset(path, "GZIP").as_numpy_iterator():
                before.append(record)
        assert 200 < len(before) < len(expected)
        assert before == records[: len(before)]


def test_what_is_not_compressed_as_it_should_be_is_damage(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(shard_of(RECORDS[:10]))
    (tmp_path / "empty").write_bytes(b"")
    for make in (tf.data.TFRecordDataset, tfr.TFRecordDataset):
        with pytest.raises(tf.errors.DataLossError):
            list(make(str(tmp_path / "plain"), "GZIP"))
        assert list(make(str(tmp_path / "empty"), "GZIP")) == []


def test_tensorflow_reads_what_is_written(tmp_path: Path) -> None:
    records = [*RECORDS, b"y" * 2_500_000, b""]
    with tfr.Writer(tmp_path / "whole", compression="GZIP") as whole:
        whole.write_batch(records)
    assert told_by_tensorflow(tmp_path / "whole", "GZIP") == (records, False)


def events(dataset: Any) -> list[bytes | str]:
    """Returns all elements and errors of an iterator that continues after every error."""
    told: list[bytes | str] = []
    iterator = iter(dataset)
    while True:
        try:
            told.append(next(iterator).numpy())
        except StopIteration:
            return told
        except tf.errors.DataLossError:
            told.append("data loss")


@pytest.mark.parametrize("compression", KINDS)
@pytest.mark.parametrize("indexed", [False, True])
def test_a_file_whose_first_byte_is_damaged_is_passed_over(
    tmp_path: Path, compression: str, indexed: bool
) -> None:
    names = []
    for number in range(4):
        data = bytearray(deflated(shard_of(records_of(number, 50)), compression))
        if number in (1, 3):
            data[0] ^= 0x80
        path = tmp_path / f"shard-{number}"
        path.write_bytes(data * (200 if number == 1 else 1))  # of more than a block
        names.append(str(path))
    if indexed:
        tfr.Reader(names, compression=compression, on_corruption="skip").close()
    theirs = tf.data.TFRecordDataset(names, compression)
    ours = tfr.TFRecordDataset(names, compression)
    skipping = tfr.TFRecordDataset(names, compression, on_corruption="skip")
    good = records_of(0, 50) + records_of(2, 50)
    assert events(theirs) == [*good[:50], "data loss", *good[50:], "data loss"]
    assert events(ours) == events(theirs)
    assert values(ours.ignore_errors()) == values(theirs.ignore_errors()) == good
    assert events(skipping) == good
    assert values(skipping.batch(7)) == good
    shuffled = tfr.TFRecordDataset(names, compression, on_corruption="skip").shuffle(1000, seed=1)
    assert sorted(values(shuffled.batch(7))) == sorted(good)
    with pytest.raises(tf.errors.DataLossError, match="does not begin like"):
        values(ours)
