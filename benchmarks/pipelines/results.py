"""The results of the chains, as text."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from tfrfast.bench.machine import describe_machine

#: The lowest ratio that a chain should reach, by the work that takes most of its time.
GOALS = {"parsing": 3.0, "inflating": 1.2, "images": 1.2}
_LEAST = 0.95

_PAGE = """\
# Pipelines of public programs

<!-- Written by `python benchmarks/pipelines --out docs/pipelines.md`: change that and run it. -->

{machine}

`python benchmarks/pipelines` measures this. Each chain of calls comes from public training
programs, and is rewritten here, with similar data (`benchmarks/pipelines`). Plain
TensorFlow runs the chain, and so does
[`tfr.accelerate`](tensorflow.md#datasets-that-others-built).

- Plain and accelerated runs alternate, {turns} of each. A run makes the dataset and iterates it
  until all threads together have used {seconds:g} s of processor time. Indexes are built before.
- Figures are rows for each second of processor time: the medians of the runs, then the median and
  the range of the pairs' ratios.
- *not planned*: TensorFlow itself reads the files. `tfr.explain` says why.

| programs | most of the work | TensorFlow | accelerated | ratio |
|---|---|---:|---:|---:|
{rows}

{counts}
"""


class Result(NamedTuple):
    """Rows for each second of processor time, by run. Empty if the chain is not planned."""

    programs: str
    work: str
    plain: list[float]
    accelerated: list[float]

    @property
    def ratios(self) -> list[float]:
        pairs = zip(self.accelerated, self.plain, strict=True)
        return [ours / theirs for ours, theirs in pairs] or [1.0]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def line(self) -> str:
        if not self.plain:
            return f"{self.programs:64} {self.work:10} not planned"
        rates = f"{median(self.plain):10,.0f} {median(self.accelerated):10,.0f}"
        return f"{self.programs:64} {self.work:10}{rates} {self._in_words}"

    @property
    def row(self) -> str:
        """A row of a table in Markdown."""
        if not self.plain:
            return f"| {self.programs} | {self.work} | | | not planned |"
        rates = f"{median(self.plain):,.0f} | {median(self.accelerated):,.0f}"
        return f"| {self.programs} | {self.work} | {rates} | {self._in_words} |"

    @property
    def _in_words(self) -> str:
        return f"{self.ratio:.2f} ({min(self.ratios):.2f} to {max(self.ratios):.2f})"


def summary(results: Sequence[Result]) -> str:
    """Says how many chains of each kind reach its goal, and which chains became slower."""
    lines = []
    for work, goal in GOALS.items():
        kind = [each for each in results if each.work == work]
        reached = sum(each.ratio >= goal for each in kind)
        line = f"{work}: {reached} of {len(kind)} are at least {goal:g} times as fast"
        measured = [(each.ratio, each.programs) for each in kind if each.plain]
        if measured:
            lowest, programs = min(measured)
            middle = median(ratio for ratio, _ in measured)
            line += f"; median {middle:.2f}, lowest {lowest:.2f} ({programs})"
        lines.append(line)
    slower = [each.programs for each in results if each.ratio < _LEAST]
    lines.append(f"below {_LEAST}: {'; '.join(slower) or 'none'}")
    return "\n".join(lines)


def page(results: Sequence[Result], turns: int, seconds: float) -> str:
    """Returns docs/pipelines.md."""
    machine = describe_machine(("numpy", "tensorflow", "tensorflow-cpu"))
    figures = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    rows = "\n".join(each.row for each in results)
    counts = "\n".join(f"- {line}" for line in summary(results).splitlines())
    return _PAGE.format(turns=turns, seconds=seconds, machine=figures, rows=rows, counts=counts)
