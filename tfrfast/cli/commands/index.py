"""Build the indexes of shards and save them in the folder beside the data folder (imagenet/ ->
imagenet.tfrfast/), where every reader looks first.
"""

from __future__ import annotations

import argparse
import os

from tfrfast.base.sizes import counted, format_bytes
from tfrfast.cli.common import add_common, add_steps, print_json, print_table
from tfrfast.cli.ray import add_ray, executor_of
from tfrfast.jobs.indexing.building import build_index
from tfrfast.steps.building import build_steps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument(
        "--index-folder",
        metavar="FOLDER",
        help="save here instead; readers then need index_folder=",
    )
    parser.add_argument(
        "--publish", action="store_true", help="put indexes of URLs into the bucket, for everybody"
    )
    parser.add_argument("--force", action="store_true", help="build even where one still fits")
    add_steps(parser, "for tfr.Steps, also find the steps of episodes")
    parser.add_argument("--threads", type=int, help="that build (default: all processors)")
    add_ray(parser)


def _build_steps(options: argparse.Namespace) -> str:
    return build_steps(
        options.paths,
        along=options.steps,
        index_folder=options.index_folder,
        threads=options.threads,
        progress=options.progress,
        executor=executor_of(options),
    )


def run(options: argparse.Namespace) -> int:
    built = build_index(
        options.paths,
        index_folder=options.index_folder,
        threads=options.threads,
        progress=options.progress,
        force=options.force,
        publish=options.publish,
        executor=executor_of(options),
    )
    path = None
    if options.steps:
        path = _build_steps(options)
    if options.json:
        print_json(built if path is None else {"indexes": built, "steps": path})
    else:
        records = sum(each.num_records for each in built)
        new = sum(each.was_built for each in built)
        print(
            f"{counted(len(built), 'shards')}, {counted(records, 'records')}; "
            f"{counted(new, 'indexes')} built, {len(built) - new:,} kept"
        )
        if path is not None:
            print(f"{path}, {format_bytes(os.path.getsize(path))}")
        damaged = [each for each in built if each.damage]
        if damaged:
            print("Damaged shards (`tfrfast verify` says where):")
            print_table(["damage", "shard"], [(each.damage, each.shard) for each in damaged])
    return 1 if any(each.damage for each in built) else 0
