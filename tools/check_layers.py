"""The layer rule: imports point down only. Prints every breach, and exits with 1 after a breach.

The core knows neither Python nor TensorFlow; the two kinds of bindings do not know each other;
inside the core each folder knows only the folders before it. So does each folder and module of the
Python package, and `import tfrfast` imports nothing but NumPy and the standard library. Calls that
are easily made wrong are made in one place.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from python_layers import breaches_in_package

ROOT = Path(__file__).resolve().parent.parent

# The core's folders, from the ground up.
CORE_ORDER = [
    "base",
    "crc32c",
    "storage",
    "shard",
    "codec",
    "index",
    "read",
    "order",
    "image",
    "example",
    "keys",
    "steps",
    "load",
    "arrow",
    "write",
]

# The first folders of quoted includes that each tree may use.
QUOTED = {
    "csrc/core": {"core"},
    "csrc/python": {"core", "python"},
    "csrc/tensorflow": {"core", "tensorflow"},
    "tests/core": {"core"},
    "tests/tensorflow_ops": {"core", "tensorflow", ".."},  # ".." for the fixture of tests/core
    "tests/fuzz": {"core", ".."},  # ".." for the slow twin of tests/core
    "benchmarks/core": {"core"},
}

# The headers in angle brackets that each tree may use, besides those of standard C++ and of the
# operating system.
ANGLED = {
    "csrc/core": r"(?!)",
    "csrc/python": r"pybind11/.*|Python\.h",
    "csrc/tensorflow": r"(?!)",
    "tests/core": r"doctest/.*",
    "tests/tensorflow_ops": r"doctest/.*",
    "tests/fuzz": r"(?!)",
    "benchmarks/core": r"benchmark/.*",
}
# Libraries that one file of the core wraps.
WRAPPED = {
    "csrc/core/image/jpeg.cpp": {"jerror.h", "jpeglib.h"},
    "csrc/core/image/png.cpp": {"png.h"},
}
STANDARD_CXX = re.compile(r"[a-z_0-9]+")
OPERATING_SYSTEM = re.compile(
    r"(sys|linux|mach|mach-o|machine|asm)/[a-z_0-9-]+\.h"
    r"|(cxxabi|dirent|dlfcn|errno|fcntl|grp|poll|pthread|pwd|sched|setjmp|signal|stdio|time|ucontext|unistd)\.h"
    r"|(arm_acle|arm_neon|cpuid|immintrin|nmmintrin|wmmintrin|x86intrin)\.h"
)
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')

# Calls that only some files may make: the pattern, the files, and the replacement elsewhere.
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
        re.compile(r"py::init<"),
        ("csrc/python/classes.h",),
        "constructor() of python/classes.h",
    ),
    (
        re.compile(r"\bgetpp?id\b"),
        ("csrc/core/base/process.cpp", "csrc/core/storage/local/temporary_name.cpp"),
        "HomeProcess of core/base/process.h",
    ),
]

# Only this folder calls the operating system about files. The other folders include none of
# FILE_HEADERS. They make none of FILE_CALLS, some of which are declared in other headers, too.
STORAGE = "csrc/core/storage/"
FILE_HEADERS = re.compile(
    r"(dirent|fcntl|grp|pwd|unistd|fstream|filesystem)(\.h)?|linux/[a-z_]+\.h"
    r"|sys/(file|ioctl|mman|mount|param|resource|sendfile|stat|statfs|statvfs|uio|vfs)\.h"
)
FILE_CALLS = re.compile(
    r"(?<!\w)(?:std)?::(f?open|openat|close|p?readv?2?|p?writev?2?|lseek|mmap|munmap|madvise"
    r"|posix_\w+|[fl]?stat|fstatat|statx|f?statv?fs|fsync|fdatasync|fallocate|f?truncate"
    r"|rename(?:at2?)?|link(?:at)?|unlink(?:at)?|mkdir(?:at)?|fchmod|fchown|access|futimens"
    r"|opendir|readdir|closedir|realpath|readlink|mkstemp|fcntl|flock|dup2?)\("
)
# Files that include these headers for other calls: about memory, processes and limits.
NOT_ABOUT_FILES = {
    "csrc/core/base/foreign_call.cpp": {"unistd.h"},
    "csrc/core/base/memory.cpp": {"unistd.h", "fstream"},
    "csrc/core/base/parallel.cpp": {"fstream"},
    "csrc/core/base/pool.cpp": {"sys/mman.h"},
    "csrc/core/base/process.cpp": {"unistd.h"},
    "csrc/core/base/thread.cpp": {"sys/mman.h"},
}


def include_breaches(tree: str, path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not (match := INCLUDE.match(line)):
            continue
        quoted, angled = match.groups()
        if angled:
            known = STANDARD_CXX.fullmatch(angled) or OPERATING_SYSTEM.fullmatch(angled)
            wrapped = WRAPPED.get(path.relative_to(ROOT).as_posix(), ())
            if not known and angled not in wrapped and not re.fullmatch(ANGLED[tree], angled):
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
    for path, line, what in breaches_in_package():
        breaches.append(f"{path.relative_to(ROOT)}:{line}: {what}")
    print("\n".join(breaches) or "layers: imports point down only")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
