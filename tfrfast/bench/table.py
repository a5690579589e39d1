"""Comparisons as lines of text: the ratios, their range, and the cases that we lose."""

from __future__ import annotations

from collections.abc import Sequence

from tfrfast.bench.compare import DATASET, LOADER, LOADER_DATASET, TENSORFLOW, Comparison


def header_of(dataset: str = DATASET) -> tuple[str, ...]:
    """The columns of a table whose comparisons have this one beside the Loader."""
    return (
        "data",
        "work",
        "TensorFlow, records/s",
        "configuration",
        dataset.removeprefix("tfr."),
        "(range)",
        "Loader",
        "(range)",
        "processor s per million",
    )


def _ours(comparison: Comparison) -> tuple[str, str]:
    return (DATASET if DATASET in comparison.timings else LOADER_DATASET, LOADER)


def row_of(comparison: Comparison) -> list[str]:
    cells = [
        comparison.data,
        comparison.work,
        f"{comparison.records_per_s(TENSORFLOW):,.0f}",
        comparison.tensorflow_way,
    ]
    for contender in _ours(comparison):
        low, high = comparison.ratio_range(contender)
        cells += [f"{comparison.ratio(contender):.1f} x", f"{low:.1f} to {high:.1f}"]
    spent = [comparison.processor_s_per_million(each) for each in (TENSORFLOW, *_ours(comparison))]
    cells.append(", ".join(f"{each:.3g}" for each in spent))
    return cells


def where_slower(comparisons: Sequence[Comparison]) -> list[str]:
    """A line for each of our ways that is slower than TensorFlow."""
    return [
        f"{contender} is slower than TensorFlow: {each.data}, {each.work}: "
        f"{each.ratio(contender):.2f} x"
        for each in comparisons
        for contender in _ours(each)
        if each.ratio(contender) < 1
    ]
