"""Measures how random each kind of shuffle is, and writes docs/shuffle-quality.md and its picture.

python benchmarks/shuffle_quality.py        # needs matplotlib; takes about a minute
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import tfrfast as tfr

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
import shuffle_measures as measure  # noqa: E402

from orders import shuffled  # noqa: E402

RECORDS = 204_800
SEEDS = 12
FIRST_SEEDS = 2048
WINDOW = 8192
BLOCKS = 64, 4, 32  # 32 streams of 4 blocks of 64: as many records as WINDOW

Shuffle = Callable[[int, int], measure.Order]  # (records, seed)


def exact(records: int, seed: int) -> measure.Order:
    return shuffled(records, seed)


def numpy_permutation(records: int, seed: int) -> measure.Order:
    return np.random.default_rng(seed).permutation(records)


def in_blocks(records: int, seed: int) -> measure.Order:
    order = tfr.BlockShuffle(*BLOCKS, seed=seed)
    return tfr.Plan(order, records, num_records=records).indices(0, 0)


def streaming_window(records: int, seed: int) -> measure.Order:
    """Takes random records from a buffer of WINDOW records. The next record fills each gap."""
    choices = np.random.default_rng(seed).integers(0, WINDOW, records).tolist()
    buffer = list(range(WINDOW))
    order = []
    for record in range(WINDOW, records):
        at = choices[record]
        order.append(buffer[at])
        buffer[at] = record
    np.random.default_rng(seed + 1).shuffle(buffer)
    return np.array(order + buffer)


SHUFFLES: dict[str, Shuffle] = {
    "exact (`Shuffle`)": exact,
    "`numpy.random` permutation": numpy_permutation,
    "`BlockShuffle(64, 4, streams=32)`": in_blocks,
    f"streaming window of {WINDOW:,}": streaming_window,
}


def first_records(shuffle: Shuffle) -> list[measure.Order]:
    if shuffle is exact:
        return [shuffled(RECORDS, s, last=1) for s in range(FIRST_SEEDS)]
    if shuffle is in_blocks:
        orders = [tfr.BlockShuffle(*BLOCKS, seed=seed) for seed in range(FIRST_SEEDS)]
        return [tfr.Plan(order, 1, num_records=RECORDS).indices(0, 0) for order in orders]
    if shuffle is streaming_window:  # the first record comes from the first window
        return [np.random.default_rng(s).integers(0, WINDOW, 1) for s in range(FIRST_SEEDS)]
    return [shuffle(RECORDS, s)[:1] for s in range(FIRST_SEEDS)]


def first_records_z(shuffle: Shuffle) -> float:
    firsts = np.concatenate(first_records(shuffle))
    counts = np.bincount(firsts * 32 // RECORDS, minlength=32)
    return measure.chi_square_z(counts, FIRST_SEEDS / 32)


def measures_of(shuffle: Shuffle, orders: Sequence[measure.Order]) -> dict[str, str]:
    others = [shuffle(RECORDS, seed) for seed in range(1, SEEDS + 1)]
    z_scores = {
        "which record comes first": first_records_z(shuffle),
        "which part of the data goes to which part of the epoch": measure.places(orders),
        "step from a record to the next": measure.neighbours(orders),
        "neighbours in the data within 64 that follow each other": measure.close_neighbours(orders),
        "correlation at lags 1 to 64": measure.lags(orders),
        "agreement of the orders of seeds s and s + 1": measure.agreement(orders, others),
        "records within 16 at the same position, seeds s and s + 1": measure.same_place(
            orders, others
        ),
    }
    shown = {name: f"{z:+.1f}" if abs(z) < 1000 else f"{z:+,.0f}" for name, z in z_scores.items()}
    travel = np.mean([measure.travel(order) for order in orders])
    return shown | {"how far a record moves, parts of the epoch": f"{travel:.4f}"}


def key_avalanche(change_epoch: bool) -> float:
    n = 2**32
    seeds = np.random.default_rng(0).integers(0, 2**63, 1000).tolist()
    flips = np.empty((64, 4000), np.uint64)
    for bit in range(64):
        rows = []
        for seed in seeds:
            other = (seed, 5 ^ (1 << bit)) if change_epoch else (seed ^ (1 << bit), 5)
            rows.append(shuffled(n, seed, 5, last=4) ^ shuffled(n, *other, last=4))
        flips[bit] = np.concatenate(rows)
    return measure.avalanche(flips, 32)


def position_avalanche() -> float:
    plan = tfr.Plan(tfr.Shuffle(1), 1, num_records=2**32)

    def at(position: int) -> int:
        return int(plan.records_at(0, position, position + 1)[0])

    positions = np.random.default_rng(1).integers(0, 2**32, 4000).tolist()
    flips = [[at(p) ^ at(p ^ (1 << bit)) for p in positions] for bit in range(32)]
    return measure.avalanche(np.array(flips, np.uint64), 32)


def reads_table() -> str:
    """Returns how often all ranks together read a block, for several worlds and batch sizes."""
    shuffle = tfr.BlockShuffle(64, 4, streams=64)
    lines = ["| world | batch | reads of a block |", "|---:|---:|---:|"]
    for world, batch in [(1, 64), (2, 64), (8, 64), (64, 64), (3, 64), (12, 64), (24, 64), (3, 8)]:
        reads = 0
        for rank in range(world):
            plan = tfr.Plan(shuffle, batch, num_records=RECORDS + 1, rank=rank, world=world)
            records = np.concatenate([plan.indices(0, step) for step in range(plan.steps)])
            reads += len(np.unique(records // shuffle.block_records))
        blocks = -(-(RECORDS + 1) // shuffle.block_records)
        lines.append(f"| {world} | {batch} | {reads / blocks:.3f} |")
    return "\n".join(lines)


def draw(orders: dict[str, measure.Order], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, rows = pyplot.subplots(1, len(orders), figsize=(13, 3.7), sharey=True)
    shown = np.random.default_rng(0).choice(RECORDS, RECORDS // 10, replace=False)
    for axes, (name, order) in zip(rows, orders.items(), strict=True):
        axes.plot(shown, order[shown], ",", color="#20506e", alpha=0.8)
        axes.set_title(name.replace("`", ""), fontsize=10)
        axes.set_xlabel("position in the epoch")
        axes.set_xticks([0, RECORDS])
        axes.set_yticks([0, RECORDS])
        axes.set_aspect("equal")
    rows[0].set_ylabel("record")
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})


TEXT = """# How good the shuffles are

<!-- Written by benchmarks/shuffle_quality.py: change that and run it. -->

Every figure outside the last row is a z-score: the number of standard deviations between a
statistic and its value when all orders are equally likely. In a fair shuffle, only one figure in
16,000 lies beyond 4. Where a figure is far larger, the picture shows a pattern.

There are {records:,} records, and {seeds} seeds for each figure ({first_seeds:,} for the record that
comes first). The block shuffle draws on {in_use:,} records at a time, as many as the window of
{window:,} holds.

{table}

In an exact order of 2**32 records, changing one bit of the seed changes each bit of the result half
the time (all 64 x 32 pairs of bits in one chi-square: {seed_avalanche:+.1f}).
A bit of the epoch ({epoch_avalanche:+.1f}) and a bit of the position ({position_avalanche:+.1f}) do the same.

![Record against position for the four shuffles](shuffle-quality.png)

What the table says:

- By these measures, the exact order is as random as NumPy's permutation. NumPy needs 8 bytes a
  record, and the exact order needs none.
- A streaming window leaves the data's order in place: the diagonal in the picture is the data's own
  order, only blurred. If the data is sorted by class or by date, so is training.
- A block shuffle of the same size can send a record anywhere: blocks go to random places, so every
  record is equally likely at every position. But the records of a block stay near each other, and
  the rows about parts of the data show that. A shuffle that mixes more blocks is closer to exact.

The table shows how often all ranks together read a block with `BlockShuffle(64, 4, streams=64)`. If
the world divides the streams, ranks share only blocks at the end of the epoch. Otherwise ranks share
streams, most of all if a step has fewer rows than there are streams (the last line).

{reads}

The orders are [frozen](permutation.md), so the figures hold for every version of tfrfast.
"""


def main() -> None:
    columns: dict[str, dict[str, str]] = {}
    drawn: dict[str, measure.Order] = {}
    for name, shuffle in SHUFFLES.items():
        orders = [shuffle(RECORDS, seed) for seed in range(SEEDS)]
        columns[name] = measures_of(shuffle, orders)
        drawn[name] = orders[0]
        print(name, columns[name], flush=True)
    lines = ["| measure | " + " | ".join(columns) + " |", "|---" + "|---:" * len(columns) + "|"]
    for row in next(iter(columns.values())):
        lines.append(f"| {row} | " + " | ".join(column[row] for column in columns.values()) + " |")
    text = TEXT.format(
        records=RECORDS,
        seeds=SEEDS,
        first_seeds=FIRST_SEEDS,
        in_use=math.prod(BLOCKS),
        window=WINDOW,
        table="\n".join(lines),
        reads=reads_table(),
        seed_avalanche=key_avalanche(False),
        epoch_avalanche=key_avalanche(True),
        position_avalanche=position_avalanche(),
    )
    (ROOT / "docs" / "shuffle-quality.md").write_text(text)
    draw(drawn, ROOT / "docs" / "shuffle-quality.png")


if __name__ == "__main__":
    main()
