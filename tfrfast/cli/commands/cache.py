"""List the data folders in the index cache, least recently used first. $TFRFAST_CACHE_DIR says
where the cache is and $TFRFAST_CACHE_BYTES how large it may grow (4 GiB).
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from operator import itemgetter
from typing import Any

from tfrfast import _native
from tfrfast.base.sizes import counted, format_bytes
from tfrfast.cli.common import add_common, parse_size, print_json, print_table
from tfrfast.storage.disk_cache import KeptObject, kept_objects
from tfrfast.storage.schemes import is_url


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, paths=False, progress=False)
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


Facts = dict[str, Any]


def run(options: argparse.Namespace) -> int:
    if options.disk is not None:
        if options.prune is not None:
            raise ValueError("--prune removes indexes. With --disk FOLDER, use --clear.")
        return _show_disk_cache(options)
    if options.clear:
        raise ValueError("--clear goes with --disk FOLDER. --prune removes indexes.")
    removed = None if options.prune is None else _native.prune_index_cache(options.prune)
    files: list[Facts] = [
        {"path": path, "bytes": size, "last_used": used / 1e9}
        for path, size, used in _native.cached_indexes()
    ]
    folder, limit = _native.index_cache_folder(), _native.index_cache_limit_bytes()
    used_bytes, folders = _sum("bytes", files), _folders(files)
    if options.json:
        print_json(
            {
                "folder": folder,
                "limit_bytes": limit,
                "bytes": used_bytes,
                "removed": removed,
                "folders": folders,
                "files": files,
            }
        )
        return 0
    if removed is not None:
        print(f"{counted(removed, 'files')} removed")
    if not folder:
        print("There is no cache: you have no home folder. TFRFAST_CACHE_DIR may name a folder.")
        return 0
    of_limit = f"{format_bytes(used_bytes)} of at most {format_bytes(limit)}"
    print(f"{folder}: {counted(len(files), 'files')}, {of_limit}")
    if files and options.files:
        header = ["last used", "bytes", "file"]
        print_table(header, [(_date(each), each["bytes"], each["path"]) for each in files])
    elif files:
        header = ["last used", "files", "bytes", "folder"]
        print_table(
            header,
            [(_date(each), each["files"], each["bytes"], each["folder"]) for each in folders],
        )
    return 0


def _folders(files: list[Facts]) -> list[Facts]:
    """Returns the cache's folders. A folder's name is the data folder's name and a hash of its
    path.
    """
    groups: dict[str, list[Facts]] = defaultdict(list)
    for each in files:
        groups[os.path.basename(os.path.dirname(each["path"]))].append(each)
    folders = [
        {
            "folder": folder,
            "files": len(some),
            "bytes": _sum("bytes", some),
            "last_used": max(each["last_used"] for each in some),
        }
        for folder, some in groups.items()
    ]
    return sorted(folders, key=itemgetter("last_used"))


def _sum(name: str, some: list[Facts]) -> int:
    return sum(each[name] for each in some)


def _date(facts: Facts) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(facts["last_used"]))


def _show_disk_cache(options: argparse.Namespace) -> int:
    if is_url(options.disk):
        raise ValueError(f"{options.disk!r} is a URL. A tfr.DiskCache is a folder on a local disk.")
    if not os.path.isdir(os.path.join(options.disk, "v2")):
        raise FileNotFoundError(2, f"There is no cache in {options.disk!r}", options.disk)
    folder = os.path.abspath(options.disk)
    removed = _native.clear_disk_cache(os.fsencode(folder)) if options.clear else None
    sets = _data_sets(folder)
    used = _sum("bytes", sets)
    if options.json:
        print_json(
            {
                "folder": folder,
                "bytes": used,
                "removed_bytes": removed,
                "data_sets": sets,
            }
        )
        return 0
    if removed is not None:
        print(f"{format_bytes(removed)} removed" + (", the rest is in use" if sets else ""))
    print(f"{folder}: {format_bytes(used)}")
    if sets:
        print_table(
            ["last used", "objects", "bytes", "kept", "", "set"],
            [
                (
                    _date(each),
                    each["objects"],
                    each["object_bytes"],
                    each["bytes"],
                    "in use" * each["in_use"],
                    each["url"],
                )
                for each in sets
            ],
        )
    return 0


def _data_sets(folder: str) -> list[Facts]:
    groups: dict[str, list[KeptObject]] = defaultdict(list)
    for each in kept_objects(folder):
        groups[each.url.rpartition("/")[0] + "/"].append(each)
    return [
        {
            "url": url,
            "objects": len(objects),
            "object_bytes": sum(each.object_bytes for each in objects),
            "bytes": sum(each.kept_bytes for each in objects),
            "last_used": max(each.last_opened for each in objects),
            "in_use": any(each.in_use for each in objects),
        }
        for url, objects in groups.items()
    ]
