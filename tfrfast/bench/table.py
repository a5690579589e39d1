"""Comparisons as lines of text: the ratios, their range, and the cases that tfrfast loses."""

from __future__ import annotations

from collections.abc import Sequence

from tfrfast.bench.compare import DATASET, LOADER, LOADER_DATASET, TENSORFLOW, Comparison


def header_of(dataset: str = DATASET) -> tuple[str, ...]:
    """Returns the columns of a table that compares `dataset` and the Loader."""
    return (
        "data",
        "work",
        "TensorFlow/s",
        {DATASET: "Dataset"}.get(dataset, "to_tf"),
        "(range)",
        "Loader",
        "(range)",
        "CPU s",
    )


def explained(dataset: str = DATASET) -> list[str]:
    """Returns lines that explain the columns."""
    return [
        "TensorFlow/s: records a second of the fastest configuration of TensorFlow.",
        f"{header_of(dataset)[3]}, Loader: how many times as fast {dataset} and tfr.Loader are.",
        "(range): the same for the slowest and the fastest of all turns.",
        "CPU s: processor seconds for a million records, of TensorFlow and of these two.",
    ]


def _ours(comparison: Comparison) -> tuple[str, str]:
    return (DATASET if DATASET in comparison.timings else LOADER_DATASET, LOADER)


def row_of(comparison: Comparison) -> list[str]:
    cells = [
        comparison.data,
        comparison.work,
        f"{comparison.records_per_s(TENSORFLOW):,.0f}",
    ]
    for contender in _ours(comparison):
        low, high = comparison.ratio_range(contender)
        cells += [f"{_short(comparison.ratio(contender))} x", f"{_short(low)}-{_short(high)}"]
    spent = [comparison.processor_s_per_million(each) for each in (TENSORFLOW, *_ours(comparison))]
    cells.append(" ".join(map(_two_digits, spent)))
    return cells


def _short(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}"


def _two_digits(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 9.95 else f"{seconds:.0f}"


def where_slower(comparisons: Sequence[Comparison]) -> list[str]:
    """Returns a line for each case in which tfrfast is slower than TensorFlow."""
    return [
        f"{contender} is slower than TensorFlow: {each.data}, {each.work}: "
        f"{each.ratio(contender):.2f} x"
        for each in comparisons
        for contender in _ours(each)
        if each.ratio(contender) < 1
    ]
