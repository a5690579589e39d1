"""What commands say about damage. Every command that met some says so and exits with 1."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from tfrfast._native import printable
from tfrfast.base.sizes import counted
from tfrfast.base.tables import format_table
from tfrfast.jobs.deleting.deletion import unfinished_deletions
from tfrfast.reader import Skipped
from tfrfast.storage.schemes import is_url
from tfrfast.writing.appending import unfinished_appends
from tfrfast.writing.publishing import unfinished_sets

_SHOWN = 10


def left_out(damage: Sequence[Skipped]) -> int:
    """Says on stderr what was left out. Returns the exit code."""
    if not damage:
        return 0
    were = "was" if len(damage) == 1 else "were"
    lines = [f"tfrfast: {counted(len(damage), 'damaged places')} {were} left out:"]
    lines += damage_table(damage[:_SHOWN])
    if len(damage) > _SHOWN:
        lines.append(f"... and {len(damage) - _SHOWN:,} more (`tfrfast verify` lists all)")
    print("\n".join(lines), file=sys.stderr)
    return 1


def tell_of_unfinished_work(paths: Iterable[str]) -> None:
    """Says on stderr which sets lack files, and which deletions and appends are unfinished. Only
    local folders are listed, so not of URLs.
    """
    local = [path for path in paths if not is_url(path)]
    for each in [*unfinished_sets(local), *unfinished_deletions(local), *unfinished_appends(local)]:
        print(f"tfrfast: {printable(each)}", file=sys.stderr)


def damage_table(damage: Sequence[Skipped]) -> list[str]:
    return format_table(
        ["from", "to", "records lost", "shard"],
        [(each.begin, each.end, each.records or "unknown", each.path) for each in damage],
    )
