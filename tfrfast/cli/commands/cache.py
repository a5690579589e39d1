"""`tfrfast cache`: the files that readers have left in the user's cache.

The cache has an index for each data folder. Bytes of objects are in a `DiskCache`, which `--disk`
names.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict

from tfrfast import _native
from tfrfast.base.sizes import format_bytes
from tfrfast.cli.common import Subparsers, add_command, parse_size, print_json, print_table
from tfrfast.storage.disk_cache import KeptObject, kept_objects
from tfrfast.storage.schemes import is_url


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_command(
        subparsers,
        "cache",
        run,
        help=help,
        description="List the data folders in the index cache, least recently used first. "
        "$TFRFAST_CACHE_DIR says where the cache is and $TFRFAST_CACHE_BYTES how large it may grow "
        "(4 GiB).",
        paths=False,
        progress=False,
    )
    parser.add_argument(
        "--prune",
        nargs="?",
        const=0,
        type=parse_size,
        metavar="BYTES",
        help="remove the least recently used until BYTES are left (512M, 2G; default: all)",
    )
    parser.add_argument(
        "--disk",
        metavar="FOLDER",
        help="instead, list the data sets whose bytes this tfr.DiskCache keeps",
    )
    parser.add_argument(
        "--clear",
        action="store_true",
        help="with --disk: remove objects that no process uses",
    )
    parser.add_argument("--files", action="store_true", help="list every file")


Cached = tuple[str, int, int]  # path, bytes, time of the last use in ns


def count(files: int) -> str:
    return "1 file" if files == 1 else f"{files:,} files"


def run(options: argparse.Namespace) -> int:
    if options.disk is not None:
        if options.prune is not None:
            raise ValueError("--prune removes indexes. With --disk FOLDER, use --clear.")
        return _show_disk_cache(options)
    if options.clear:
        raise ValueError("--clear goes with --disk FOLDER. --prune removes indexes.")
    removed = None
    if options.prune is not None:
        removed = _native.prune_index_cache(options.prune)
    cached = _native.cached_indexes()
    total = sum(size for _, size, _ in cached)
    folder = _native.index_cache_folder()
    if options.json:
        print_json(
            {
                "folder": folder,
                "limit_bytes": _native.index_cache_limit_bytes(),
                "bytes": total,
                "removed": removed,
                "folders": [
                    {
                        "folder": folder,
                        "files": len(files),
                        "bytes": sum(size for _, size, _ in files),
                        "last_used": _last_use(files) / 1e9,
                    }
                    for folder, files in _by_folder(cached).items()
                ],
                "files": [
                    {"path": path, "bytes": size, "last_used": used / 1e9}
                    for path, size, used in cached
                ],
            }
        )
        return 0
    if removed is not None:
        print(f"{count(removed)} removed")
    if not folder:
        print("There is no cache: you have no home folder. TFRFAST_CACHE_DIR may name a folder.")
        return 0
    limit = format_bytes(_native.index_cache_limit_bytes())
    print(f"{folder}: {count(len(cached))}, {format_bytes(total)} of at most {limit}")
    if cached and options.files:
        print_table(
            ["last used", "bytes", "file"],
            [(_date(used), size, path) for path, size, used in cached],
        )
    elif cached:
        print_table(
            ["last used", "files", "bytes", "folder"],
            [
                (_date(_last_use(files)), len(files), sum(size for _, size, _ in files), folder)
                for folder, files in _by_folder(cached).items()
            ],
        )
    return 0


def _by_folder(cached: list[Cached]) -> dict[str, list[Cached]]:
    """Returns the cache's folders. A folder's name is the data folder's name and a hash of its
    path.
    """
    groups: dict[str, list[Cached]] = defaultdict(list)
    for each in cached:
        groups[os.path.basename(os.path.dirname(each[0]))].append(each)
    return dict(sorted(groups.items(), key=lambda group: _last_use(group[1])))


def _last_use(files: list[Cached]) -> int:
    return max(used for _, _, used in files)


def _date(used_ns: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(used_ns / 1e9))


def _show_disk_cache(options: argparse.Namespace) -> int:
    if is_url(options.disk):
        raise ValueError(f"{options.disk!r} is a URL. A tfr.DiskCache is a folder on a local disk.")
    if not os.path.isdir(os.path.join(options.disk, "v2")):
        raise FileNotFoundError(2, f"There is no cache in {options.disk!r}", options.disk)
    folder = os.path.abspath(options.disk)
    removed = _native.clear_disk_cache(os.fsencode(folder)) if options.clear else None
    kept = list(kept_objects(folder))
    sets: dict[str, list[KeptObject]] = defaultdict(list)
    for each in kept:
        sets[each.url.rpartition("/")[0] + "/"].append(each)
    used = sum(each.kept_bytes for each in kept)
    served = sum(each.served_bytes for each in kept)
    fetched = sum(each.fetched_bytes for each in kept)
    if options.json:
        print_json(
            {
                "folder": folder,
                "bytes": used,
                "removed_bytes": removed,
                "served_bytes": served,
                "fetched_bytes": fetched,
                "data_sets": [
                    {
                        "url": url,
                        "objects": len(objects),
                        "object_bytes": sum(each.object_bytes for each in objects),
                        "bytes": sum(each.kept_bytes for each in objects),
                        "last_used": max(each.last_opened for each in objects),
                        "in_use": any(each.in_use for each in objects),
                        "served_bytes": sum(each.served_bytes for each in objects),
                        "fetched_bytes": sum(each.fetched_bytes for each in objects),
                    }
                    for url, objects in sets.items()
                ],
            }
        )
        return 0
    if removed is not None:
        print(f"{format_bytes(removed)} removed" + (", the rest is in use" if sets else ""))
    print(f"{folder}: {format_bytes(used)}")
    if served + fetched > 0:
        print(f"{format_bytes(served)} read from it, {format_bytes(fetched)} fetched or inflated")
    if sets:
        print_table(
            ["last used", "objects", "bytes", "kept", "read from it", "", "set"],
            [
                (
                    _date(int(max(each.last_opened for each in objects) * 1e9)),
                    len(objects),
                    sum(each.object_bytes for each in objects),
                    sum(each.kept_bytes for each in objects),
                    _hits(objects),
                    "in use" * any(each.in_use for each in objects),
                    url,
                )
                for url, objects in sets.items()
            ],
        )
    return 0


def _hits(objects: list[KeptObject]) -> str:
    """Returns the part of reads that the cache has served, as a bar and a number."""
    width = 10
    served = sum(each.served_bytes for each in objects)
    read = served + sum(each.fetched_bytes for each in objects)
    if read == 0:
        return ""
    bar = "#" * (width * served // read)
    return f"{bar:.<{width}} {100 * served // read:3} %"
