"""Measures how random an order is. Each measure is a z-score: the distance, in standard deviations,
between a statistic and its expected value if all orders are equally likely. One measure in 16,000 of
a fair shuffle lies beyond 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Order = npt.NDArray[np.int64]


def chi_square_z(counts: npt.NDArray[np.generic], expected: float) -> float:
    freedom = counts.size - 1
    chi_square = float(((counts.astype(np.float64) - expected) ** 2).sum() / expected)
    return (chi_square - freedom) / float(np.sqrt(2 * freedom))


def first_records(orders: Sequence[Order], buckets: int = 32) -> float:
    """Do all records come first equally often?"""
    n = len(orders[0])
    firsts = np.array([order[0] for order in orders])
    counts = np.bincount(firsts * buckets // n, minlength=buckets)
    return chi_square_z(counts, len(orders) / buckets)


def places(orders: Sequence[Order], buckets: int = 32) -> float:
    """Do the records of every part of the data go to every part of the epoch equally often?"""
    return agreement([np.arange(len(orders[0]))] * len(orders), orders, buckets)


def agreement(first: Sequence[Order], second: Sequence[Order], buckets: int = 32) -> float:
    """Does one order tell anything about the other? Counts, over all positions, how often a record
    of one part of the data meets a record of another; `buckets` divides the number of records."""
    n = len(first[0])
    counts = np.zeros(buckets * buckets)
    for one, other in zip(first, second, strict=True):
        cells = one * buckets // n * buckets + other * buckets // n
        counts += np.bincount(cells, minlength=buckets * buckets)
    # Each order fills every row and column of the table equally, so its cells vary a little more
    # than independent draws would: by n / (n - 1), with (buckets - 1)**2 degrees of freedom.
    freedom = (buckets - 1) ** 2
    expected = n * len(first) / buckets**2
    chi_square = float(((counts - expected) ** 2).sum() / expected) * (n - 1) / n
    return (chi_square - freedom) / float(np.sqrt(2 * freedom))


def neighbours(orders: Sequence[Order], buckets: int = 1024) -> float:
    """Do the steps from one record to the next, around the circle, all occur equally often?"""
    n = len(orders[0])
    counts = np.zeros(buckets)
    for order in orders:
        steps = np.diff(order) % n
        counts += np.bincount(steps * buckets // n, minlength=buckets)
    return chi_square_z(counts, counts.sum() / buckets)


def close_neighbours(orders: Sequence[Order], reach: int = 64) -> float:
    """Do records within `reach` of each other follow each other as often as by chance?"""
    n = len(orders[0])
    close = sum(int((np.abs(np.diff(order)) <= reach).sum()) for order in orders)
    chance = (2 * reach * n - reach * (reach + 1)) / (n * (n - 1))
    expected = len(orders) * (n - 1) * chance
    return (close - expected) / float(np.sqrt(expected))


def lags(orders: Sequence[Order], longest: int = 64) -> float:
    """Are records some places apart correlated? All lags from 1 to `longest` in one chi-square."""
    n = len(orders[0])
    total = np.zeros(longest)
    for order in orders:
        x = (order - (n - 1) / 2) / np.sqrt((n * n - 1) / 12)
        total += [
            float((x[lag:] * x[:-lag]).sum() / np.sqrt(n - lag)) for lag in range(1, longest + 1)
        ]
    z = total / np.sqrt(len(orders))
    return float((np.sum(z * z) - longest) / np.sqrt(2 * longest))


def same_place(first: Sequence[Order], second: Sequence[Order], reach: int = 16) -> float:
    """Do two orders have records within `reach` of each other at a position as often as by
    chance?
    """
    n = len(first[0])
    near = sum(
        int((np.abs(one - other) <= reach).sum()) for one, other in zip(first, second, strict=True)
    )
    expected = len(first) * ((2 * reach + 1) * n - reach * (reach + 1)) / n
    return (near - expected) / float(np.sqrt(expected))


def travel(order: Order) -> float:
    """Returns the mean distance that a record moves, as a part of the epoch. Fair is 1/3."""
    n = len(order)
    return float(np.abs(order - np.arange(n)).mean()) / n


def avalanche(flips: npt.NDArray[np.uint64], bits: int) -> float:
    """Does each output bit change half the time? `flips` are XORs of results, one row for each
    input bit that was changed."""
    trials = flips.shape[1]
    squares = 0.0
    for bit in range(bits):
        changed = ((flips >> np.uint64(bit)) & np.uint64(1)).sum(axis=1).astype(np.float64)
        squares += float((((changed - trials / 2) / np.sqrt(trials / 4)) ** 2).sum())
    freedom = bits * flips.shape[0]
    return (squares - freedom) / float(np.sqrt(2 * freedom))
