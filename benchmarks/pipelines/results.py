"""What was measured, as text."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from tfrfast.bench.machine import describe_machine

#: What a chain should gain at least, by what most of its time goes into.
GOALS = {"parsing": 3.0, "inflating": 1.2, "images": 1.2}
_LEAST = 0.95

_PAGE = """\
# Pipelines of public programs

<!-- Written by `python benchmarks/pipelines --out docs/pipelines.md`: change that and run it. -->

{machine}

`python benchmarks/pipelines` measures this. Each chain of calls is one that public training
programs have, written again with data like theirs
(`benchmarks/pipelines`). It is run as it is, by plain TensorFlow, and
through [`tfr.accelerate`](tensorflow.md#datasets-that-others-built).

- The two take turns in pairs, {turns} runs each. A run makes the dataset and iterates it until it
  has used {seconds:g} s of processor time, of all threads. Indexes are built before.
- Figures are rows for each second of processor time: medians, the median of the pairs' ratios, and
  its range.
- *not planned*: TensorFlow reads it, as `tfr.explain` says.

| programs | most of the work | TensorFlow | accelerated | ratio |
|---|---|---:|---:|---:|
{rows}

{counts}
"""


class Result(NamedTuple):
    """Rows for each second of processor time, run by run. None where nothing was planned."""

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
    """How many reach the goal of their kind, and which lose."""
    lines = []
    for work, goal in GOALS.items():
        kind = [each for each in results if each.work == work]
        reached = sum(each.ratio >= goal for each in kind)
        lines.append(f"{work}: {reached} of {len(kind)} gain {goal:g} times")
    slower = [each.programs for each in results if each.ratio < _LEAST]
    lines.append(f"below {_LEAST}: {'; '.join(slower) or 'none'}")
    return "\n".join(lines)


def page(results: Sequence[Result], turns: int, seconds: float) -> str:
    """A page of the docs."""
    machine = describe_machine(("numpy", "tensorflow", "tensorflow-cpu"))
    figures = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    rows = "\n".join(each.row for each in results)
    counts = "\n".join(f"- {line}" for line in summary(results).splitlines())
    return _PAGE.format(turns=turns, seconds=seconds, machine=figures, rows=rows, counts=counts)
