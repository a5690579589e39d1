"""Text indexes of other tools."""

import gzip
from pathlib import Path

import pytest

import tfrfast as tfr
from tfrecord_model import shard_of, write_shard
from tfrfast.jobs.indexing.text import export_text_indexes, import_text_indexes

RECORDS = [b"x" * i for i in range(50)]


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    (tmp_path / "data").mkdir()
    return [write_shard(tmp_path / "data" / name, RECORDS) for name in ("a", "b")]


def test_they_go_out_and_come_back(shards: list[str], tmp_path: Path) -> None:
    texts = export_text_indexes(tmp_path / "data" / "*", tmp_path / "idx")
    assert texts == [str(tmp_path / "idx" / "a.idx"), str(tmp_path / "idx" / "b.idx")]
    lines = [line.split() for line in Path(texts[0]).read_text().splitlines()]
    at = 0
    for record, (offset, length) in zip(RECORDS, lines, strict=True):
        assert (int(offset), int(length)) == (at, 16 + len(record))
        at += 16 + len(record)
    built = import_text_indexes(shards, tmp_path / "idx", index_folder=tmp_path / "own")
    assert [each.num_records for each in built] == [50, 50]
    assert list(tfr.Reader(shards, index=tmp_path / "own")) == RECORDS * 2
    import_text_indexes(shards, tmp_path / "idx")
    assert list(tfr.Reader(shards, index="require")) == RECORDS * 2


def test_what_is_not_the_shards_is_refused(shards: list[str], tmp_path: Path) -> None:
    texts = export_text_indexes(shards, tmp_path / "idx")
    lines = Path(texts[1]).read_text().splitlines()
    Path(texts[1]).write_text("\n".join([f"0 {16 + 17 + 16}", *lines[3:]]))
    with pytest.raises(ValueError, match="has no such records|should begin at"):
        import_text_indexes(shards, tmp_path / "idx")
    Path(texts[1]).unlink()
    with pytest.raises(FileNotFoundError):
        import_text_indexes(shards, tmp_path / "idx")


def test_compressed_shards_are_refused(tmp_path: Path) -> None:
    (tmp_path / "shard").write_bytes(gzip.compress(shard_of(RECORDS)))
    with pytest.raises(ValueError, match="compressed"):
        export_text_indexes(tmp_path / "shard", tmp_path / "idx")
