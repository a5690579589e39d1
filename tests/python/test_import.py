import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tfrfast as tfr

# Notes every import of a framework, whether or not it is installed here.
WATCH = """
import sys, time
import numpy

wanted = []

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"tensorflow", "keras", "torch", "jax", "jaxlib"}:
            wanted.append(name)

sys.meta_path.insert(0, Watch())
began = time.perf_counter()
import tfrfast
print(time.perf_counter() - began, *wanted)
"""


def import_in_fresh_process(folder: Path) -> tuple[float, list[str]]:
    installed = str(Path(tfr.__file__).parents[1])
    output = subprocess.run(
        [sys.executable, "-c", WATCH],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": installed},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    seconds, *wanted = output.split()
    return float(seconds), wanted


def test_importing_tfrfast_imports_no_framework(tmp_path: Path) -> None:
    assert import_in_fresh_process(tmp_path)[1] == []


def test_importing_tfrfast_is_quick(tmp_path: Path) -> None:
    assert min(import_in_fresh_process(tmp_path)[0] for _ in range(3)) < 0.25


def test_the_version_is_the_installed_distributions() -> None:
    try:
        installed = importlib.metadata.version("tfrfast")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("tfrfast is built in place here, not installed")
    assert tfr.__version__ == installed
