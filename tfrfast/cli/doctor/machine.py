"""Facts about this machine: software, processors, kernels, libraries, the index cache."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from typing import NamedTuple

from tfrfast import __version__, _native
from tfrfast.bench.machine import memory_bytes, processor_name, version_of

_PACKAGES = (
    "tensorflow",
    "tensorflow-cpu",
    "keras",
    "torch",
    "jax",
    "grain",
    "pyarrow",
    "polars",
    "tensorflow-datasets",
    "obstore",
    "boto3",
    "ray",
)


class MachineFacts(NamedTuple):
    versions: dict[str, str]
    """Versions of tfrfast, Python, NumPy, and the installed packages that tfrfast works with."""
    system: str
    processor: str
    processors: int
    usable_processors: int
    load: float
    """The number of programs that wanted a processor, on average over the last minute."""
    memory_bytes: int
    crc32c_kernel: str
    varint_kernel: str
    inflates_with: str | None
    zlib_version: str | None
    cache_folder: str
    """Empty if there is no cache."""
    cache_is_used: bool
    cache_files: int
    cache_bytes: int
    cache_limit_bytes: int
    settings: dict[str, str]
    """Environment variables that change tfrfast's behaviour."""


def look_at_machine() -> MachineFacts:
    isal, zlib = _native.inflaters()
    folder = _native.index_cache_folder()
    try:
        cached = _native.cached_indexes()
    except OSError:
        cached = []
    versions = {
        "tfrfast": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "numpy": importlib.metadata.version("numpy"),
    }
    versions |= {name: found for name in _PACKAGES if (found := version_of(name))}
    return MachineFacts(
        versions=versions,
        system=_system(),
        processor=processor_name(),
        processors=os.cpu_count() or 1,
        usable_processors=_native.usable_processors(),
        load=_load(),
        memory_bytes=memory_bytes(),
        crc32c_kernel=_native.crc32c_kernel(),
        varint_kernel=_native.varint_kernel(),
        inflates_with=isal or (f"zlib {zlib}" if zlib else None),
        zlib_version=zlib,
        cache_folder=folder,
        cache_is_used=_cache_is_used(folder),
        cache_files=len(cached),
        cache_bytes=sum(size for _, size, _ in cached),
        cache_limit_bytes=_native.index_cache_limit_bytes(),
        settings={
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith("TFRFAST_") or name == "XDG_CACHE_HOME"
        },
    )


def _load() -> float:
    try:
        return os.getloadavg()[0]
    except OSError:  # the system does not know
        return 0.0


def _system() -> str:
    library, version = platform.libc_ver()
    parts = [platform.system(), platform.release(), platform.machine(), library, version]
    built_for = "" if sys.maxsize > 2**32 else "32-bit Python"
    return " ".join(part for part in (*parts, built_for) if part)


def _cache_is_used(folder: str) -> bool:
    """True if only this user can write to the folder, or can make it."""
    if not folder:
        return False
    existing = folder
    while not os.path.lexists(existing) and existing != os.path.dirname(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing) or not os.access(existing, os.W_OK | os.X_OK):
        return False
    if existing != folder:
        return True
    status = os.stat(folder)
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022
