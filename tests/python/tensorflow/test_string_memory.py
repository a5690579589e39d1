"""String tensors share the memory of the records' bytes, and free it."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from record_files import some_records, write_shard

tf = pytest.importorskip("tensorflow")

from tfrfast.tensorflow import library  # noqa: E402

RECORDS = some_records(400, longest=20_000)  # 4 MB


# An older runtime allows only copies.
@pytest.fixture(params=["as the runtime allows", pytest.param("copied", marks=pytest.mark.newest)])
def strings(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways to hand out strings."""
    if request.param == "copied":
        library.hand_out_views(False)
    yield
    library.hand_out_views(library.COUNTS_VIEWS)


@pytest.fixture
def file(tmp_path: Path) -> str:
    file = write_shard(tmp_path / "records", RECORDS)
    tfr.Reader(file).close()
    return file


class Mallinfo2(ctypes.Structure):
    _fields_ = [(f"field{i}", ctypes.c_size_t) for i in range(10)]


def allocated_mb() -> float:
    """Returns the bytes that malloc has given out, which are steadier than the resident size."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("this C library does not tell how much is allocated")
    libc.mallinfo2.restype = Mallinfo2
    facts = libc.mallinfo2()
    return float(facts.field4 + facts.field7) / 2**20  # hblkhd, uordblks


USES: dict[str, Callable[[Any], Any]] = {
    "batches": lambda source: source.batch(64),
    "records": lambda source: source.shuffle(1),
    "through a buffer": lambda source: source.map(lambda record: record).batch(7).unbatch(),
    "slices": lambda source: source.batch(64).map(
        lambda batch: tf.concat([batch[3:5], batch[:1]], 0)
    ),
    "decoded": lambda source: source.batch(64).map(lambda batch: tf.strings.substr(batch, 0, 500)),
    "cut short": lambda source: source.batch(64).enumerate().take(2),
}


@pytest.mark.usefixtures("strings")
@pytest.mark.parametrize("use", USES)
def test_epochs_leak_nothing(file: str, use: str) -> None:
    dataset = USES[use](tfr.TFRecordDataset(file))

    def epochs(count: int) -> None:
        for _ in range(count):
            for _ in dataset:
                pass
        gc.collect()

    epochs(1)
    before = allocated_mb()
    epochs(4)  # 16 MB of records
    assert allocated_mb() - before < 8


@pytest.mark.usefixtures("strings")
def test_strings_outlive_what_they_came_from(file: str) -> None:
    """Strings that are still held stay the same, even if freed memory is overwritten."""
    kept: list[Any] = []
    for number, batch in enumerate(tfr.TFRecordDataset(file).batch(16)):
        kept.append((number * 16 + 3, batch[3]))
        kept.append((number * 16, tf.identity(batch)[0]))
    gc.collect()
    for _ in tfr.TFRecordDataset(file).shuffle(1).batch(16).repeat(3):
        pass
    for number, record in kept:
        assert record.numpy() == RECORDS[number]


@pytest.mark.skipif(not library.COUNTS_VIEWS, reason="this runtime counts no views")
def test_views_take_no_memory_of_their_own(file: str) -> None:
    """A tensor and its slices share one copy of the bytes."""
    batch = next(iter(tfr.TFRecordDataset(file).batch(len(RECORDS))))
    before = allocated_mb()
    slices = [batch[i:] for i in range(8)]
    assert allocated_mb() - before < 2 * sum(map(len, RECORDS)) / 2**20
    del slices
