"""Code that a type checker must accept. Where a comment ignores an error, the checker must find the
error.
"""

from pathlib import Path

import numpy as np
from typing_extensions import assert_type

import tfrfast as tfr
from tfrfast.jobs.number_stats import Statistics
from tfrfast.reader import Location

with tfr.Reader([Path("train-*"), "more"], compression=None, threads=2) as reader:
    assert_type(reader, tfr.Reader)
    assert_type(len(reader), int)
    assert_type(reader[-1], bytes)
    assert_type(reader[2:5], tfr.RecordBatch)
    assert_type(reader[np.arange(3)], tfr.RecordBatch)
    assert_type(reader.locate(0), Location)
    records: list[bytes] = list(reader)

with tfr.Reader("s3://bucket/*", cache=tfr.DiskCache(Path("cache"), limit="1G")) as reader:
    assert_type(len(reader), int)
tfr.DiskCache("cache")  # type: ignore[call-arg]

batch = reader.read([3, 1, 3])
assert_type(batch[0], bytes)
assert_type(batch.view(0), memoryview)
assert_type(batch.tolist(), list[bytes])
as_list: list[bytes] = list(batch)

tfr.Reader("shard", "GZIP")  # type: ignore[call-arg]
reader["name"]  # type: ignore[index]
batch.data = batch.data  # type: ignore[misc]

steps = tfr.Steps(
    "data",
    along="s/",
    windows={"s/action": tfr.Window(after=15, pad=None), "goal": tfr.Later("s/image", seed=1)},
    only=lambda each: each["s/action"] > 0,
)
assert_type(steps[3], bytes)
tfr.Steps("data", along={"s/action": 7}, only=np.arange(3))
tfr.Steps("data", along="s/", only="s/action")  # type: ignore[arg-type]
tfr.Later("s/image")  # type: ignore[call-arg]
tfr.Window(pad="edge")  # type: ignore[arg-type]
assert_type(tfr.statistics(steps, features=["s/action"]), Statistics)
