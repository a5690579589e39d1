"""TensorFlow takes columns without a copy."""

from __future__ import annotations

import pytest

import tfrfast as tfr
from wire_examples import entry, example, floats, ints

tf = pytest.importorskip("tensorflow")


def test_dlpack_shares_the_memory():
    records = [example(entry(b"i", ints(*range(64))), entry(b"f", floats(*range(64))))] * 8
    features = {"i": tfr.FixedLen([64], "int64"), "f": tfr.FixedLen([8, 8], "float32")}
    for column in tfr.parse_example(records, features).values():
        tensor = tf.experimental.dlpack.from_dlpack(column.__dlpack__())
        assert tuple(tensor.shape) == column.shape
        column.reshape(-1)[0] = 99
        assert tensor.numpy().reshape(-1)[0] == 99
