"""Print counts, sizes, compression and a histogram of record sizes."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfrfast._native import record_kind
from tfrfast.base.sizes import format_bytes
from tfrfast.cli.common import (
    add_common,
    add_steps,
    print_json,
    print_table,
    say,
)
from tfrfast.cli.damage import damage_table, tell_of_unfinished_work
from tfrfast.errors import RecordError
from tfrfast.reader import Reader
from tfrfast.steps.steps import Steps

_BAR_CELLS = 40
_MAX_SHARDS_SHOWN = 10
_TRIED_RECORDS = 16
_TRIED_SHARDS = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    add_steps(parser, "also describe the steps of episodes")
    parser.add_argument("--shards", action="store_true", help="list every shard")


def run(options: argparse.Namespace) -> int:
    with Reader(options.paths, on_corruption="skip", progress=options.progress) as reader:
        if not len(reader) and reader.skipped:
            # Raises an error if the file is not a shard.
            Reader(options.paths, index="memory").close()
        damage = reader.skipped  # of frames: the records that are read below are not verified
        lengths = [shard.lengths for shard in reader.shards]
        all_lengths = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
        histogram = size_histogram(all_lengths)
        facts = {**_facts(reader, all_lengths), "damage": damage}
        steps = Steps(reader, along=options.steps) if options.steps else None
        if steps is not None:
            facts["steps"] = len(steps)
            facts["episodes"] = len(steps.episodes.lengths)
        if options.json:
            shards = [
                {
                    "path": shard.path,
                    "records": shard.num_records,
                    "bytes": shard.num_bytes,
                    "compression": shard.compression,
                    "index": shard.index,
                }
                for shard in reader.shards
            ]
            buckets = [{"from": low, "below": high, "records": n} for low, high, n in histogram]
            print_json({**facts, "histogram": buckets, "shards": shards})
        else:
            _print(reader, facts, histogram, options.shards)
            if damage:
                print("\nDamaged (not counted above):")
                print("\n".join(damage_table(damage)))
            print("\nNo record was verified. `tfrfast verify` does that.")
            if steps is not None:
                say(f"\n{steps._found_features()}")
        tell_of_unfinished_work(shard.path for shard in reader.shards)
        return 1 if damage else 0


def size_histogram(lengths: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Returns (from, below, records) by powers of two, without empty buckets at either end."""
    if lengths.size == 0:
        return []
    # The bucket of n is its bit length, which is exact for every int64, unlike a float's logarithm.
    edges = np.array([1 << bits for bits in range(63)], np.int64)
    counts = np.bincount(np.searchsorted(edges, lengths, side="right"))
    used = np.flatnonzero(counts)
    return [
        (0 if bits == 0 else 1 << (bits - 1), 1 << bits, int(counts[bits]))
        for bits in range(int(used[0]), int(used[-1]) + 1)
    ]


def exact_sum(numbers: NDArray[np.int64]) -> int:
    """Returns the exact sum of non-negative numbers, which could overflow an int64."""
    return (int((numbers >> 32).sum()) << 32) + int((numbers & 0xFFFFFFFF).sum())


def _facts(reader: Reader, lengths: NDArray[np.int64]) -> dict[str, Any]:
    size = lengths.size
    return {
        "records": len(reader),
        "shards": len(reader.shards),
        "file_bytes": sum(shard.num_bytes for shard in reader.shards),
        "payload_bytes": exact_sum(lengths),
        "compression": sorted({shard.compression or "none" for shard in reader.shards}),
        "record_bytes": {
            "smallest": int(lengths.min()) if size else None,
            "median": float(np.median(lengths)) if size else None,
            "mean": float(lengths.mean()) if size else None,
            "largest": int(lengths.max()) if size else None,
        },
        "kinds": _kinds(reader),
        "inflating": _inflating(reader),
    }


def _kinds(reader: Reader) -> list[str]:
    """Returns what some records hold: the first of shards, and others that are far apart."""
    count = len(reader)
    begins = np.cumsum([0, *(shard.num_records for shard in reader.shards[:-1])])
    spread = np.linspace(0, count - 1, _TRIED_RECORDS).astype(np.int64)
    tried = np.unique([*begins[:: -(-len(begins) // _TRIED_SHARDS)], *spread])
    numbers = tried[(tried >= 0) & (tried < count)]
    unreadable = RecordError, OSError, MemoryError
    records: Iterable[bytes] = []
    try:
        records = reader.read(numbers)
    except unreadable:  # a record that cannot be read has no kind, and info tells the rest
        for number in numbers.tolist():
            with contextlib.suppress(*unreadable):
                records = [*records, reader[number]]
    return sorted({record_kind(each).removeprefix("a ") for each in records})


def _inflating(reader: Reader) -> dict[str, Any] | None:
    """Measures the cost of compression, with some records that are far apart."""
    first, numbers, stream_bytes, file_bytes = 0, [], 0, 0
    for shard in reader.shards:
        if shard.compression and shard.num_records:
            stream_bytes += int(shard.offsets[-1]) + int(shard.lengths[-1]) + 16
            file_bytes += shard.num_bytes
            numbers += [first + shard.num_records // 3, first + shard.num_records * 2 // 3]
        first += shard.num_records
    if not numbers:
        return None
    tried = numbers[:: -(-len(numbers) // _TRIED_RECORDS)]
    begin = time.perf_counter()
    for number in tried:
        reader.read([number])
    return {
        "file_bytes": file_bytes,
        "uncompressed_bytes": stream_bytes,
        "random_record_s": (time.perf_counter() - begin) / len(tried),
    }


def _print(
    reader: Reader, facts: dict[str, Any], histogram: list[tuple[int, int, int]], all_shards: bool
) -> None:
    sizes = facts["record_bytes"]
    print(f"records      {facts['records']:,}")
    print(f"kind         {', '.join(facts['kinds']) or 'unknown'} (a sample)")
    if "tensorflow.Event" in facts["kinds"]:
        print("events       of TensorBoard: `tfrfast export` writes their scalars as Parquet")
    print(f"shards       {facts['shards']:,}")
    print(f"bytes        {facts['file_bytes']:,} ({format_bytes(facts['file_bytes'])})")
    print(f"compression  {', '.join(facts['compression'])}")
    if facts["inflating"]:
        inflating = facts["inflating"]
        ratio = inflating["uncompressed_bytes"] / inflating["file_bytes"]
        print(
            f"inflated     {format_bytes(inflating['uncompressed_bytes'])}, {ratio:.2f} times the "
            f"files; {1000 * inflating['random_record_s']:.1f} ms for one record at random"
        )
    if histogram:
        print(
            f"record size  {sizes['smallest']:,} smallest, {sizes['median']:,.0f} median, "
            f"{sizes['mean']:,.0f} mean, {sizes['largest']:,} largest"
        )
        highest = max(count for _, _, count in histogram)
        width = len(format_bytes(1023))
        print()
        for low, high, count in histogram:
            bar = "#" * -(-count * _BAR_CELLS // highest)
            label = f"{format_bytes(low):>{width + 2}} to {format_bytes(high):<{width + 2}}"
            print(f"{label} {bar:<{_BAR_CELLS}} {count:,}")
    shown = reader.shards if all_shards else reader.shards[:_MAX_SHARDS_SHOWN]
    print()
    print_table(
        ["records", "bytes", "shard"],
        [(shard.num_records, shard.num_bytes, shard.path) for shard in shown],
    )
    if len(shown) < len(reader.shards):
        print(f"... and {len(reader.shards) - len(shown):,} more (--shards lists them)")
