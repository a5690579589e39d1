"""Build the key file by which reader.by_key(FEATURE) finds records, beside the indexes."""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrfast.base.sizes import counted, format_bytes
from tfrfast.cli.common import add_common, add_max_memory, print_json, print_table, say
from tfrfast.cli.damage import left_out
from tfrfast.cli.ray import add_ray, executor_of
from tfrfast.jobs.building_keys import build_key_file
from tfrfast.jobs.running import Workers
from tfrfast.keys.keyed import Keyed
from tfrfast.reader import Reader

_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, on_corruption=True)
    parser.add_argument("--by", required=True, metavar="FEATURE", help="what the keys are")
    parser.add_argument("--folder", help="save here instead; by_key() then needs folder=FOLDER")
    add_max_memory(parser, "how much to sort in memory")
    parser.add_argument(
        "--duplicates",
        action="store_true",
        help="list the records whose key an earlier record has, and that record",
    )
    add_ray(parser)


def run(options: argparse.Namespace) -> int:
    with Reader(
        options.paths, on_corruption=options.on_corruption, progress=options.progress
    ) as reader:
        path, damage = build_key_file(
            reader,
            options.by,
            folder=options.folder,
            max_memory=options.max_memory,
            workers=Workers(executor_of(options), progress=options.progress),
        )
        size = os.path.getsize(path)
        facts: dict[str, Any] = {"path": path, "bytes": size, "skipped": damage}
        if options.duplicates:
            keyed = reader.by_key(options.by, folder=options.folder)
            pairs = np.stack(keyed.find_duplicates(), axis=1)
            facts["duplicates"] = pairs.tolist()
        if options.json:
            print_json(facts)
        else:
            say(f"{path}, {format_bytes(size)}")
        if options.duplicates and not options.json:
            _print_duplicates(keyed, reader, pairs)
    return left_out(damage)


def _print_duplicates(keyed: Keyed, reader: Reader, pairs: npt.NDArray[np.int64]) -> None:
    print(f"{counted(len(pairs), 'records')} with the key of an earlier record")
    some = pairs[:_SHOWN]
    if len(some):
        keys = keyed._keys_of(reader.read(some[:, 0])).tolist()
        rows = [(key, *row) for key, row in zip(keys, some.tolist(), strict=True)]
        print_table(["key", "record", "the first"], rows)
    if len(pairs) > _SHOWN:
        print(f"... and {len(pairs) - _SHOWN:,} more (--json lists all)")
