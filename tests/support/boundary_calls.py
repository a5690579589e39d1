"""Calls of every kind into native code without the GIL. Each call checks its answer."""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tfrfast as tfr
from tfrfast import _native
from tfrfast.storage.remote.options import Storage
from wire_examples import example_of, ints

RECORDS = [b"%d:" % i + bytes(i % 97) for i in range(1000)]
DAMAGED = 700
FEATURES = {"x": tfr.FixedLen((2,), "int64"), "name": tfr.VarLen("string")}
EXAMPLES = [tfr.encode_example({"x": [i, -i], "name": [b"n%d" % i]}) for i in range(200)]
BUFFER = bytes(1 << 17)
BUFFER_CRC = _native.crc32c(BUFFER)

#: A call; and a function that prepares the call in an empty folder.
Call = Callable[[], object]
Maker = Callable[[Path], Call]


class Records:
    """An iterable that keeps no reference to its iterators."""

    def __iter__(self) -> Iterator[bytes]:
        yield from RECORDS


def shard(folder: Path) -> str:
    path = folder / "shard"
    with tfr.Writer(path, sync=False, overwrite=True) as writer:
        writer.write_batch(RECORDS)
    return str(path)


def read_one(folder: Path) -> Call:
    reader = tfr.Reader(shard(folder))
    numbers = itertools.cycle(range(len(RECORDS)))

    def call() -> None:
        number = next(numbers)
        assert reader[number] == RECORDS[number]

    return call


def read_many(folder: Path) -> Call:
    reader = tfr.Reader(shard(folder), threads=2)

    def call() -> None:
        assert reader.read(range(999, -1, -1)).tolist() == RECORDS[::-1]

    return call


def iterate(folder: Path) -> Call:
    reader = tfr.Reader(shard(folder))

    def call() -> None:
        assert list(reader) == RECORDS

    return call


def open_reader(folder: Path) -> Call:
    path = shard(folder)

    def call() -> None:
        with tfr.Reader([path] * 3, index="memory", threads=2, progress=False) as reader:
            assert reader[1001] == RECORDS[1]

    return call


def open_compressed(folder: Path) -> Call:
    with tfr.Writer(folder / "shard", compression="GZIP", sync=False, overwrite=True) as writer:
        writer.write_batch(RECORDS)

    def call() -> None:
        with tfr.Reader(folder / "shard", index="memory") as reader:
            assert reader[-1] == RECORDS[-1]

    return call


def read_damaged(folder: Path) -> Call:
    path = Path(shard(folder))
    data = bytearray(path.read_bytes())
    data[tfr.Reader(path).locate(DAMAGED).offset + 12] ^= 1
    path.write_bytes(data)
    reader = tfr.Reader(path, index="memory")

    def call() -> None:
        try:
            reader[DAMAGED]
        except tfr.CorruptRecordError as error:
            assert error.record == DAMAGED
        else:
            raise AssertionError("no error")

    return call


def load(folder: Path) -> Call:
    loader = tfr.Loader(shard(folder), 7, threads=2)

    def call() -> None:
        numbers = [number for batch in loader for number in batch.indices.tolist()]
        assert sorted(numbers) == list(range(len(RECORDS)))

    return call


def load_columns(folder: Path) -> Call:
    with tfr.Writer(folder / "shard", sync=False, overwrite=True) as writer:
        writer.write_batch(EXAMPLES)
    loader = tfr.Loader(folder / "shard", 7, features=FEATURES, threads=2)

    def call() -> None:
        assert sorted(i for batch in loader for i in batch["x"][:, 0].tolist()) == list(range(200))

    return call


def write(folder: Path) -> Call:
    def call() -> None:
        with tfr.Writer(folder / "shard", sync=False, overwrite=True, index=False) as writer:
            for record in RECORDS[:100]:
                writer.write(record)
            writer.write(BUFFER)
            assert writer.num_records == 101

    return call


def write_batches(folder: Path) -> Call:
    batch = tfr.Reader(shard(folder))[:100]

    def call() -> None:
        with tfr.Writer(folder / "written", sync=False, overwrite=True, index=False) as writer:
            for records in (RECORDS, iter(RECORDS), Records(), batch):
                writer.write_batch(records)
            assert writer.num_records == 3100

    return call


def write_shards(folder: Path) -> Call:
    def call() -> None:
        with tfr.ShardedWriter(
            folder / "many", num_shards=3, sync=False, compression="GZIP", overwrite=True
        ) as writer:
            writer.write_batch(RECORDS)

    return call


def build_index(folder: Path) -> Call:
    path = shard(folder)

    def call() -> None:
        done: list[int] = []
        _, _, records, damage = _native.build_index(
            os.fsencode(path), b"", True, _native.IndexFolders(), done.append
        )
        assert (records, damage) == (len(RECORDS), 0)
        assert sum(done) == os.path.getsize(path)

    return call


def open_plan(folder: Path) -> Call:
    """Opens shards like a TFRecordDataset, through ctypes and without TensorFlow."""
    names = os.fsencode(shard(folder)) + b"\0"
    library = ctypes.CDLL(str(Path(tfr.__file__).with_name("_tensorflow_ops.so")))
    progress_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64)
    library.tfrfast_open_plan.restype = ctypes.c_void_p
    library.tfrfast_open_plan.argtypes = [
        *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64),
        *(ctypes.c_char_p, ctypes.c_size_t),
        *(progress_type, ctypes.c_char_p, ctypes.c_size_t),
    ]
    library.tfrfast_plan_sizes.restype = ctypes.c_size_t
    numbers = ctypes.POINTER(ctypes.c_int64)
    library.tfrfast_plan_sizes.argtypes = [ctypes.c_void_p, numbers, ctypes.c_size_t]
    library.tfrfast_close_plan.restype = None
    library.tfrfast_close_plan.argtypes = [ctypes.c_void_p]
    progress = progress_type(lambda done, total: 0)
    usual = Storage(None).encoded
    read = (names, len(names), 1, usual, len(usual), progress)

    def call() -> None:
        error = ctypes.create_string_buffer(1000)
        plan = library.tfrfast_open_plan(*read, error, len(error))
        assert plan, error.value
        sizes = (ctypes.c_int64 * 4)()  # the last is of the file
        assert library.tfrfast_plan_sizes(plan, sizes, len(sizes)) == len(sizes)
        assert sizes[0] == len(RECORDS)
        library.tfrfast_close_plan(plan)

    return call


def shuffle(folder: Path) -> Call:
    path = shard(folder)

    def call() -> None:
        shutil.rmtree(folder / "out", ignore_errors=True)
        tfr.shuffle(path, folder / "out/s", num_shards=2, sync=False, progress=False)

    return call


def parse(folder: Path) -> Call:
    def call() -> None:
        columns = tfr.parse_example(EXAMPLES, FEATURES)
        assert columns["x"][:, 1].tolist() == [-i for i in range(200)]

    return call


def parse_generated(folder: Path) -> Call:
    def call() -> None:
        columns = tfr.parse_example((each for each in EXAMPLES), FEATURES)
        assert len(columns["x"]) == 200

    return call


def parse_sequences(folder: Path) -> Call:
    serialized = [example_of(x=ints(1, 2))] * 50  # an Example's features are a context, too

    def call() -> None:
        context, _, _ = tfr.parse_sequence_example(serialized, {"x": tfr.FixedLen((2,), "int64")})
        assert context["x"].tolist() == [[1, 2]] * 50

    return call


def infer(folder: Path) -> Call:
    path = folder / "shard"
    with tfr.Writer(path, sync=False, overwrite=True) as writer:
        writer.write_batch(EXAMPLES)

    def call() -> None:
        assert set(tfr.infer_features(path)) == {"x", "name"}

    return call


def encode(folder: Path) -> Call:
    columns: dict[str, Any] = {"x": np.arange(2000).reshape(1000, 2)}

    def call() -> None:
        assert len(tfr.encode_examples(columns, threads=2)) == 1000

    return call


def encode_one(folder: Path) -> Call:
    wide = np.arange(5, dtype=np.float64)  # which native code leaves to Python

    def call() -> None:
        assert b"wide" in tfr.encode_example({"wide": wide, "name": "n"})

    return call


def checksum(folder: Path) -> Call:
    def call() -> None:
        assert _native.crc32c(BUFFER) == BUFFER_CRC

    return call


def permute(folder: Path) -> Call:
    plan = tfr.Plan(tfr.Shuffle(), 10_000, num_records=100_000)

    def call() -> None:
        # np.unique ends daemon threads badly
        assert len(set(plan.records_at(0, 0, 10_000).tolist())) == 10_000
        assert len(plan.indices(0, 0)) == 10_000

    return call


def list_frames(folder: Path) -> Call:
    reader = tfr.Reader(shard(folder))

    def call() -> None:
        facts = reader._core.describe_shard(0)
        offsets, lengths = facts["frames"].offsets_and_lengths()
        assert lengths.tolist() == [len(record) for record in RECORDS]
        assert offsets[0] == 0

    return call


CALLS: dict[str, Maker] = {
    make.__name__: make
    for make in (
        read_one,
        read_many,
        iterate,
        open_reader,
        open_compressed,
        read_damaged,
        load,
        load_columns,
        write,
        write_batches,
        write_shards,
        build_index,
        open_plan,
        shuffle,
        parse,
        parse_generated,
        parse_sequences,
        infer,
        encode,
        encode_one,
        checksum,
        permute,
        list_frames,
    )
}


def make_calls(folder: Path) -> dict[str, Call]:
    """Returns all calls. Each call has its own folder."""
    calls = {}
    for name, make in CALLS.items():
        (folder / name).mkdir()
        calls[name] = make(folder / name)
    return calls
