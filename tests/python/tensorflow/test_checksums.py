import struct
from pathlib import Path

import pytest

from tfrfast import _native

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tensorflow


def test_tensorflow_writes_the_checksums_we_compute(tmp_path: Path) -> None:
    payload = bytes(range(256)) * 3
    path = tmp_path / "shard"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(payload)
    length = struct.pack("<Q", len(payload))
    assert path.read_bytes() == (
        length
        + struct.pack("<I", _native.masked_crc32c(length))
        + payload
        + struct.pack("<I", _native.masked_crc32c(payload))
    )
