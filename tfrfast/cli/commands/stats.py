"""`tfrfast stats`: statistics of the features of Examples."""

from __future__ import annotations

import argparse
from typing import Any

from tfrfast.base.sizes import counted, rounded
from tfrfast.cli.common import Subparsers, add_command, names, print_json, print_table
from tfrfast.cli.damage import left_out
from tfrfast.cli.json_stats import json_of_stats
from tfrfast.cli.messages import add_message, message_features, message_of
from tfrfast.reader import Reader
from tfrfast.tables.statistics import FeatureStats, statistics

_SHOWN_BYTES = 24


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_command(
        subparsers,
        "stats",
        run,
        help=help,
        description="Read all records once, and show for each feature of tf.train.Examples how "
        "many records have it, its type, lengths, range, mean, and most frequent values.",
        on_corruption=True,
    )
    parser.add_argument("--columns", metavar="A,B", type=names, help="only these features")
    add_message(parser)


def run(options: argparse.Namespace) -> int:
    message = message_of(options)
    features = None if message is None else message_features(message, options.columns)
    with Reader(
        options.paths, on_corruption=options.on_corruption, progress=options.progress
    ) as reader:
        found = statistics(
            reader, features=features, columns=options.columns, progress=options.progress
        )
        shards, num_bytes = len(reader.shards), sum(each.num_bytes for each in reader.shards)
        damage = reader.skipped
    records = found.num_records
    if options.json:
        print_json(
            {
                "records": records,
                "shards": shards,
                "bytes": num_bytes,
                "features": {each.name: json_of_stats(each) for each in found.features},
                "skipped": [each._asdict() for each in damage],
            }
        )
    elif not found.features:
        print(f"{counted(records, 'records')} without features")
    else:
        print(f"{counted(records, 'records')}, {counted(shards, 'shards')}")
        print_table(
            ["feature", "type", "in", "values", "min", "mean", "max", "distinct", "most frequent"],
            [_row(each) for each in found.features],
        )
    return left_out(damage)


def _row(stats: FeatureStats) -> tuple[str, ...]:
    share = stats.records / stats.of_records if stats.of_records else 0.0
    values = (
        str(stats.min_values)
        if stats.min_values == stats.max_values
        else f"{stats.min_values} to {stats.max_values}"
    )
    if stats.type == "bytes":
        low, mean, high = stats.min_bytes, stats.mean_bytes, stats.max_bytes
        unit = " B"
    else:
        low, mean, high = stats.min, stats.mean, stats.max  # type: ignore[assignment]
        unit = ""
    numbers = ["" if each is None else f"{_shown(each)}{unit}" for each in (low, mean, high)]
    distinct = f"{stats.distinct:,}" if stats.exact else f"about {rounded(stats.distinct)}"
    frequent = ", ".join(
        f"{_shown(value)} ({count / max(stats.values, 1):.1%})"
        for value, count in stats.frequent[:2]
        if count > 1
    )
    percent = "all" if stats.records == stats.of_records else f"{share:.1%}"
    return stats.name, stats.type, percent, values, *numbers, distinct, frequent


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return repr(value[:_SHOWN_BYTES])[1:] + ("..." if len(value) > _SHOWN_BYTES else "")
    return f"{value:.6g}" if isinstance(value, float) else str(value)
