"""Tests an installed wheel with only NumPy beside it: loading and reading.

With --published, also tests image decoding and ISA-L, which every published wheel has.
"""

import sys
import tempfile
from pathlib import Path

import tfrfast as tfr
from tfrfast import _native

records = [b"", b"one", bytes(100_000)]
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "shard.tfrecord")
    path.write_bytes(b"".join(map(_native.frame, records)))
    with tfr.Reader(path, index="memory") as reader:
        assert list(reader) == records
        assert reader[[2, 0]].tolist() == [records[2], records[0]]

if "--published" in sys.argv:
    assert Path(tfr.__file__).with_name("libisal.so.2").exists()
    assert tfr._native.inflaters()[0] == "ISA-L"
    images = Path(__file__).parent / "golden" / "images"
    for name in ("subsampled.jpg", "color.png"):
        example = tfr.encode_example({"image": (images / name).read_bytes()})
        assert tfr.parse_example([example], {"image": tfr.Image()})["image"][0].shape == (36, 52, 3)

frameworks = {"tensorflow", "torch", "jax"} & sys.modules.keys()
assert not frameworks, frameworks
print(f"tfrfast {tfr.__version__} works on Python {sys.version.split()[0]}")
