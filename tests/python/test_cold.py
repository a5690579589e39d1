"""Reads of a file that is not in memory fetch the pages that are needed."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

import tfrfast as tfr
from patience import at_least_once
from record_files import make_cold


def fetched_bytes() -> int:
    """The bytes that this process has made the disk read."""
    return int(Path("/proc/self/io").read_text().split("\nread_bytes: ")[1].split()[0])


@pytest.fixture
def cold(tmp_path: Path) -> str:
    path = str(tmp_path / "shard")
    with tfr.Writer(path) as writer:
        for _ in range(4000):
            writer.write(os.urandom(4000))
    before = fetched_bytes()
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.read(1)
        if fetched_bytes() == before:
            pytest.skip("the disk of temporary files does not count what it reads")
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


# Where memory is short, programs and libraries are read again, too.
def test_single_records_and_batches_fetch_their_own_pages(cold: str) -> None:
    numbers = random.Random(1).sample(range(4000), 80)

    def check() -> None:
        make_cold(cold)
        before = fetched_bytes()
        reader = tfr.Reader(cold, io="mmap")
        for number in numbers[:40]:
            reader[number]
        reader.read(numbers[40:])
        assert 0 < fetched_bytes() - before < 2 << 20

    at_least_once(check)


def test_an_epoch_in_file_order_fetches_each_page_once(cold: str) -> None:
    with tfr.Reader(cold, io="pread") as reader:
        expected = list(reader)

    def check() -> None:
        make_cold(cold)
        before = fetched_bytes()
        loader = tfr.Loader(tfr.Reader(cold, io="mmap"), 256, shuffle=False, threads=2)
        assert [record for batch in loader for record in batch] == expected
        assert 15 << 20 < fetched_bytes() - before < 20 << 20
        assert loader.stats().read_ahead_bytes > 15 << 20

    at_least_once(check)
