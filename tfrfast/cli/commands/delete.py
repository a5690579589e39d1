"""Delete records: by key, by a condition, or by their numbers. Only the shards that hold such
records are written again. --finish goes on with an interrupted deletion. Do not repeat --records:
if the deletion was complete, the numbers mean others.
"""

from __future__ import annotations

import argparse

from tfrfast.base.sizes import counted
from tfrfast.cli.common import add_common, print_json, print_table
from tfrfast.cli.damage import left_out
from tfrfast.cli.ray import add_ray, executor_of
from tfrfast.cli.record_numbers import add_choice, numbers_in
from tfrfast.jobs.deleting.delete import delete


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, on_corruption=True)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--key",
        action="append",
        metavar="K",
        help="all records with this key; needs --by; may be given several times",
    )
    add_choice(which)
    which.add_argument(
        "--finish", action="store_true", help="finish a deletion that was interrupted"
    )
    parser.add_argument("--by", metavar="FEATURE", help="the feature that has the keys")
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    add_ray(parser)


def run(options: argparse.Namespace) -> int:
    if (options.key is None) != (options.by is None):
        raise ValueError("--key and --by go together: a key, and the feature that has it.")
    done = delete(
        options.paths,
        keys=None if options.key is None else {options.by: options.key},
        where=options.where,
        records=None if options.records is None else numbers_in(options.records),
        dry_run=options.dry_run,
        on_corruption=options.on_corruption,
        progress=options.progress,
        executor=executor_of(options),
    )
    if options.json:
        print_json(done)
    else:
        if done.shards:
            print_table(
                ["records", "shard"], [(count, path) for path, count in done.shards.items()]
            )
        would = "would be deleted" if options.dry_run else "deleted"
        in_shards = f" from {counted(len(done.shards), 'shards')}" if done.shards else ""
        print(f"{counted(done.num_records, 'records')} {would}{in_shards}")
        if done.missing:
            print(
                f"{counted(len(done.missing), 'keys')} of no record, the first {done.missing[0]!r}"
            )
    return left_out(done.skipped)
