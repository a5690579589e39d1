"""`tfrfast stats`: statistics of the features of Examples."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from tfrfast.base.sizes import counted
from tfrfast.cli.common import Subparsers, add_command, print_json, print_table
from tfrfast.cli.damage import left_out
from tfrfast.reader import Reader
from tfrfast.tables.statistics import FeatureStats, statistics
from tfrfast.tables.stats_page import stats_page
from tfrfast.writing.publishing import publish
from tfrfast.writing.work_folder import WorkFolder

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
    parser.add_argument(
        "--html", metavar="FILE", help="also write a page with histograms, for a browser"
    )


def run(options: argparse.Namespace) -> int:
    with Reader(
        options.paths, on_corruption=options.on_corruption, progress=options.progress
    ) as reader:
        found = statistics(reader, progress=options.progress)
        shards, num_bytes = len(reader.shards), sum(each.num_bytes for each in reader.shards)
        damage = reader.skipped
    records = found.num_records
    if options.html is not None:
        title = options.paths[0] if len(options.paths) == 1 else counted(shards, "shards")
        page = stats_page(
            title, found.features, records=records, shards=shards, num_bytes=num_bytes
        )
        with WorkFolder(options.html) as work:
            Path(work.inside("page")).write_text(page, encoding="utf-8")
            publish([work.inside("page")], [options.html], overwrite=True)
    if options.json:
        print_json(
            {
                "records": records,
                "shards": shards,
                "bytes": num_bytes,
                "features": {each.name: _as_json(each) for each in found.features},
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
        if options.html is not None:
            print(f"Histograms: {options.html}")
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
    distinct = f"{stats.distinct:,}" if stats.exact else f"about {stats.distinct:.3g}"
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


def _as_json(stats: FeatureStats) -> dict[str, Any]:
    facts = stats._asdict()
    facts["histogram"] = stats.histogram._asdict()
    facts["frequent"] = [
        {
            "value": value.decode(errors="backslashreplace") if isinstance(value, bytes) else value,
            "count": count,
        }
        for value, count in stats.frequent
    ]
    cleaned: dict[str, Any] = _without_nan(facts)
    return cleaned


def _without_nan(value: Any) -> Any:
    """Returns `value` with text in place of numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_nan(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
