"""The layer rule: imports point down only. Prints every breach and exits 1 if there is one.

The core knows neither Python nor TensorFlow; the two kinds of bindings do not know each other;
inside the core each folder knows only the folders before it. So does each folder and module of the
Python package, and `import tfrfast` imports nothing but NumPy and the standard library. What is
easily done wrong is done in one place.
"""

from __future__ import annotations

import ast
import graphlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The core's folders, from the ground up.
CORE_ORDER = [
    "base",
    "storage",
    "crc32c",
    "shard",
    "codec",
    "index",
    "read",
    "order",
    "example",
    "load",
    "write",
]

# Which quoted includes each tree may use, by the include's first folder.
QUOTED = {
    "csrc/core": {"core"},
    "csrc/python": {"core", "python"},
    "csrc/tensorflow": {"core", "tensorflow"},
    "tests/core": {"core"},
    "tests/fuzz": {"core"},
    "benchmarks/core": {"core"},
}

# Which headers in angle brackets, beyond standard C++ and the operating system's.
ANGLED = {
    "csrc/core": r"(?!)",
    "csrc/python": r"pybind11/.*|Python\.h",
    "csrc/tensorflow": r"(?!)",
    "tests/core": r"doctest/.*",
    "tests/fuzz": r"(?!)",
    "benchmarks/core": r"benchmark/.*",
}
STANDARD_CXX = re.compile(r"[a-z_0-9]+")
OPERATING_SYSTEM = re.compile(
    r"(sys|linux|mach|mach-o|machine|asm)/[a-z_0-9-]+\.h"
    r"|(cxxabi|dirent|dlfcn|errno|fcntl|poll|pthread|pwd|sched|setjmp|signal|stdio|time|ucontext|unistd)\.h"
    r"|(arm_acle|arm_neon|cpuid|immintrin|nmmintrin|wmmintrin|x86intrin)\.h"
)
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')

# What only one place may do: the pattern, that place, and what to use elsewhere.
RESERVED = [
    (
        re.compile(
            r"gil_scoped_\w+|PyGILState_\w+|PyEval_(?:Save|Restore)Thread|Py_BEGIN_ALLOW\w+"
        ),
        ("csrc/python/without_gil.h", "csrc/python/without_gil.cpp"),
        "WithoutGil of python/without_gil.h",
    ),
    (
        re.compile(r"std::(?:jthread|async)\b|std::thread\(|pthread_create|pthread_sigmask"),
        ("csrc/core/base/thread.cpp", "csrc/core/storage/fault_guard.cpp"),
        "start_thread() of core/base/thread.h",
    ),
    (
        re.compile(r"\bgetpp?id\b"),
        ("csrc/core/base/process.cpp", "csrc/core/storage/temporary.cpp"),
        "HomeProcess of core/base/process.h",
    ),
]

# Files are one folder's business: no other includes the headers that declare the calls, nor makes
# those that other headers declare, too.
STORAGE = "csrc/core/storage/"
FILE_HEADERS = re.compile(
    r"(dirent|fcntl|pwd|unistd|fstream|filesystem)(\.h)?|linux/[a-z_]+\.h"
    r"|sys/(file|ioctl|mman|mount|param|resource|sendfile|stat|statfs|statvfs|uio|vfs)\.h"
)
FILE_CALLS = re.compile(
    r"(?<!\w)(?:std)?::(f?open|openat|close|p?readv?2?|p?writev?2?|lseek|mmap|munmap|madvise"
    r"|posix_\w+|[fl]?stat|fstatat|statx|f?statv?fs|fsync|fdatasync|fallocate|f?truncate"
    r"|rename(?:at2?)?|link(?:at)?|unlink(?:at)?|mkdir(?:at)?|fchmod|fchown|access|futimens"
    r"|opendir|readdir|closedir|realpath|readlink|mkstemp|fcntl|flock|dup2?)\("
)
# What else those headers declare: memory, processes, limits.
NOT_ABOUT_FILES = {
    "csrc/core/base/foreign_call.cpp": {"unistd.h"},
    "csrc/core/base/memory.cpp": {"unistd.h", "fstream"},
    "csrc/core/base/parallel.cpp": {"fstream"},
    "csrc/core/base/pool.cpp": {"sys/mman.h"},
    "csrc/core/base/process.cpp": {"unistd.h"},
}

# The modules and folders of the Python package, from the ground up.
PYTHON_ORDER = [
    "_native",
    "errors",
    "_base",
    "permutation",
    "block_shuffle",
    "plan",
    "_columns",
    "columns",
    "features",
    "_features",
    "reader",
    "indexing",
    "_verifying",
    "example",
    "_encoding",
    "encoding",
    "_writing",
    "writer",
    "record_writer",
    "_shuffle",
    "shuffling",
    "_loading",
    "loader",
    "_tensorflow",
    "tensorflow",
    "__init__",
    "_bench",
    "_demo",
    "cli",
    "__main__",
]

# What a Python module may import while it is itself being imported.
ALWAYS_IMPORTED = set(sys.stdlib_module_names) | {"numpy", "tfrfast"}
FRAMEWORKS = ("tensorflow", "torch", "jax")


def include_breaches(tree: str, path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not (match := INCLUDE.match(line)):
            continue
        quoted, angled = match.groups()
        if angled:
            known = STANDARD_CXX.fullmatch(angled) or OPERATING_SYSTEM.fullmatch(angled)
            if not known and not re.fullmatch(ANGLED[tree], angled):
                yield number, f"{tree} may not include <{angled}>"
            continue
        folders = Path(quoted).parts
        if len(folders) > 1 and folders[0] not in QUOTED[tree]:
            yield number, f'{tree} may not include "{quoted}"'
        elif not (ROOT / "csrc" / quoted).is_file() and not (path.parent / quoted).is_file():
            yield number, f'"{quoted}" is not a file of ours'
        elif tree == "csrc/core" and (reason := order_breach(path, folders)):
            yield number, reason


def order_breach(path: Path, included: tuple[str, ...]) -> str | None:
    own = path.relative_to(ROOT / "csrc/core").parts[0]
    other = included[1] if len(included) > 2 else own
    for folder in (own, other):
        if folder not in CORE_ORDER:
            return f"csrc/core/{folder} has no place in CORE_ORDER of tools/check_layers.py"
    if CORE_ORDER.index(other) > CORE_ORDER.index(own):
        return f"core/{own} lies below core/{other} and may not include it"
    return None


def reserved_breaches(path: Path) -> Iterator[tuple[int, str]]:
    name = path.relative_to(ROOT).as_posix()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        code = line.partition("//")[0]
        for pattern, places, instead in RESERVED:
            if name not in places and (match := pattern.search(code)):
                yield number, f"{match[0]}: use {instead}"


def file_breaches(path: Path) -> Iterator[tuple[int, str]]:
    name = path.relative_to(ROOT).as_posix()
    if name.startswith(STORAGE):
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        code = line.partition("//")[0]
        include = INCLUDE.match(line)
        header = include[2] if include else None
        if (
            header
            and header not in NOT_ABOUT_FILES.get(name, ())
            and FILE_HEADERS.fullmatch(header)
        ):
            yield number, f"<{header}>: {STORAGE} makes the calls on files"
        if "core/base/" not in name and (call := FILE_CALLS.search(code)):
            yield number, f"{call[0]}...): {STORAGE} makes the calls on files"


def top_level_imports(module: ast.Module) -> Iterator[tuple[int, str]]:
    """The code that runs when the module is imported, without functions and TYPE_CHECKING."""
    pending: list[ast.AST] = [module]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))


def import_breaches(path: Path) -> Iterator[tuple[int, str]]:
    """A framework's own adapter carries its name: tfrfast/torch.py, tfrfast/_tensorflow/*.py."""
    names = {part.strip("_") for part in path.relative_to(ROOT).with_suffix("").parts}
    allowed = ALWAYS_IMPORTED | names.intersection(FRAMEWORKS)
    for line, imported in top_level_imports(ast.parse(path.read_text(encoding="utf-8"))):
        if imported.partition(".")[0] not in allowed:
            yield line, f"imports {imported} at top level"


def own_imports(path: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The package's modules that `path` imports, as parts such as ("_base", "paths").

    An import inside a function or for types alone counts like any other. Only a framework's adapter
    may be imported from below, inside a function, since it is there for those who use it.
    """
    module = ast.parse(path.read_text(encoding="utf-8"))
    package = path.relative_to(ROOT).parent.parts
    at_top = set(top_level_imports(module))
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names = [(alias.name, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            source = ".".join((*above, node.module) if node.module else above)
            names = [(source, f"{source}.{alias.name}") for alias in node.names]
        else:
            continue
        for source, name in names:
            parts = tuple(name.split("."))
            if parts[0] != "tfrfast":
                continue
            while not is_module(parts):
                parts = parts[:-1]
            adapter = len(parts) > 1 and parts[1].strip("_") in FRAMEWORKS
            if not adapter or (node.lineno, source) in at_top:
                yield node.lineno, parts[1:] or ("__init__",)


def is_module(parts: tuple[str, ...]) -> bool:
    place = ROOT.joinpath(*parts)
    return place.is_dir() or any(place.with_suffix(each).is_file() for each in (".py", ".pyi"))


def python_order_breaches(path: Path) -> Iterator[tuple[int, str]]:
    own = path.relative_to(ROOT / "tfrfast").with_suffix("").parts[0]
    if own not in PYTHON_ORDER:
        yield 1, f"tfrfast/{own} has no place in PYTHON_ORDER of tools/check_layers.py"
        return
    for line, (other, *_) in own_imports(path):
        if other not in PYTHON_ORDER:
            yield line, f"tfrfast/{other} has no place in PYTHON_ORDER of tools/check_layers.py"
        elif PYTHON_ORDER.index(other) > PYTHON_ORDER.index(own):
            yield line, f"tfrfast/{own} lies below tfrfast/{other} and may not import it"


def circle_in(folder: Path) -> list[str] | None:
    """The modules of a Python package that import each other in a circle, if any do."""
    graph: dict[str, set[str]] = {}
    for path in sorted(folder.glob("*.py")):
        imported = (parts for _, parts in own_imports(path) if parts[0] == folder.name)
        graph[path.stem] = {parts[1] if len(parts) > 1 else "__init__" for parts in imported}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        circle: list[str] = error.args[1]
        return circle[::-1]  # each imports the next
    return None


def main() -> int:
    breaches: list[str] = []

    def note(path: Path, found: Iterator[tuple[int, str]]) -> None:
        breaches.extend(f"{path.relative_to(ROOT)}:{line}: {what}" for line, what in found)

    for tree in QUOTED:
        for path in sorted((ROOT / tree).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                note(path, include_breaches(tree, path))
                if tree.startswith("csrc/"):
                    note(path, reserved_breaches(path))
                    note(path, file_breaches(path))
    for path in sorted((ROOT / "tfrfast").rglob("*.py")):
        note(path, import_breaches(path))
        note(path, python_order_breaches(path))
    for folder in sorted({path.parent for path in (ROOT / "tfrfast").glob("*/*.py")}):
        if circle := circle_in(folder):
            breaches.append(f"tfrfast/{folder.name}: a circle of imports: {' -> '.join(circle)}")
    print("\n".join(breaches) or "layers: imports point down only")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
