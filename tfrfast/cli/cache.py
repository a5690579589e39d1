"""`tfrfast cache`: the files that opening shards has left in the user's cache.

These are indexes, and proofs of 64 bytes that an index beside the data fits.
"""

from __future__ import annotations

import argparse
import time

from tfrfast import _native
from tfrfast._base.sizes import format_bytes
from tfrfast.cli._common import Subparsers, add_command, parse_size, print_json, print_table


def add_parser(subparsers: Subparsers) -> None:
    parser = add_command(
        subparsers,
        "cache",
        run,
        help="show or empty the index cache",
        description="List what is in the index cache, least recently used first. $TFRFAST_CACHE_DIR "
        "says where the cache is and $TFRFAST_CACHE_BYTES how large it may grow (4 GiB).",
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


def count(files: int) -> str:
    return "1 file" if files == 1 else f"{files:,} files"


def run(options: argparse.Namespace) -> int:
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
                "indexes": [
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
    if cached:
        print_table(
            ["last used", "bytes", "file"],
            [
                (time.strftime("%Y-%m-%d %H:%M", time.localtime(used / 1e9)), size, path)
                for path, size, used in cached
            ],
        )
    return 0
