"""Shards that change by every route, with indexes of their earlier state: readers never return an
old record.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from expectations import CLEAR_ERRORS, check_exact, check_reader, some_records, write

import tfrfast as tfr


def another_version(
    chosen: random.Random, records: list[bytes], name: str
) -> tuple[str, list[bytes]]:
    """Returns other records, which are harder to distinguish from the old records than random
    records.
    """
    kind = chosen.choice(["same lengths", "same size", "one less", "one more", "some", "unlike"])
    fresh = [bytes(name.encode()[:1] + record[1:]) if record else b"" for record in records]
    if kind == "same lengths":
        return kind, fresh
    if kind == "same size" and len(fresh) > 1:
        # Bytes move from one record to another, so the records between the two move, too.
        first, second = sorted(chosen.sample(range(len(fresh)), 2))
        moved = chosen.randrange(len(fresh[first]) + 1)
        fresh[first], fresh[second] = fresh[first][moved:], fresh[second] + fresh[first][:moved]
        return kind, fresh
    if kind == "one less" and len(fresh) > 1 and len(fresh[0]) == len(fresh[1]):
        # The same number of bytes, with one record less.
        fresh[0] = fresh[0] + bytes(16) + fresh.pop(1)
        return kind, fresh
    if kind == "one more":
        return kind, [*fresh, b"more"]
    if kind == "some" and fresh:
        changed = set(chosen.sample(range(len(fresh)), chosen.randrange(1, len(fresh) + 1)))
        return kind, [fresh[i] if i in changed else records[i] for i in range(len(records))]
    return "unlike", some_records(chosen, name)


def rewrite(path: Path, other: Path) -> None:
    with open(path, "r+b") as file:
        file.write(other.read_bytes())
        file.truncate()


def truncate_first(path: Path, other: Path) -> None:
    path.write_bytes(other.read_bytes())


def rename_over(path: Path, other: Path) -> None:
    os.replace(other, path)


def copy_over(path: Path, other: Path) -> None:
    shutil.copy2(other, path)  # with the file's times, like `cp -p`


def link_over(path: Path, other: Path) -> None:
    path.unlink()
    os.link(other, path)


def point_elsewhere(path: Path, other: Path) -> None:
    path.unlink()
    path.symlink_to(other)


ROUTES: list[Callable[[Path, Path], None]] = [
    rewrite, truncate_first, rename_over, copy_over, link_over, point_elsewhere,
]  # fmt: skip
IN_PLACE = (rewrite, truncate_first, copy_over)

#: Filesystems on which inodes and change times distinguish files of the same size and time; see
#: docs/trust.md.
IDENTITY_LASTS_ON = {
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "jfs", "tmpfs",
}  # fmt: skip


@functools.cache
def identity_lasts(folder: Path) -> bool:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    around = [mount for mount in mounts if folder.is_relative_to(mount[1])]
    return max(around, key=lambda mount: len(mount[1]))[2] in IDENTITY_LASTS_ON


def attack(chosen: random.Random, folder: Path) -> str:
    path = folder / "shard"
    records = some_records(chosen, "0 version")
    compression = chosen.choice([None, None, None, "GZIP"])
    write(path, records, compression)
    kept = chosen.choice(["auto", "beside", "folder"])
    rested = chosen.random() < 0.15
    case = ""
    for version in range(1, chosen.randrange(2, 5)):
        if kept == "beside":
            tfr.build_index(path, progress=False)
        if rested:
            time.sleep(2.2)  # from now on, a change of the shard changes its times
        place = folder / "indexes" if kept == "folder" else "auto"
        reader = tfr.Reader(path, index=place, io=chosen.choice(["mmap", "pread"]))
        check_exact(reader, records, chosen)

        kind, changed = another_version(chosen, records, f"{version} version")
        other = folder / f"other-{version}"
        write(other, changed, compression)
        route = chosen.choice(ROUTES)
        before = os.stat(path)
        keeps_time = chosen.random() < 0.5 and identity_lasts(folder.parent.parent)
        if keeps_time:
            os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        link = path.resolve()
        route(link if route in IN_PLACE else path, other)
        if keeps_time:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        case = f"stale, {kept}, {route.__name__}, {kind}" + (", mtime kept" if keeps_time else "")

        if route in IN_PLACE:
            # A reader that has the shard open returns the new bytes, if headers have not moved.
            allowed = [{*records, *changed}] * len(records)
        else:
            allowed = [{record} for record in records]
        check_reader(reader, allowed, chosen)
        reader.close()
        check_require(path, place, changed, chosen)
        check_exact(tfr.Reader(path, index=place), changed, chosen)
        check_exact(tfr.Reader(path, index=place), changed, chosen)
        records = changed
    return case


def check_require(path: Path, place: object, records: list[bytes], chosen: random.Random) -> None:
    if place != "auto":
        return
    try:
        reader = tfr.Reader(path, index="require")
    except CLEAR_ERRORS:
        return
    check_exact(reader, records, chosen)
