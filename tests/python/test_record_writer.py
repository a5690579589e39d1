"""TFRecordWriter without TensorFlow. tensorflow/test_record_writer.py compares the two."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tfrfast as tfr
from file_limits import few_bytes_a_file


@pytest.fixture(autouse=True)
def _nobody_imported_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another test may have imported TensorFlow, and then errors would be TensorFlow's."""
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)


SCRIPT = """
import sys
import tfrfast as tfr
path = sys.argv[1]
for options in (None, "GZIP"):
    writer = tfr.TFRecordWriter(path, options)
    writer.write(b"one")
    writer.close()
    for use in (lambda: writer.write(b"two"), writer.flush):
        try:
            use()
        except ValueError as error:
            assert str(error) == "Writer is closed.", error
        else:
            sys.exit("no error")
try:
    tfr.TFRecordWriter(path + "/missing")
except NotADirectoryError as error:
    assert error.filename == path + "/missing"
else:
    sys.exit("no error")
assert "tensorflow" not in sys.modules
"""


def test_without_tensorflow_errors_are_pythons(tmp_path: Path) -> None:
    packages = os.pathsep.join([os.path.dirname(tfr.__path__[0]), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "shard")],
        env={**os.environ, "PYTHONPATH": packages},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_nothing_follows_half_a_record_after_a_failure(tmp_path: Path) -> None:
    writer = tfr.TFRecordWriter(tmp_path / "shard")
    with few_bytes_a_file(2000):
        writer.write(bytes(1000))
        writer.write(bytes(1500))
        with pytest.raises(OSError, match="File too large"):
            writer.flush()
    for use in (writer.flush, lambda: writer.write(b"more")):
        with pytest.raises(OSError, match="File too large"):
            use()
    writer.close()
    with tfr.Reader(tmp_path / "shard", index="memory", on_corruption="skip") as reader:
        assert list(reader) == [bytes(1000)]
    assert (tmp_path / "shard").stat().st_size == 2000


def test_a_shard_is_seen_while_it_is_written(tmp_path: Path) -> None:
    writer = tfr.TFRecordWriter(tmp_path / "shard")
    assert (tmp_path / "shard").stat().st_size == 0
    writer.write(b"one")
    writer.flush()
    with tfr.Reader(tmp_path / "shard", index="memory") as reader:
        assert list(reader) == [b"one"]
    writer.close()
