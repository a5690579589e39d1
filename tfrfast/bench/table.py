"""Comparisons as lines of text: the ratios, their range, and the cases that tfrfast loses."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from tfrfast.base.tables import format_table, terminal_width
from tfrfast.bench.compare import DATASET, LOADER, LOADER_DATASET, REQUESTS, Comparison

_SHORT = {DATASET: "Dataset", LOADER_DATASET: "to_tf", LOADER: "Loader"}


def table_of(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yields the lines of a table, lines that explain its columns, and a line for each case in
    which tfrfast is slower than TensorFlow.
    """
    beside, ours = comparisons[0].beside, comparisons[0].ours
    columns = [cell for each in ours for cell in (_SHORT[each], "(range)")]
    yield from format_table(
        ["data", "work", f"{beside}/s", *columns, "CPU s"],
        map(_row, comparisons),
        terminal_width(sys.stdout),
    )
    yield ""
    yield (
        "requests/s: records a second that plain requests in order fetch."
        if beside == REQUESTS
        else "TensorFlow/s: records a second of the fastest configuration of TensorFlow."
    )
    names = " and ".join(ours)
    yield f"{', '.join(_SHORT[each] for each in ours)}: how many times as fast {names} are."
    yield "(range): the same for the slowest and the fastest of all turns."
    yield f"CPU s: processor seconds for a million records, of {beside} and of {names}."
    for each in comparisons:
        for contender in ours if beside != REQUESTS else ():
            if each.ratio(contender) < 1:
                yield (
                    f"{contender} is slower than TensorFlow: {each.data}, {each.work}: "
                    f"{each.ratio(contender):.2f} x"
                )


def _row(comparison: Comparison) -> list[str]:
    beside, ours = comparison.beside, comparison.ours
    cells = [comparison.data, comparison.work, f"{comparison.records_per_s(beside):,.0f}"]
    for contender in ours:
        ratios = comparison.ratios(contender)
        low, high = min(ratios), max(ratios)
        cells += [f"{_short(comparison.ratio(contender))} x", f"{_short(low)}-{_short(high)}"]
    spent = [comparison.processor_s_per_million(each) for each in (beside, *ours)]
    return [*cells, " ".join(map(_two_digits, spent))]


def _short(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 0.995 else f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}"


def _two_digits(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 9.95 else f"{seconds:.0f}"
