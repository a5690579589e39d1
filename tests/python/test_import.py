import ast
import importlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

import tfrfast as tfr
from children import printed_by

# Notes every import of a framework, whether or not it is installed here. Python's dataclasses
# import inspect; on newer Pythons, NumPy does, too.
WATCH = """
import sys
import dataclasses
import numpy

wanted = []

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"tensorflow", "keras", "torch", "jax", "jaxlib", "grain"}:
            wanted.append(name)

sys.meta_path.insert(0, Watch())
before = set(sys.modules)
import tfrfast
for name in tfrfast.__all__:
    getattr(tfrfast, name)
print(*wanted, ";", *(sys.modules.keys() - before))
"""


# Slow imports, and our own modules that only a command or a framework needs.
HEAVY = {"asyncio", "ctypes", "email", "http", "inspect", "multiprocessing", "ssl", "subprocess"}
LATER = {"bench", "cli", "tensorflow", "torch", "jax", "grain"}


def in_fresh_process(code: str) -> str:
    return printed_by(code, PYTHONPATH=str(Path(tfr.__file__).parents[1]))


def import_in_fresh_process() -> tuple[set[str], set[str]]:
    """Returns the frameworks that an import wanted, and the imported modules without NumPy's."""
    wanted, imported = in_fresh_process(WATCH).split(";")
    return set(wanted.split()), set(imported.split())


def test_sources_without_a_native_module_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "tfrfast").mkdir()
    source = Path(tfr.__file__)
    for path in source.parent.rglob("*.py*"):
        copy = tmp_path / "tfrfast" / path.relative_to(source.parent)
        copy.parent.mkdir(exist_ok=True, parents=True)
        copy.write_bytes(path.read_bytes())
    code = "import tfrfast; tfrfast.Reader"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    assert run.returncode == 1
    assert "run Python in another folder" in run.stderr.splitlines()[-1]


def test_importing_tfrfast_imports_no_framework() -> None:
    assert import_in_fresh_process()[0] == set()


def test_importing_tfrfast_imports_nothing_that_takes_long() -> None:
    imported = import_in_fresh_process()[1]
    assert "tfrfast.reader" in imported
    assert imported & (HEAVY | {f"tfrfast.{name}" for name in LATER}) == set()


def test_names_are_imported_when_they_are_used() -> None:
    code = """
import sys
import tfrfast
early = "numpy" in sys.modules
tfrfast.Reader, tfrfast.errors.RecordError
print(early, "numpy" in sys.modules, "Reader" in vars(tfrfast))
"""
    assert in_fresh_process(code).split() == ["False", "True", "True"]


def test_the_version_needs_no_numpy() -> None:
    code = """
import sys
from tfrfast.cli import main
try:
    main(["--version"])
finally:
    print("numpy" in sys.modules)
"""
    assert in_fresh_process(code.replace("finally", "except SystemExit")).split() == [
        "tfrfast",
        tfr.__version__,
        "False",
    ]


def test_the_stub_has_the_names_of_the_module() -> None:
    stub = ast.parse(Path(tfr.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    named = {alias.asname: node.module for node in imports for alias in node.names}
    assert named == tfr._MODULES
    assert len(named) <= 59


def test_all_names_are_there() -> None:
    assert set(tfr.__all__) <= set(dir(tfr))
    assert all(getattr(tfr, name) is getattr(tfr, name) for name in tfr.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = tfr.nonsense  # type: ignore[attr-defined]


@pytest.mark.parametrize("framework", ["torch", "jax", "grain", "ray"])
def test_an_adapter_without_its_framework_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, framework: str
) -> None:
    monkeypatch.setitem(sys.modules, framework, None)
    for name in [name for name in sys.modules if name.startswith(f"tfrfast.{framework}")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match=f"pip install '?{framework}"):
        importlib.import_module(f"tfrfast.{framework}")
    monkeypatch.delitem(vars(tfr), framework, raising=False)
    with pytest.raises(ModuleNotFoundError, match=f"pip install '?{framework}"):
        getattr(tfr, framework)


def test_the_version_is_the_installed_distributions() -> None:
    try:
        installed = importlib.metadata.version("tfrfast")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("tfrfast is built in place here, not installed")
    assert tfr.__version__ == installed


# A thread is in the middle of importing a name's module when another forks.
FORK = """
import os, sys, threading, time

began, may_end = threading.Event(), threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "tfrfast.order":
            began.set()
            may_end.wait(600)

import tfrfast
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=lambda: tfrfast.Shuffle)
thread.start()
began.wait()
threading.Timer(0.2, may_end.set).start()
child = os.fork()
if child == 0:
    import signal
    signal.alarm(600)
    tfrfast.Shuffle(0)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0)
"""


def test_a_child_can_import_what_another_thread_imported_when_it_was_forked() -> None:
    in_fresh_process(FORK)
