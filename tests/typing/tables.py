"""Code that a type checker must accept. Where a comment ignores an error, the checker must find the
error.
"""

import numpy as np
from typing_extensions import assert_type

import tfrfast as tfr
from tfrfast.tables.scanning import Scan

scan = tfr.scan(
    "data-*", features={"x": tfr.FixedLen((), "int64")}, records=slice(5), record_column=True
)
assert_type(scan, Scan)
assert_type(scan.columns, list[str])
assert_type(len(scan.part(["x"], rows=slice(3))), int)
tfr.scan(
    tfr.Reader("data-*"), features="infer", records=np.arange(3), shard_column="file", tensors=True
)

tfr.scan("data-*", "infer")  # type: ignore[call-arg]
tfr.scan("data-*", record_column=1.5)  # type: ignore[arg-type]
