"""Code that a type checker must accept. Where a comment ignores an error, the checker must find the
error.
"""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import tfrfast as tfr

plan = tfr.Plan(tfr.BlockShuffle(8, 2, indices=[1, 2]), 32, num_records=1000, remainder="pad")
assert_type(plan.steps, int)
assert_type(plan.indices(0, 1), NDArray[np.int64])
assert_type(plan.rows(0, 1), tuple[NDArray[np.int64], NDArray[np.bool_]])

tfr.Plan(tfr.Weighted([1, 2.5]), tfr.ByTokens(9, lengths=np.array([1, 2])))
tfr.Plan(1000, 32)  # type: ignore[arg-type]
tfr.Loader("data", tfr.ByTokens(512, "ids"), order=tfr.InOrder())
tfr.Loader("data", tfr.Packed(512, rows=2, lengths=["ids", "mask"]), features=["ids"])
tfr.Packed({"inputs": 512, "targets": 512}, rows=4, overlong="cut")
tfr.Loader("data", 9, shuffle=tfr.BlockShuffle(8, 2))  # type: ignore[arg-type]
tfr.Plan(tfr.Shuffle(), 32, num_records=1000, remainder="fill")  # type: ignore[arg-type]
tfr.Plan(tfr.Shuffle(), 32, 1000)  # type: ignore[call-arg]
