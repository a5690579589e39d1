"""Objects of the native module: made while memory runs out, and pickled."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import failing_memory
import tfrfast as tfr
from patience import PATIENCE_S
from tfrecord_model import write_shard

WAYS: list[Callable[[Any], object]] = [
    *[lambda made, protocol=protocol: pickle.dumps(made, protocol) for protocol in range(6)],  # type: ignore[misc]
    lambda made: made.__reduce__(),
]


@pytest.mark.parametrize("way", WAYS, ids=[*map(str, range(6)), "__reduce__"])
def test_what_cannot_be_pickled_says_so_in_every_protocol(
    way: Callable[[Any], object], tmp_path: Path
) -> None:
    write_shard(tmp_path / "shard", [b"one", b"two"])
    reader = tfr.Reader(tmp_path / "shard")
    iterator = iter(reader)
    with pytest.raises(TypeError, match="cannot pickle '.*RecordIterator' object"):
        way(iterator)
    others: list[Any] = [
        tfr.Loader(reader, 1)._core.begin(),
        reader._core,
        tfr.Plan(tfr.Shuffle(), 1, num_records=2)._core,
    ]
    for made in (*others, tfr.Writer(tmp_path / "new")._core):
        with pytest.raises(TypeError, match="cannot pickle"):
            way(made)


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which(os.environ.get("CXX", "c++")) is None,
    reason="a compiler makes the library that fails",
)
def test_memory_that_runs_out_while_an_object_is_made_is_a_memory_error() -> None:
    wanted = ["Plan", "iterator", "batch", "Loader"]
    done = subprocess.run(
        [sys.executable, failing_memory.__file__, "60", "1", *wanted],
        env=os.environ | {"LD_PRELOAD": failing_memory.library()},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == wanted
