"""Compare two data sets, whatever their order, shards and compression. Exit codes: 0 the same, 1
different, 2 could not be compared.
"""

from __future__ import annotations

import argparse

from tfrfast.cli.common import add_common, add_max_memory, print_json
from tfrfast.cli.damage import left_out
from tfrfast.cli.ray import add_ray, executor_of
from tfrfast.jobs.comparing.compare import Differences, diff
from tfrfast.reader import all_damage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, paths=False, on_corruption=True)
    for side in "ab":
        parser.add_argument(
            side, metavar=side.upper(), help="a shard, a folder, a URL, or a quoted glob"
        )
    parser.add_argument(
        "--key", metavar="FEATURE", help="pair records by this feature, to find changed ones"
    )
    add_max_memory(parser, "how much to sort in memory")
    parser.add_argument("--work", metavar="FOLDER", help="where to sort more than that")
    add_ray(parser)


def run(options: argparse.Namespace) -> int:
    found = diff(
        options.a,
        options.b,
        key=options.key,
        max_memory=options.max_memory,
        work=options.work,
        progress=options.progress,
        executor=executor_of(options),
        on_corruption=options.on_corruption,
    )
    if options.json:
        print_json(_facts(found))
    else:
        print(found)
    return max(left_out(all_damage(*found.skipped)), 0 if found.is_same else 1)


def _facts(found: Differences) -> dict[str, object]:
    """Returns the result for JSON. Values of features may be bytes, and are left out."""
    arrays = ("changed", "only_a", "only_b")
    return {
        **found._asdict(),
        **{name: getattr(found, name).tolist() for name in arrays},
        "features": [
            {"name": name, "records": count, "example": [record_a, record_b]}
            for name, count, record_a, record_b, *_ in found.features
        ],
        "is_same": found.is_same,
    }
