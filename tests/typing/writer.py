"""Code that a type checker must accept. Where a comment ignores an error, the checker must find the
error.
"""

from pathlib import Path

import numpy as np
from typing_extensions import assert_type

import tfrfast as tfr
from tfrfast.jobs.comparing.differences import Differences
from tfrfast.jobs.shuffling.publication import Shuffled

with tfr.Writer(Path("shard"), sync=False, index_folder="folder") as writer:
    assert_type(writer, tfr.Writer)
    writer.write(b"one")
    writer.write(memoryview(b"two"))
    writer.write_batch([b"three", bytearray(b"four")])
    writer.write_batch(tfr.encode_examples({"x": np.arange(3)}, raw=["x"]))
    writer.write_example({"label": 3, "image": b"jpeg"})
    assert_type(writer.num_records, int)
    writer.write("text")  # type: ignore[arg-type]

with tfr.ShardedWriter("out/train", max_bytes=200 << 20, overwrite=True) as sharded:
    assert_type(sharded, tfr.ShardedWriter)
    assert_type(sharded.paths, list[str])

assert_type(tfr.encode_example({"x": 1}), bytes)
assert_type(tfr.encode_examples({"x": [1]}), tfr.RecordBatch)

made = tfr.shuffle("in-*", "out/train", num_shards={"a": 1}, splits={"a": 1.0}, max_memory=1 << 30)
assert_type(made, Shuffled)
assert_type(made.splits, dict[str, list[str]])

tfr.Writer("shard", compression="gzip")  # type: ignore[arg-type]
tfr.Writer("shard", "GZIP")  # type: ignore[call-arg]

found = tfr.diff("a/*", [Path("b")], key="id", max_memory="1GiB", on_corruption="skip")
assert_type(found, Differences)
assert_type(found.is_same, bool)
tfr.copy("b/*", found.only_b, "out/new")
tfr.diff("a")  # type: ignore[call-arg]
