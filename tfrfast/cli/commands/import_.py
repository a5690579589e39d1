"""`tfrfast import`: writes the rows of Parquet files as Examples."""

from __future__ import annotations

import argparse

from tfrfast.base.sizes import counted, format_bytes
from tfrfast.cli.common import Subparsers, add_command, parse_size, print_json, say
from tfrfast.jobs.importing import import_parquet
from tfrfast.storage.paths import expand_paths, refuse_urls


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_command(
        subparsers,
        "import",
        run,
        help=help,
        description="Write the rows of Parquet files as tf.train.Examples to shards, which appear "
        "with their indexes when all are complete. Takes PyArrow.",
        paths=False,
    )
    parser.add_argument("paths", nargs="+", metavar="FILES", help="Parquet files, or quoted globs")
    parser.add_argument(
        "--out",
        required=True,
        metavar="PREFIX",
        help="the beginning of the new names: out/train makes out/train-00000-of-00064",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--num-shards",
        type=int,
        metavar="N",
        help="how many shards (default: 1); row i goes to shard i %% N",
    )
    size.add_argument(
        "--max-bytes", type=parse_size, metavar="BYTES", help="largest shard, like 200M"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace shards of these names")
    parser.add_argument("--compression", choices=["GZIP"], help="of the new shards (default: none)")


def run(options: argparse.Namespace) -> int:
    files = expand_paths(options.paths)
    refuse_urls(files, "tfrfast import reads")
    made = import_parquet(
        files,
        options.out,
        num_shards=options.num_shards,
        max_bytes=options.max_bytes,
        compression=options.compression,
        overwrite=options.overwrite,
        progress=options.progress,
    )
    if options.json:
        print_json(made._asdict())
    else:
        count, shards = counted(made.num_records, "records"), counted(len(made.paths), "shards")
        print(f"{count}, {format_bytes(made.num_bytes)}, {shards}")
        if len(made.paths) > 1 and options.num_shards is not None:
            print(
                "The rows were dealt out to the shards in turn, so they are read in another order."
            )
        if made.changed_types:
            changes = ", ".join(
                f"{name} ({a} to {b})" for name, (a, b) in made.changed_types.items()
            )
            say(f"Types that `tfrfast export` gives back otherwise: {changes}")
    return 0
