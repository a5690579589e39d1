"""A few compressed bytes may claim many records, or a large one: memory stays within bounds."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

import children
import tfrfast as tfr
from record_files import frame
from tfrecord_model import rested

EMPTY = 4_000_000


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A shard of 63 KB with four million empty records."""
    path = tmp_path_factory.mktemp("crowd") / "crowd.gz"
    path.write_bytes(gzip.compress(frame(b"") * 100_000, 9) * (EMPTY // 100_000))
    return rested(path)


def printed_by(script: str, path: str, **settings: str) -> str:
    program = f"import sys, tfrfast as tfr\npath = sys.argv[1]\n{script}"
    return children.printed_by(program, path, **settings)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_empty_records_take_a_bit_each(crowd: str) -> None:
    """If the scan kept an offset of 8 bytes for each record, it would take too much memory."""
    script = """
def peak():  # of this program alone, without its parent's
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM"))
reader = tfr.Reader(path, index="memory", threads=2)
print(len(reader), peak())
"""
    small = Path(crowd).with_name("small.gz")
    small.write_bytes(gzip.compress(frame(b"") * 100_000, 9))
    settings = {"TFRFAST_INFLATED_BYTES": "1"}  # no inflated bytes stay in memory
    count, peak = map(int, printed_by(script, crowd, **settings).split())
    _, least = map(int, printed_by(script, str(small), **settings).split())
    assert count == EMPTY
    assert peak - least < 16  # MiB; it was 64


def test_more_records_than_allowed_are_an_error(crowd: str) -> None:
    script = """
for options in ({}, {"on_corruption": "skip"}):
    try:
        tfr.Reader(path, index="memory", **options)
    except MemoryError as error:
        print(error)
"""
    told = printed_by(script, crowd, TFRFAST_MAX_RECORDS="100000").splitlines()
    assert len(told) == 2
    for line in told:
        assert f"'{crowd}' has more than 100000 records, in a file of " in line
        assert "allow more with TFRFAST_MAX_RECORDS" in line
    counting = "print(len(tfr.Reader(path, index='memory')))"
    assert printed_by(counting, crowd, TFRFAST_MAX_RECORDS=str(EMPTY)) == f"{EMPTY}\n"


def test_a_record_larger_than_allowed_is_an_error_at_its_place(tmp_path: Path) -> None:
    large = frame(tfr.encode_example({"x": [0] * 5000}))
    small = frame(tfr.encode_example({"x": 1}))
    path = tmp_path / "large.gz"
    path.write_bytes(gzip.compress(small + large + small))
    script = """
reader = tfr.Reader(path, index="memory")
features = {"x": tfr.VarLen("int64")}
loader = tfr.Loader(reader, 1, features=features, shuffle=False)
batches = iter(loader)
next(batches)
print(len(reader), len(reader[0]), len(reader.read([2])))
for read in (
    lambda: reader[1],
    lambda: reader[:],
    lambda: list(reader),
    lambda: next(batches),
    lambda: tfr.shuffle(path, path + "-out", num_shards=1),
):
    try:
        read()
    except MemoryError as error:
        print("ecord 1 " in str(error), "allow more with TFRFAST_MAX_RECORD_BYTES" in str(error))
"""
    shown = printed_by(script, rested(path), TFRFAST_MAX_RECORD_BYTES="1000").splitlines()
    assert shown == [f"3 {len(small) - 16} 1", *["True True"] * 5]
    # The limit is for compressed shards. A plain shard's size bounds its records.
    plain = tmp_path / "plain"
    plain.write_bytes(small + large)
    longest = "print(len(tfr.Reader(path)[1]))"
    shown = printed_by(longest, rested(plain), TFRFAST_MAX_RECORD_BYTES="1000").splitlines()
    assert shown == [str(len(large) - 16)]
