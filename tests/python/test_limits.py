"""Very many shards, very large records."""

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from children import printed_by
from huge_files import huge_files
from tfrecord_model import frame, write_shard
from tfrfast import _native

FEW_DESCRIPTORS = """
import os, resource, sys
import numpy as np
import tfrfast as tfr
folder, io, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
for _ in range(2):  # the second reader finds indexes
    reader = tfr.Reader(f"{folder}/s*", io=io, threads=8)
    assert len(reader.shards) == count and len(reader) == 2 * count
    numbers = np.random.default_rng(0).permutation(2 * count)
    records = reader.read(numbers).tolist()
    assert records == [b"%d" % number for number in numbers]
    assert sum(1 for _ in reader) == 2 * count
    held = len(os.listdir("/proc/self/fd"))
    assert held < (16 if io == "mmap" else 40), held
print("right")
"""


@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_shards_with_few_descriptors(tmp_path: Path, io: Any, count: int) -> None:
    for shard in range(count):
        (tmp_path / f"s{shard}").write_bytes(
            frame(b"%d" % (2 * shard)) + frame(b"%d" % (2 * shard + 1))
        )
    assert printed_by(FEW_DESCRIPTORS, str(tmp_path), io, str(count)) == "right\n"


LITTLE_MEMORY = """
import resource, sys
import tfrfast as tfr
kind, path = sys.argv[1], sys.argv[2]
batch = tfr.Reader(path, index="memory").read(range(40))
column = tfr.parse_example(batch, {"a": tfr.FixedLen((), "bytes")})["a"]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20),) * 2)
try:
    batch.tolist() if kind == "records" else column.tolist()
except MemoryError:
    print("MemoryError")
"""


AGAIN = """
import resource, sys
import tfrfast as tfr
records = iter(tfr.Reader(sys.argv[1], index="memory"))
assert len(next(records)) == 1
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 10), resource.RLIM_INFINITY))
held, size = [], 1 << 20
while size > 1 << 16:  # what the allocator has kept
    try:
        held.append(bytearray(size))
    except MemoryError:
        size //= 2
try:
    next(records)
except MemoryError:
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    print([len(record) for record in records])
"""


A_LONG_ONE_FIRST = """
import resource
import tfrfast as tfr
features = {"a": tfr.FixedLen((), "bytes")}
records = [tfr.encode_example({"a": bytes(size)}) for size in [8 << 20] + 30 * [1000]]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)
print(len(tfr.parse_example(records, features)["a"]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
def test_a_record_without_memory_comes_again(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "s", [b"1", bytes(900_000), b"22"])
    assert printed_by(AGAIN, path) == "[900000, 2]\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
def test_a_column_is_not_given_more_memory_than_there_is(tmp_path: Path) -> None:
    assert printed_by(A_LONG_ONE_FIRST) == "31\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
@pytest.mark.parametrize("kind", ["records", "column"])
def test_too_little_memory_for_pythons_objects_is_a_memory_error(tmp_path: Path, kind: str) -> None:
    record = tfr.encode_example({"a": bytes(1 << 20)})
    path = write_shard(tmp_path / "s", [record] * 40)
    # Each thread would reserve 64 MiB of addresses, and there is one for each processor.
    assert printed_by(LITTLE_MEMORY, kind, path, MALLOC_ARENA_MAX="1") == "MemoryError\n"


LARGE = (4 << 30) + 12345


def available_bytes() -> int:
    """Returns the available memory of the machine, or of its container."""
    meminfo = Path("/proc/meminfo").read_text()
    available = int(meminfo.split("MemAvailable:")[1].split()[0]) << 10
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()) != "max":
        used = int(limit.with_name("memory.current").read_text())
        available = min(available, int(text) - used)
    return available


@pytest.mark.slow
def test_a_record_beyond_4_gib() -> None:
    """A sparse file: zeros of the payload take no memory. The last byte is not zero."""
    if sys.platform != "linux" or available_bytes() < 2.5 * LARGE:
        pytest.skip("there is too little memory for a record of 4 GiB")
    crc = 0
    zeros = bytes(64 << 20)
    for begin in range(1, LARGE, len(zeros)):
        crc = _native.crc32c(zeros[: LARGE - begin], crc)
    crc = _native.crc32c(b"!", crc)
    stored = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    with huge_files([[b"before", LARGE, b"after"]]) as (path,):
        with open(path, "r+b") as file:
            file.seek(22 + 12 + LARGE - 1)
            file.write(b"!" + struct.pack("<I", stored))
        for io in ("mmap", "pread"):
            reader = tfr.Reader(path, io=io)
            assert len(reader) == 3
            assert reader.locate(1) == (0, 22, LARGE)
            assert reader.locate(2) == (0, 22 + 16 + LARGE, 5)
            assert reader[2] == b"after"
        # One call of pread() returns at most 2 GiB.
        batch = reader[1:3]
        assert batch.offsets.tolist() == [0, LARGE, LARGE + 5]
        assert bytes(batch.data[LARGE - 2 :]) == b"\0!after"
        assert not np.any(batch.data[: LARGE - 1 : 4093])


WITHOUT_THREADS = """
import resource, sys, tfrfast as tfr
reader = tfr.Reader(sys.argv[1], threads=1)
loader = tfr.Loader(reader, 4, threads=2)
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
# Less than a thread's stack.
resource.setrlimit(resource.RLIMIT_AS, (in_use + (1 << 20), resource.RLIM_INFINITY))
try:
    next(iter(loader))
except (OSError, MemoryError) as error:
    print(type(error).__name__, error)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(sum(len(batch) for batch in loader))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_loader_without_memory_for_threads_says_so_and_goes_on_later(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard", [b"record"] * 10)
    said = printed_by(WITHOUT_THREADS, shard).splitlines()
    assert said[0].startswith(("BlockingIOError", "MemoryError")), said
    assert "Starting a thread failed" in said[0] or "MemoryError" in said[0]
    assert said[1] == "10"
