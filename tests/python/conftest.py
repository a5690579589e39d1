import gc
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import tfrfast

# Every run has the same examples, and no test fails for being slow. TFRFAST_TEST_EXAMPLES sets the
# number of examples in each differential test, and makes new examples in every test.
settings.register_profile(
    "tfrfast",
    derandomize="TFRFAST_TEST_EXAMPLES" not in os.environ,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("tfrfast")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """`pytest` without a path runs all tests, on all processors if pytest-xdist is installed.

    Tests also wait, so there is one process more than processors.
    """
    if hasattr(config, "workerinput"):  # a worker, which must not start workers
        return
    option = config.option
    is_whole = config.args_source is not pytest.Config.ArgsSource.ARGS
    if is_whole and getattr(option, "numprocesses", 0) is None and option.dist == "no":
        if option.usepdb:  # needs a single process
            return
        processors = (
            len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
        )
        option.numprocesses = min(processors + 1, 8)  # each process may import TensorFlow
        option.dist = "worksteal"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Imports leave a million objects, TensorFlow's, in which no later search looks for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With TFRFAST_SKIP_NOTHING, everything must be installed, and a skip is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")  # not in a worker
    if os.environ.get("TFRFAST_SKIP_NOTHING") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True, scope="session")
def children_import_what_we_import(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Leaves the checkout's root, where a child would import the sources, which are not built."""
    root = Path(__file__).resolve().parents[2]
    installed = Path(tfrfast.__file__).resolve().parents[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("elsewhere"))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(installed), str(root / "tests/support")]))
        sys.path.append(str(root))  # last: spawned children unpickle functions of tests.python.*
        yield
        sys.path.remove(str(root))


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The index cache, empty for each test and never the user's own."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(folder))
    return folder


@pytest.fixture(autouse=True, scope="session")
def faults_are_raised() -> Iterator[None]:
    """A fault of the planner fails a test. In a program, TensorFlow would read instead."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFRFAST_RAISE_FAULTS", "1")
        yield


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a folder of this test the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=["mmap", "pread"])
def io(request: pytest.FixtureRequest) -> str:
    """Both ways to read a shard."""
    return str(request.param)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A new folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder
