import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrfast as tfr
from file_limits import few_open_files
from record_files import names_in

RECORDS = [b"record %d" % i * (i % 50) for i in range(1000)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


class TestNumShards:
    def test_record_i_goes_to_shard_i_modulo_their_number(self, data: Path) -> None:
        with tfr.ShardedWriter(data / "train", num_shards=7) as writer:
            for record in RECORDS[:500]:
                writer.write(record)
            writer.write_batch(RECORDS[500:])
        assert names_in(data) == [f"train-{i:05}-of-00007" for i in range(7)]
        for i, path in enumerate(writer.paths):
            with tfr.Reader(path, index="require") as reader:
                assert list(reader) == RECORDS[i::7]

    def test_without_records_enough_leaves_shards_empty(self, data: Path) -> None:
        with tfr.ShardedWriter(data / "train", num_shards=3) as writer:
            writer.write(b"one")
        with tfr.Reader(data / "train-*", index="require") as reader:
            assert [shard.num_records for shard in reader.shards] == [1, 0, 0]

    def test_may_be_more_than_files_may_be_open(self, data: Path) -> None:
        with few_open_files(256):
            with tfr.ShardedWriter(data / "train", num_shards=400, sync=False) as writer:
                writer.write_batch(RECORDS)
                writer.write_batch([bytes(200_000)] * 400)
            with tfr.Reader(data / "train-*", index="require") as reader:
                assert len(reader) == 1400
        assert len(names_in(data)) == 400


class TestMaxBytes:
    def test_fills_one_shard_after_the_other(self, data: Path) -> None:
        with tfr.ShardedWriter(data / "train", max_bytes=20_000) as writer:
            for record in RECORDS:
                writer.write(record)
        sizes = [os.path.getsize(path) for path in writer.paths]
        assert names_in(data) == [f"train-{i:05}-of-{len(sizes):05}" for i in range(len(sizes))]
        assert max(sizes) <= 20_000
        assert min(sizes[:-1]) > 19_000
        with tfr.Reader(data / "train-*", index="require") as reader:
            assert list(reader) == RECORDS

    def test_gives_a_larger_record_a_shard_of_its_own(self, data: Path) -> None:
        with tfr.ShardedWriter(data / "train", max_bytes=100) as writer:
            writer.write_batch([b"a", bytes(200_000), b"b", b"c"])
        with tfr.Reader(data / "train-*") as reader:
            assert [shard.num_records for shard in reader.shards] == [1, 1, 2]

    def test_makes_one_empty_shard_of_nothing(self, data: Path) -> None:
        with tfr.ShardedWriter(data / "train", max_bytes=100):
            pass
        assert names_in(data) == ["train-00000-of-00001"]

    def test_may_make_more_shards_than_files_may_be_open(self, data: Path) -> None:
        with (
            few_open_files(256),
            tfr.ShardedWriter(data / "train", max_bytes=1, sync=False) as writer,
        ):
            writer.write_batch(RECORDS)
        assert len(names_in(data)) == 1000
        with tfr.Reader(data / "train-*") as reader:
            assert list(reader) == RECORDS


class TestPublication:
    def test_an_exception_publishes_nothing(self, data: Path) -> None:
        for how in ({"num_shards": 3}, {"max_bytes": 1000}):
            with pytest.raises(KeyError), tfr.ShardedWriter(data / "train", **how) as writer:
                writer.write_batch(RECORDS)
                raise KeyError
            assert not data.exists()

    def test_nothing_is_seen_before_the_end(self, data: Path) -> None:
        with tfr.ShardedWriter(data / "train", num_shards=3) as writer:
            writer.write_batch(RECORDS)
            assert [name for name in names_in(data) if name.startswith("train")] == []

    def test_shards_of_that_prefix_and_any_number_are_an_error(self, data: Path) -> None:
        data.mkdir()
        (data / "train-00000-of-00002").write_bytes(b"precious")
        with pytest.raises(FileExistsError, match="overwrite=True"):
            tfr.ShardedWriter(data / "train", num_shards=3)
        assert names_in(data) == ["train-00000-of-00002"]

    def test_other_prefixes_do_not_count(self, data: Path) -> None:
        data.mkdir()
        others = ["train", "train-extra-00000-of-00002", "train-1-of-2", "strain-00000-of-00001"]
        for name in others:
            (data / name).touch()
        with tfr.ShardedWriter(data / "train", num_shards=1, overwrite=True):
            pass
        assert names_in(data) == sorted([*others, "train-00000-of-00001"])

    def test_overwriting_replaces_the_whole_set(self, data: Path) -> None:
        for count in (5, 2):
            with tfr.ShardedWriter(data / "train", num_shards=count, overwrite=True) as writer:
                writer.write_batch(RECORDS)
        assert names_in(data) == ["train-00000-of-00002", "train-00001-of-00002"]
        folder = Path(str(data) + ".tfrfast")
        assert names_in(folder) == ["index"]
        # Sections of removed shards were dropped.
        assert b"of-00002" in (folder / "index").read_bytes()
        assert b"of-00005" not in (folder / "index").read_bytes()

    def test_a_name_that_is_taken_meanwhile_takes_the_others_back(self, data: Path) -> None:
        writer = tfr.ShardedWriter(data / "train", num_shards=3)
        (data / "train-00001-of-00003").write_bytes(b"precious")
        with pytest.raises(FileExistsError):
            writer.close()
        assert names_in(data) == ["train-00001-of-00003"]
        assert (data / "train-00001-of-00003").read_bytes() == b"precious"


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(data: Path) -> Iterator[None]:
    yield
    assert not data.exists() or not [name for name in names_in(data) if name.startswith(".")]


def test_arguments_that_contradict_are_refused(data: Path) -> None:
    data.mkdir()
    with pytest.raises(ValueError, match="either num_shards or max_bytes"):
        tfr.ShardedWriter(data / "train")
    with pytest.raises(ValueError, match="either num_shards or max_bytes"):
        tfr.ShardedWriter(data / "train", num_shards=3, max_bytes=3)
    with pytest.raises(ValueError, match="num_shards"):
        tfr.ShardedWriter(data / "train", num_shards=0)
    with pytest.raises(ValueError, match="train-00000-of-00064"):
        tfr.ShardedWriter(f"{data}/", num_shards=3)
