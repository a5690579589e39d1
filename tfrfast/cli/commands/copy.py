"""`tfrfast copy`: writes chosen records to new shards."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrfast.base.sizes import counted, format_bytes
from tfrfast.cli.common import Subparsers, add_command, print_json
from tfrfast.cli.damage import left_out
from tfrfast.cli.new_shards import add_output, add_writing, writing_arguments
from tfrfast.cli.ray import add_ray, executor_of
from tfrfast.jobs.copying import copy
from tfrfast.reader import Reader, all_damage
from tfrfast.tables.selecting import records_where


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_command(
        subparsers,
        "copy",
        run,
        help=help,
        description="Write chosen records, verified and byte for byte, to new shards in the order "
        "given.",
        on_corruption=True,
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--records",
        metavar="FILE",
        help="a file with a record number a line, or a .npy file; - reads stdin",
    )
    which.add_argument(
        "--where",
        metavar="CONDITION",
        help="a condition on features in SQL, like 'label == 3'; takes DuckDB or Polars",
    )
    add_output(
        parser,
        "out/cats makes out/cats-00000-of-00008",
        num_shards="how many shards (default: 1)",
        required=False,
    )
    add_writing(parser)
    add_ray(parser)


def run(options: argparse.Namespace) -> int:
    with Reader(
        options.paths, on_corruption=options.on_corruption, progress=options.progress
    ) as reader:
        records = (
            records_where(reader, options.where)
            if options.where is not None
            else _numbers_in(options.records)
        )
        made = copy(
            reader,
            records,
            options.out,
            executor=executor_of(options),
            **writing_arguments(options),
        )
        damage = all_damage(made.skipped, reader.skipped)  # the condition read all records
    if options.json:
        print_json({**made._asdict(), "skipped": [each._asdict() for each in damage]})
    else:
        count, shards = counted(made.num_records, "records"), counted(len(made.paths), "shards")
        print(f"{count}, {format_bytes(made.num_bytes)}, {shards}")
        if options.where is not None and made.num_records == 0:
            print(f"No record matches {options.where!r}.")
    return left_out(damage)


def _numbers_in(name: str) -> Any:
    if name.endswith(".npy"):
        return np.load(name, allow_pickle=False)
    if name == "-":
        return _numbers(sys.stdin.read().split(), "stdin")
    with open(name, encoding="utf-8") as file:
        return _numbers(file.read().split(), name)


def _numbers(words: Sequence[str], where: str) -> Any:
    return np.array([_number(word, where) for word in words], np.int64)


def _number(word: str, where: str) -> int:
    try:
        number = int(word)
    except ValueError:
        raise ValueError(f"{where} has {word!r}, which is not a record number.") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{where} has {word!r}, and no data set has so many records.")
    return number
