import functools
import os
import random
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import failing_memory
import tfrfast as tfr
from children import in_threads
from file_limits import few_bytes_a_file
from record_files import names_in

RECORDS = [b"", b"one", bytes(5), *map(random.Random(0).randbytes, [300, 70_000, 3_000_000])]


def read_back(path: Any) -> list[bytes]:
    with tfr.Reader(path, index="memory") as reader:
        return list(reader)


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs a compiler, and LD_PRELOAD"
)
def test_an_index_that_cannot_be_written_is_said(data: Path, tmp_path: Path) -> None:
    """The disk fails after the shard has got its name, while the index is completed in place."""
    source = Path(__file__).parents[1] / "stress" / "failing_calls.c"
    program = (
        "import sys, tfrfast as tfr\n"
        "for name in 'first', 'second':\n"
        "    with tfr.Writer(f'{sys.argv[1]}/{name}') as writer: writer.write(b'one')\n"
    )
    environment = os.environ | {
        "LD_PRELOAD": failing_memory.compiled(source, "cc"),
        "FAILING_UNDER": str(data),
        "FAILING_CALL": "pwrite",
        "FAILING_ERROR": "5",
        "FAILING_AFTER": "1",
        "FAILING_COUNT": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", program, data],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.count("RuntimeWarning") == 1
    assert f"'{data}/first' was written, but its index was not" in done.stderr
    assert "tfrfast index" in done.stderr
    assert read_back(data / "first") == [b"one"]
    with tfr.Reader(data / "second", index="require") as reader:
        assert list(reader) == [b"one"]


class TestRecords:
    def test_read_back_as_they_were_written(self, data: Path) -> None:
        with tfr.Writer(data / "shard") as writer:
            for record in RECORDS:
                writer.write(record)
        assert read_back(data / "shard") == RECORDS

    def test_of_a_batch_read_back_in_its_order(self, data: Path) -> None:
        with tfr.Writer(data / "a") as writer:
            writer.write_batch(RECORDS)
        with tfr.Reader(data / "a") as reader, tfr.Writer(data / "b") as writer:
            writer.write_batch(reader.read([5, 0, 3, 3]))
        assert read_back(data / "b") == [RECORDS[i] for i in (5, 0, 3, 3)]

    def test_of_a_batch_that_are_padding_are_left_out(self, data: Path) -> None:
        batch = tfr.RecordBatch(np.frombuffer(b"abc", np.uint8), [0, 1, 2, 3], [0, 1, 2], [1, 0, 1])
        with tfr.Writer(data / "shard") as writer:
            writer.write_batch(batch)
            assert writer.num_records == 2
        assert read_back(data / "shard") == [b"a", b"c"]

    @pytest.mark.parametrize("kind", [bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)])
    def test_may_be_any_contiguous_buffer(self, data: Path, kind: Callable[[bytes], Any]) -> None:
        with tfr.Writer(data / "shard") as writer:
            writer.write(kind(b"some bytes"))
            writer.write(kind(bytes(100_000)))
        assert read_back(data / "shard") == [b"some bytes", bytes(100_000)]

    @pytest.mark.parametrize(
        ("value", "wrong"),
        [
            ("text", "str"),
            (3, "int"),
            (None, "NoneType"),
            ([b"one"], "list"),
            (np.array([b"one"], object), "an array of Python objects"),
            (np.str_("text"), "numpy.str_"),
            (np.array(["text"]), "an array of str"),
        ],
    )
    def test_of_other_types_are_refused_and_the_writer_goes_on(
        self, data: Path, value: Any, wrong: str
    ) -> None:
        with tfr.Writer(data / "shard") as writer:
            for write in (writer.write, lambda value: writer.write_batch([value])):
                with pytest.raises(TypeError, match=f"must be bytes, not {wrong}"):
                    write(value)
            writer.write(b"good")
        assert read_back(data / "shard") == [b"good"]

    def test_that_are_one_bytes_object_are_no_batch(self, data: Path) -> None:
        with (
            tfr.Writer(data / "shard") as writer,
            pytest.raises(TypeError, match="write takes one"),
        ):
            writer.write_batch(b"many?")

    @settings(max_examples=30)
    @given(
        lengths=st.lists(
            st.sampled_from([0, 1, 300, 2**19 - 1, 2**19, 2**20 - 16, 2**20]), max_size=20
        )
    )
    def test_of_every_length_around_the_buffers_survive(
        self, tmp_path_factory: pytest.TempPathFactory, lengths: list[int]
    ) -> None:
        path = tmp_path_factory.mktemp("data") / "shard"
        records = [bytes([i]) * length for i, length in enumerate(lengths)]
        with tfr.Writer(path, sync=False) as writer:
            writer.write_batch(records)
            assert writer.num_bytes == sum(lengths) + 16 * len(lengths)
        assert os.path.getsize(path) == writer.num_bytes
        assert read_back(path) == records

    def test_from_many_threads_all_arrive_whole(self, data: Path) -> None:
        with tfr.Writer(data / "shard", sync=False) as writer:

            def write(number: int) -> None:
                for i in range(2000):
                    writer.write(b"%d-%d" % (number, i) * (1 + i % 300))

            in_threads(functools.partial(write, n) for n in range(4))
        written = sorted(b"%d-%d" % (n, i) * (1 + i % 300) for n in range(4) for i in range(2000))
        assert sorted(read_back(data / "shard")) == written


class TestIndex:
    def test_is_where_readers_look_first(self, data: Path) -> None:
        with tfr.Writer(data / "shard") as writer:
            writer.write_batch(RECORDS)
        assert names_in(data) == ["shard"]
        with tfr.Reader(data / "shard", index="require") as reader:
            assert list(reader) == RECORDS
            assert reader.shards[0].index == str(data) + ".tfrfast/index"

    def test_goes_to_a_folder_of_choice(self, data: Path, tmp_path: Path) -> None:
        with tfr.Writer(data / "shard", index_folder=tmp_path / "indexes") as writer:
            writer.write(b"one")
        assert names_in(tmp_path) == ["data", "indexes"]
        with tfr.Reader(data / "shard", index_folder=tmp_path / "indexes") as reader:
            assert reader.shards[0].index is not None

    def test_is_left_out_if_not_wanted(self, data: Path, tmp_path: Path) -> None:
        with tfr.Writer(data / "shard", index=False) as writer:
            writer.write(b"one")
        assert names_in(tmp_path) == ["data"]


class TestPublication:
    @pytest.mark.parametrize("compression", [None, "GZIP"])
    def test_an_exception_publishes_nothing_and_keeps_what_was_there(
        self, data: Path, compression: Any
    ) -> None:
        options = {"overwrite": True, "compression": compression}
        for attempt in range(2):
            with pytest.raises(KeyError), tfr.Writer(data / "shard", **options) as writer:
                writer.write_batch(RECORDS)
                raise KeyError
            assert names_in(data) == ([] if attempt == 0 else ["shard"])
            (data / "shard").write_bytes(b"precious")
        assert (data / "shard").read_bytes() == b"precious"
        assert names_in(data.parent) == ["data"]

    def test_a_shard_of_that_name_is_replaced_in_one_step(self, data: Path) -> None:
        with tfr.Writer(data / "shard") as writer:
            writer.write(b"old")
        with (
            tfr.Reader(data / "shard") as old,
            tfr.Writer(data / "shard", overwrite=True) as writer,
        ):
            writer.write(b"new")
            assert read_back(data / "shard") == [b"old"]
            writer.close()
            assert read_back(data / "shard") == [b"new"]
            assert old[0] == b"old"
        assert names_in(data) == ["shard"]

    def test_a_shard_of_that_name_is_an_error_if_not_to_be_replaced(self, data: Path) -> None:
        (data / "shard").write_bytes(b"precious")
        with pytest.raises(FileExistsError, match="overwrite=True"):
            tfr.Writer(data / "shard")

    def test_a_shard_that_came_meanwhile_is_not_replaced_either(self, data: Path) -> None:
        with tfr.Writer(data / "shard") as writer:
            writer.write(b"new")
            (data / "shard").write_bytes(b"precious")
            with pytest.raises(FileExistsError):
                writer.close()
        assert (data / "shard").read_bytes() == b"precious"
        assert names_in(data) == ["shard"]

    def test_the_shard_has_the_permissions_of_any_new_file(self, data: Path) -> None:
        with tfr.Writer(data / "shard"):
            pass
        (data / "other").touch()
        assert stat.S_IMODE(os.stat(data / "shard").st_mode) == stat.S_IMODE(
            os.stat(data / "other").st_mode
        )

    def test_a_missing_folder_is_an_error_at_once(self, data: Path) -> None:
        with pytest.raises(FileNotFoundError) as caught:
            tfr.Writer(data / "missing" / "shard")
        assert caught.value.filename == str(data / "missing" / "shard")

    def test_a_folder_or_a_device_cannot_be_replaced(self, data: Path) -> None:
        with pytest.raises(IsADirectoryError):
            tfr.Writer(data)
        with pytest.raises(ValueError, match="not a regular file"):
            tfr.Writer("/dev/null", index=False)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write to a read-only folder")
    def test_a_read_only_folder_is_an_error_at_once(self, data: Path) -> None:
        data.chmod(0o555)
        with pytest.raises(PermissionError):
            tfr.Writer(data / "shard", index=False)

    def test_a_writer_that_is_dropped_warns_and_publishes_nothing(self, data: Path) -> None:
        writer = tfr.Writer(data / "shard")
        writer.write(b"one")
        with pytest.warns(ResourceWarning, match="never closed"):
            del writer
        assert names_in(data) == []


class TestClosing:
    def test_twice_does_no_harm(self, data: Path) -> None:
        writer = tfr.Writer(data / "shard")
        writer.write(b"one")
        writer.close()
        writer.close()
        assert writer.closed
        assert (writer.num_records, writer.num_bytes) == (1, 19)
        with pytest.raises(ValueError, match="closed"):
            writer.write(b"one")

    def test_after_abort_publishes_nothing(self, data: Path) -> None:
        with tfr.Writer(data / "shard") as writer:
            writer.write(b"one")
            writer.abort()
        assert names_in(data) == []


class TestFailure:
    def test_of_the_disk_names_the_shard_and_publishes_nothing(self, data: Path) -> None:
        (data / "shard").write_bytes(b"precious")
        with (
            few_bytes_a_file(3_000_001),
            pytest.raises(OSError, match="as it was before") as caught,
            tfr.Writer(data / "shard", overwrite=True, sync=False) as writer,
        ):
            for _ in range(100):
                writer.write(bytes(50_000))
        assert caught.value.filename == str(data / "shard")
        assert (data / "shard").read_bytes() == b"precious"
        assert names_in(data) == ["shard"]

    def test_that_is_ignored_still_publishes_nothing(self, data: Path) -> None:
        writer = tfr.Writer(data / "shard")
        with few_bytes_a_file(10_000), pytest.raises(OSError, match="Writing"):
            writer.write(bytes(600_000))
        with pytest.raises(ValueError, match="failed before"):
            writer.write(b"one")
        with pytest.raises(ValueError, match="failed before"):
            writer.close()
        assert names_in(data) == []

    def test_of_the_index_publishes_no_shard(self, data: Path) -> None:
        writer = tfr.Writer(data / "shard")
        writer.write_batch([b""] * 1000)
        writer.write(bytes(600_000))  # large: nothing stays in the buffer
        with few_bytes_a_file(200), pytest.raises(OSError, match="tfrfast/index"):
            writer.close()
        assert names_in(data) == []
        assert tfr._native.indexed_states(f"{data}.tfrfast") == {}


def test_of_the_parameters_that_make_no_sense_are_refused(data: Path) -> None:
    with pytest.raises(ValueError, match=r"tf\.io\.TFRecordWriter"):
        tfr.Writer(data / "shard", compression="ZLIB")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="level is 10"):
        tfr.Writer(data / "shard", compression="GZIP", level=10)
    with pytest.raises(ValueError, match="compression is .gzip., but must be"):
        tfr.Writer(data / "shard", compression="gzip")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="level"):
        tfr.Writer(data / "shard", level=3)
    assert names_in(data) == []
