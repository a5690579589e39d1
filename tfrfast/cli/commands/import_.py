"""Write the rows of Parquet files as tf.train.Examples to shards, which appear with their indexes
when all are complete. Takes PyArrow.
"""

from __future__ import annotations

import argparse

from tfrfast.cli.common import add_common, add_output, print_json, print_written, say
from tfrfast.jobs.importing import import_parquet
from tfrfast.storage.paths import expand_paths, refuse_urls


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, paths=False)
    parser.add_argument("paths", nargs="+", metavar="FILES", help="Parquet files, or quoted globs")
    add_output(
        parser,
        "out/train makes out/train-00000-of-00064",
        num_shards="how many shards (default: 1); row i goes to shard i %% N",
    )


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
        print_json(made)
    else:
        print_written(made)
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
