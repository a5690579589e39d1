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
    assert path.read_bytes() == _native.frame(payload)
