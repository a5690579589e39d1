"""`tfrfast index`: builds indexes beside the data, and exchanges them with other tools."""

from __future__ import annotations

import argparse
import os

from tfrfast.base.sizes import counted, format_bytes
from tfrfast.cli.common import Subparsers, add_command, add_steps, print_json, print_table
from tfrfast.cli.ray import add_ray, executor_of
from tfrfast.jobs.indexing.building import build_index
from tfrfast.jobs.indexing.text import check_text_places, export_text_indexes, import_text_indexes
from tfrfast.steps.building import build_steps
from tfrfast.storage.paths import expand_paths


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_command(
        subparsers,
        "index",
        run,
        help=help,
        description="Build the indexes of shards and save them in the folder beside the data "
        "folder (imagenet/ -> imagenet.tfrfast/), where every reader looks first.",
    )
    parser.add_argument("--folder", help="save here instead; readers then need index=FOLDER")
    parser.add_argument(
        "--publish", action="store_true", help="put indexes of URLs into the bucket, for everybody"
    )
    parser.add_argument("--force", action="store_true", help="build even where one still fits")
    add_steps(parser, "for tfr.Steps, also find the steps of episodes")
    parser.add_argument("--threads", type=int, help="that build (default: all processors)")
    add_ray(parser)
    text = parser.add_mutually_exclusive_group()
    text.add_argument(
        "--export-text",
        metavar="FOLDER",
        help="also write each index as text, '<offset> <length>' a line, as NVIDIA DALI and the "
        "tfrecord package read it: FOLDER/<shard name>.idx",
    )
    text.add_argument(
        "--import-text",
        metavar="FOLDER",
        help="use text indexes from FOLDER/<shard name>.idx, if a scan confirms them",
    )


def _build_steps(options: argparse.Namespace) -> str:
    return build_steps(
        options.paths,
        along=options.steps,
        folder=options.folder,
        threads=options.threads,
        progress=options.progress,
        executor=executor_of(options),
    )


def run(options: argparse.Namespace) -> int:
    if options.export_text:  # fails before a long build, not after it
        check_text_places(expand_paths(options.paths), options.export_text)
    if options.import_text:
        import_text_indexes(options.paths, options.import_text, index_folder=options.folder)
    built = build_index(
        options.paths,
        folder=options.folder,
        threads=options.threads,
        progress=options.progress,
        force=options.force and not options.import_text,
        publish=options.publish,
        executor=executor_of(options),
    )
    if options.export_text:
        export_text_indexes([each.shard for each in built], options.export_text)
    path = None
    if options.steps:
        path = _build_steps(options)
    if options.json:
        indexes = [each._asdict() for each in built]
        print_json(indexes if path is None else {"indexes": indexes, "steps": path})
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
