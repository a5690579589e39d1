"""Code that a type checker must accept. Where a comment ignores an error, the checker must find the
error.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import tfrfast as tfr
from tfrfast.columns import Pictures

mask: NDArray[np.bool_] = np.array([True, False])
batch = tfr.Batch({"x": np.arange(2)}, np.arange(2), mask)
assert_type(batch[1:], tfr.Batch)
assert_type(batch[mask], tfr.Batch)
assert_type(batch[[1, 0]], tfr.Batch)
assert_type(batch[np.arange(2)], tfr.Batch)
column: NDArray[np.int64] = batch["x"]

names = tfr.Bytes(np.zeros(2, np.uint8), np.arange(3))
assert_type(names == b"cat", NDArray[np.bool_])
assert_type(names != [b"cat", b"dog"], NDArray[np.bool_])
assert_type(names[1:], tfr.Bytes)
assert_type(batch[names == b"cat"], tfr.Batch)
name: bytes = names[0]

ragged = tfr.Ragged(np.arange(2), np.arange(3))
assert_type(ragged[::-1], tfr.Ragged)
assert_type(ragged[mask], tfr.Ragged)
assert_type(ragged[[1, 1]], tfr.Ragged)
pictures = Pictures(np.arange(12), np.array([0, 12]), np.array([[2, 2, 3]]))
assert_type(pictures[::-1], Pictures)
assert_type(pictures.to_ragged(), tfr.Ragged)
tfr.Image(crop="random", flip=True)
tfr.SerializedTensor((None, 7), "float16")
assert_type(ragged.to_padded(3, pad=-1), NDArray[Any] | tfr.Bytes)
assert_type(ragged.to_padded((3, None)), NDArray[Any] | tfr.Bytes)
row: NDArray[np.int64] = ragged[0]

sparse = tfr.Sparse(np.zeros((1, 2), np.int64), np.arange(1), np.array([2, 2]))
assert_type(sparse[mask], tfr.Sparse)
assert_type(sparse[0], tfr.Sparse)

records = tfr.encode_examples({"x": [1, 2]})
assert_type(records[0], bytes)
assert_type(records[1:], tfr.RecordBatch)
assert_type(records[mask], tfr.RecordBatch)
assert_type(records[[0, 1]], tfr.RecordBatch)

batch[0]  # type: ignore[call-overload]
ragged.to_padded("long")  # type: ignore[arg-type]
records["x"]  # type: ignore[index]


def message_features(message: tfr.Message, records: list[bytes]) -> None:
    features = {"x": message["a.b"], "has": message.has("a"), "kind": message.names("k")}
    batch = tfr.parse_example(records, {**features, **message.features(["c"])})
    assert_type(message.name, str)
    assert_type(batch, tfr.Batch)
