"""Describes the machine and the software of a measurement."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Iterable

from tfrfast import _native


def describe_machine(packages: Iterable[str] = ()) -> dict[str, str]:
    """Returns processor, memory, system, date, and the version of each installed package."""
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{processor_name()}, {_native.usable_processors()} usable",
        "memory": f"{memory_bytes() / (1 << 30):.0f} GiB",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load": "{:.1f} {:.1f} {:.1f} (1, 5, 15 minutes)".format(*os.getloadavg()),
        "python": platform.python_version(),
    }
    for package in packages:
        if version := version_of(package):
            facts[package] = version
    return facts


def processor_name() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
