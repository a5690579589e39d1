"""Write all records, or chosen ones, verified and byte for byte, to new shards in the order
given.
"""

from __future__ import annotations

import argparse
import tempfile
from fractions import Fraction
from typing import Any

import numpy as np

from tfrfast.base.arguments import Int64Array
from tfrfast.cli.common import (
    add_common,
    add_output,
    add_writing,
    print_json,
    print_written,
    writing_arguments,
)
from tfrfast.cli.damage import left_out
from tfrfast.cli.ray import add_ray, executor_of
from tfrfast.cli.record_numbers import add_choice, numbers_in
from tfrfast.columns.rows import row_numbers
from tfrfast.jobs.building_keys import build_key_file
from tfrfast.jobs.copying import copy
from tfrfast.jobs.running import Workers
from tfrfast.order import Plan, Shuffle
from tfrfast.reader import Reader, all_damage
from tfrfast.tables.selecting import records_where

_KEYS_MEMORY = 1 << 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, on_corruption=True)
    add_choice(parser.add_mutually_exclusive_group())
    parser.add_argument(
        "--drop-duplicates",
        metavar="FEATURE",
        help="of the records with equal values of this feature, keep the first",
    )
    parser.add_argument(
        "--sample",
        type=_sample,
        metavar="SHARE",
        help="draw some of the records, in their order: exactly 1%% of them, or 1000",
    )
    parser.add_argument("--seed", type=int, default=0, help="determines the sample (default: 0)")
    add_output(
        parser,
        "out/cats makes out/cats-00000-of-00008",
        num_shards="how many shards (default: 1)",
    )
    add_writing(parser)
    parser.add_argument(
        "--append", action="store_true", help="add the shards to those of these names"
    )
    add_ray(parser)


def run(options: argparse.Namespace) -> int:
    with Reader(
        options.paths, on_corruption=options.on_corruption, progress=options.progress
    ) as reader:
        records = _chosen(reader, options)
        made = copy(
            reader,
            records,
            options.out,
            executor=executor_of(options),
            append=options.append,
            **writing_arguments(options),
        )
        damage = all_damage(made.skipped, reader.skipped)  # the condition read all records
    if options.json:
        print_json(made._replace(skipped=damage))
    else:
        print_written(made)
        if options.where is not None and made.num_records == 0:
            print(f"No record matches {options.where!r}.")
    return left_out(damage)


def _chosen(reader: Reader, options: argparse.Namespace) -> Int64Array:
    """Returns the numbers of the records to write, in order."""
    given: Any = slice(None)
    if options.where is not None:
        given = records_where(reader, options.where)
    elif options.records is not None:
        given = numbers_in(options.records)
    numbers = row_numbers(given, len(reader), "Record")
    if options.drop_duplicates is not None:
        first_of = _firsts(reader, options)
        _, rows = np.unique(first_of[numbers], return_index=True)
        numbers = numbers[np.sort(rows)]
    if options.sample is not None:
        share, count = options.sample
        count = round(len(numbers) * share) if count is None else count
        if count > len(numbers):
            raise ValueError(f"--sample {count} is more than all {len(numbers):,} records.")
        plan = Plan(Shuffle(options.seed), 1, num_records=len(numbers))
        numbers = numbers[np.sort(plan.records_at(0, 0, count))]
    return numbers


def _firsts(reader: Reader, options: argparse.Namespace) -> Int64Array:
    """Returns for each record the first record with its key."""
    with tempfile.TemporaryDirectory(prefix="tfrfast-keys-") as folder:
        build_key_file(
            reader,
            options.drop_duplicates,
            folder=folder,
            max_memory=_KEYS_MEMORY,
            workers=Workers(executor_of(options), progress=options.progress),
        )
        repeated, firsts = reader.by_key(options.drop_duplicates, folder=folder).find_duplicates()
    first_of: Int64Array = np.arange(len(reader))
    first_of[repeated] = firsts
    return first_of


def _sample(text: str) -> tuple[Fraction, int | None]:
    """Returns the share of an argument like 1%, or the count of one like 1000."""
    try:
        share = Fraction(text.removesuffix("%")) / 100 if text.endswith("%") else Fraction(0)
        count = None if text.endswith("%") else int(text)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"expected 1% or 1000, not {text!r}") from None
    if not 0 <= share <= 1 or (count is not None and count < 0):
        raise argparse.ArgumentTypeError(f"expected a part of all records, not {text!r}")
    return share, count
