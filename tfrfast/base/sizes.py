"""Numbers in human form."""

from __future__ import annotations

import re

_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def format_bytes(count: float) -> str:
    """1536 -> '1.5 KiB'."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("the last unit returns")


def rounded(count: int) -> str:
    """1234 -> "1,234", 5012345 -> "5.0 million"."""
    for size, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if count >= size:
            return f"{count / size:,.1f} {name}"
    return f"{count:,}"


def counted(count: int, things: str) -> str:
    """(2000, "records") -> "2,000 records", (1, "indexes") -> "1 index"."""
    singular = things.removesuffix("es") if things.endswith("xes") else things.removesuffix("s")
    return f"{count:,} {singular if count == 1 else things}"


def said_of_append(before: int, now: int, first: str) -> str:
    """Returns a sentence about the records that a set had, and those it has.

    `first` is the first new shard.
    """
    return (
        f"The set had {before:,} records, and has {now:,}: {counted(now - before, 'records')} were "
        f"appended after, from {first!r} on."
    )


def parse_bytes(text: str) -> int:
    """ "1GiB" -> 2**30. Also understands "512M", "200MB" and "1000"; units are powers of 1024."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if match is None:
        raise ValueError(f"expected a size like 512M or 2GiB, not {text!r}.")
    return int(float(match[1]) * _SUFFIXES[match[2].upper()])
