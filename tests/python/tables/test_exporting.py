"""Parquet from records, written by threads, by processes, and by tasks that run twice."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from file_limits import few_bytes_a_file
from record_files import flip_payload_byte
from twice import Twice

pytest.importorskip("pyarrow")


@pytest.fixture(params=["threads", "twice", "processes"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor | None]:
    if request.param == "processes":
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            yield pool
    else:
        yield Twice() if request.param == "twice" else None


@pytest.mark.parametrize("num_shards", [None, 3])
def test_rows_are_those_of_a_scan(
    shards: list[str], tmp_path: Path, executor: Executor | None, num_shards: int | None
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = tfr.export(
        shards, tmp_path / "x.parquet", num_shards=num_shards, record_column=True, executor=executor
    )
    assert len(os.listdir(tmp_path)) == len(made.paths) == (num_shards or 1)
    table = pa.concat_tables([pq.read_table(path) for path in made.paths])
    expected = pa.table(tfr.scan(shards, record_column=True, sample=None))
    assert table.equals(expected)
    assert (made.num_records, made.skipped) == (1500, [])
    assert made.num_bytes == sum(map(os.path.getsize, made.paths))


def test_an_error_leaves_nothing_and_keeps_what_was_there(
    shards: list[str], tmp_path: Path, executor: Executor | None
) -> None:
    some = [str(tmp_path / Path(shard).name) for shard in shards]
    for old, new in zip(shards, some, strict=True):
        Path(new).write_bytes(Path(old).read_bytes())
    options: dict[str, Any] = {"num_shards": 4, "columns": ["id"], "sample": 10}
    out = tmp_path / "out"
    before = tfr.export(some, out / "x", **options).paths
    flip_payload_byte(some[-1], tfr.Reader(some[-1]), 3)
    with pytest.raises(FileExistsError):
        tfr.export(some, out / "x", executor=executor, **options)
    with pytest.raises(tfr.CorruptRecordError, match="record 3"):
        tfr.export(some, out / "x", overwrite=True, executor=executor, **options)
    assert sorted(map(str, out.iterdir())) == sorted(before)
    made = tfr.export(
        some, out / "x", overwrite=True, executor=executor, on_corruption="skip", **options
    )
    assert made.num_records == 1499
    assert [each.path for each in made.skipped] == [some[-1]]


def test_a_full_disk_is_said_with_the_file(shards: list[str], tmp_path: Path) -> None:
    with few_bytes_a_file(2000), pytest.raises(OSError, match="File too large: .*out"):
        tfr.export(shards, tmp_path / "out")
    assert os.listdir(tmp_path) == []


def test_shards_without_any_records_are_left_out_damage(
    shards: list[str], tmp_path: Path, executor: Executor | None
) -> None:
    lost = tmp_path / "lost"
    lost.write_bytes(b"\xff" * 99)
    some = [*shards, str(lost)]
    options: dict[str, Any] = {"columns": ["id"], "sample": 10, "on_corruption": "skip"}
    made = tfr.export(some, tmp_path / "x", executor=executor, **options)
    assert (made.num_records, made.skipped) == (1500, [(str(lost), 0, 99, None)])


def test_a_pickled_scan_refuses_other_data(shards: list[str], tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(Path(shards[0]).read_bytes())
    pickled = pickle.dumps(tfr.scan(path, columns=["id"]).part(rows=slice(10)))
    assert len(pickle.loads(pickled)) == 10
    path.write_bytes(Path(shards[-1]).read_bytes()[:0])
    with pytest.raises(tfr.StaleIndexError, match="other data than the scan"):
        pickle.loads(pickled)
