"""The layer check notices Python imports that point up, and circles."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

CHECK = Path(__file__).resolve().parents[2] / "tools" / "python_layers.py"

if not CHECK.exists():
    pytest.skip(f"there is no {CHECK}: run the tests in a checkout", allow_module_level=True)


@pytest.fixture
def layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The check, on a package of four modules and a folder in `tmp_path`."""
    spec = importlib.util.spec_from_file_location("python_layers", CHECK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "PYTHON_ORDER", ["low", "_parts", "high", "tensorflow", "__init__"])
    for name in ("__init__", "low", "high", "_parts/one", "_parts/two", "tensorflow/ops"):
        write(tmp_path, name, "")
    return module


def write(root: Path, name: str, text: str) -> Path:
    path = root / "tfrfast" / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "from tfrfast.high import name",
        "import tfrfast.high",
        "from tfrfast import high",
        "from . import high",
        "from .high import name",
        "from tfrfast import __version__",
        "def call():\n    from tfrfast.high import name",
        "if TYPE_CHECKING:\n    from tfrfast.high import name",
        "import tfrfast.tensorflow.ops",
    ],
)
def test_an_import_from_below_is_a_breach(layers: Any, tmp_path: Path, text: str) -> None:
    [(_, reason)] = layers.python_order_breaches(write(tmp_path, "low", text))
    assert reason.startswith("tfrfast/low lies below tfrfast/")


@pytest.mark.parametrize(
    "text",
    [
        "from tfrfast.low import name",
        "from tfrfast._parts import one",
        "from tfrfast import low",
        "import numpy",
        "def call():\n    from tfrfast.tensorflow.ops import name",
    ],
)
def test_what_lies_below_and_adapters_on_use_may_be_imported(
    layers: Any, tmp_path: Path, text: str
) -> None:
    assert list(layers.python_order_breaches(write(tmp_path, "high", text))) == []


def test_a_module_without_a_place_is_a_breach(layers: Any, tmp_path: Path) -> None:
    [(_, reason)] = layers.python_order_breaches(write(tmp_path, "new", ""))
    assert "no place in PYTHON_ORDER" in reason
    user = write(tmp_path, "high", "import tfrfast.new")
    assert [line for line, _ in layers.python_order_breaches(user)] == [1]


def test_files_of_a_folder_import_each_other_in_no_circle(layers: Any, tmp_path: Path) -> None:
    folder = tmp_path / "tfrfast" / "_parts"
    write(tmp_path, "_parts/one", "from tfrfast._parts import two")
    assert layers.circle_in(folder) is None
    write(tmp_path, "_parts/two", "def call():\n    from tfrfast._parts.one import name")
    assert set(layers.circle_in(folder)) == {"one", "two"}
