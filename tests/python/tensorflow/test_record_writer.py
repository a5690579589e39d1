"""TFRecordWriter beside TensorFlow's: the same files, the same errors."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr

tf = pytest.importorskip("tensorflow")
pytestmark = [pytest.mark.tensorflow, pytest.mark.newest]

RECORDS = [b"", b"one", b"\xff" * 300, bytes(1_000_000), b"text"]
WRITERS = [tfr.TFRecordWriter, tf.io.TFRecordWriter]
OPTIONS = tf.io.TFRecordOptions


def read_back(path: Path, compression: str) -> list[bytes]:
    return [r.numpy() for r in tf.data.TFRecordDataset(str(path), compression)]


@pytest.mark.parametrize(
    ("options", "compression"),
    [
        (None, ""),
        ("", ""),
        ("GZIP", "GZIP"),
        ("ZLIB", "ZLIB"),
        (OPTIONS("GZIP", compression_level=1), "GZIP"),
        (OPTIONS("ZLIB", window_bits=12, mem_level=4, compression_strategy=2), "ZLIB"),
        (OPTIONS(OPTIONS("ZLIB")), "ZLIB"),
        (1, "ZLIB"),
        (2, "GZIP"),
    ],
)
def test_tensorflow_reads_what_was_written(tmp_path: Path, options: Any, compression: str) -> None:
    with tfr.TFRecordWriter(str(tmp_path / "shard"), options) as writer:
        for record in RECORDS:
            writer.write(record)
    assert read_back(tmp_path / "shard", compression) == RECORDS


def test_files_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    files = []
    for kind in WRITERS:
        with kind(str(tmp_path / "shard")) as writer:
            for record in [*RECORDS, "\u00e9 text"]:
                writer.write(record)
        files.append((tmp_path / "shard").read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_what_was_flushed_is_seen_by_others(tmp_path: Path, compression: str) -> None:
    writer = tfr.TFRecordWriter(str(tmp_path / "shard"), compression)
    writer.write(b"one")
    writer.flush()
    data = (tmp_path / "shard").read_bytes()
    if compression:
        data = zlib.decompressobj(47).decompress(data)
    assert data == tfr._native.frame(b"one")
    writer.close()


FLUSH_MODES = [
    None,
    zlib.Z_NO_FLUSH,
    zlib.Z_PARTIAL_FLUSH,
    zlib.Z_SYNC_FLUSH,
    zlib.Z_FULL_FLUSH,
    zlib.Z_BLOCK,
]


def write_all(kind: Any, path: Path, options: Any, flush: bool = False) -> bytes:
    with kind(str(path), options) as writer:
        for record in RECORDS * 2:
            writer.write(record)
            if flush:
                writer.flush()
    return path.read_bytes()


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
@pytest.mark.parametrize("mode", FLUSH_MODES)
class TestFlushModes:
    @pytest.mark.parametrize("flush", [False, True])
    def test_tensorflow_reads_all(
        self, tmp_path: Path, compression: str, mode: int | None, flush: bool
    ) -> None:
        options = OPTIONS(compression, flush_mode=mode)
        for kind in WRITERS:
            write_all(kind, tmp_path / "shard", options, flush)
            assert read_back(tmp_path / "shard", compression) == RECORDS * 2

    def test_flush_shows_what_was_written(
        self, tmp_path: Path, compression: str, mode: int | None
    ) -> None:
        for kind in WRITERS:
            with kind(str(tmp_path / "shard"), OPTIONS(compression, flush_mode=mode)) as writer:
                frames = b""
                for record in (b"one", b"two"):
                    writer.write(record)
                    writer.flush()
                    frames += tfr._native.frame(record)
                    data = (tmp_path / "shard").read_bytes()
                    assert zlib.decompressobj(47).decompress(data) == frames

    def test_the_stream_is_flushed_as_often(
        self, tmp_path: Path, compression: str, mode: int | None
    ) -> None:
        options = OPTIONS(compression, flush_mode=mode, input_buffer_size=5000)
        marks = []
        for kind in WRITERS:
            with kind(str(tmp_path / "shard"), options) as writer:
                for number in range(100):
                    writer.write(b"%d" % number * 1000)
            # The empty stored block that ends what Z_SYNC_FLUSH or Z_FULL_FLUSH flushed.
            marks.append((tmp_path / "shard").read_bytes().count(b"\0\0\xff\xff"))
        flushes = mode in (zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH)
        assert marks[0] == marks[1]
        assert (marks[1] > 20) == flushes


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_after_a_full_flush_others_can_begin_to_read(tmp_path: Path, compression: str) -> None:
    options = OPTIONS(compression, flush_mode=zlib.Z_FULL_FLUSH, input_buffer_size=5000)
    for kind in WRITERS:
        with kind(str(tmp_path / "shard"), options) as writer:
            for _ in range(20):
                writer.write(b"the same" * 500)
        later = (tmp_path / "shard").read_bytes().split(b"\0\0\xff\xff")[2:]
        assert b"the same" in zlib.decompressobj(-15).decompress(later[0])


@pytest.mark.parametrize("mode", [zlib.Z_FINISH, zlib.Z_TREES, 7, -1])
def test_modes_that_lose_records_are_refused(tmp_path: Path, mode: int) -> None:
    options = OPTIONS("ZLIB", flush_mode=mode, input_buffer_size=100)
    with pytest.raises(ValueError, match="flush_mode is"):
        tfr.TFRecordWriter(tmp_path / "shard", options)
    assert not (tmp_path / "shard").exists()


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_after_close_writing_and_flushing_are_failed_preconditions(
    tmp_path: Path, kind: Any, compression: str
) -> None:
    writer = kind(str(tmp_path / "shard"), compression)
    writer.close()
    writer.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="Writer is closed"):
        writer.write(b"one")
    with pytest.raises(tf.errors.FailedPreconditionError, match="Writer is closed"):
        writer.flush()


def outcome(attempt: Callable[[], Any]) -> tuple[type, str] | None:
    try:
        attempt()
    except Exception as error:
        return type(error), getattr(error, "message", str(error))
    return None


@pytest.mark.parametrize("options", [None, "ZLIB", "gzip", 5, OPTIONS("GZIP")])
@pytest.mark.parametrize("name", ["missing/shard", ".", "shard"])
def test_errors_at_opening_are_tensorflows(tmp_path: Path, options: Any, name: str) -> None:
    path = str(tmp_path / name)
    ours, theirs = (outcome(lambda k=kind: k(path, options).close()) for kind in WRITERS)
    assert ours == theirs


@pytest.mark.parametrize("record", [3, None, [b"one"]])
def test_records_of_other_types_are_type_errors(tmp_path: Path, record: Any) -> None:
    for kind in WRITERS:
        with kind(str(tmp_path / "shard")) as writer, pytest.raises(TypeError):
            writer.write(record)


def test_gzip_files_are_plain_gzip(tmp_path: Path) -> None:
    with tfr.TFRecordWriter(tmp_path / "shard", "GZIP") as writer:
        writer.write(b"one")
    assert gzip.decompress((tmp_path / "shard").read_bytes()) == tfr._native.frame(b"one")


@pytest.mark.parametrize("batch", [False, True])
def test_tensorflow_reads_every_record_of_writer(tmp_path: Path, batch: bool) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "shard"
    with tfr.Writer(path) as writer:
        if batch:
            writer.write_batch(RECORDS)
        else:
            for record in RECORDS:
                writer.write(record)
    assert read_back(path, "") == RECORDS
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as theirs:
        for record in RECORDS:
            theirs.write(record)
    assert path.read_bytes() == (tmp_path / "theirs").read_bytes()
