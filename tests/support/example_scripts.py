"""The scripts in examples/, as modules."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load_example(name: str) -> Any:
    """Imports examples/<name>.py with its folder on the path, as if it were run."""
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    module = importlib.import_module(name)
    if name == "mnist_data":
        module.KERAS_FILE = Path(
            os.devnull, "mnist.npz"
        )  # draws digits, even if this user has MNIST
    return module
