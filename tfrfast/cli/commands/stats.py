"""Read all records once, and show for each feature of tf.train.Examples how many records have it,
its type, lengths, range, mean, and most frequent values.
"""

from __future__ import annotations

import argparse
from typing import Any

from tfrfast.base.sizes import counted, rounded
from tfrfast.cli.common import add_columns, add_common, print_json, print_table
from tfrfast.cli.damage import left_out
from tfrfast.cli.messages import add_message, message_features, message_of
from tfrfast.cli.plain import plain_stats
from tfrfast.reader import Reader
from tfrfast.tables.statistics import FeatureStats, statistics

_SHOWN_BYTES = 24


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, on_corruption=True)
    add_columns(parser, "only these features")
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
                "features": {each.name: plain_stats(each) for each in found.features},
                "skipped": damage,
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
    values = f"{stats.min_values:,}"
    if stats.min_values < stats.max_values:
        values += f" to {stats.max_values:,}"
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
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
