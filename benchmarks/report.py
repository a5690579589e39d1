"""Measures every case and writes docs/benchmarks.md with its pictures.

    python benchmarks/report.py [--only TEXT] [--without TEXT] [--rounds 5] [--limit-s 3] [--out docs]

Everyone in a case takes turns. `--only mnist` leaves out the cases whose names lack that, and
`--without Grain` the contenders whose names have it. What was measured is kept in
OUT/benchmarks.json, to which a run with `--only` adds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

# Behind everything else: what is installed is what is measured, not the sources.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks.cases import all_cases
from benchmarks.contenders import DATASET, LOADER, OURS, contenders
from benchmarks.rates import rates_in_turns
from tfrfast._bench.machine import describe_machine
from tfrfast._bench.shapes import warm
from tfrfast._charts import Bar, draw_ratios

_PACKAGES = (
    "numpy",
    "tensorflow",
    "tensorflow-cpu",
    "array_record",
    "grain",
    "nvidia-dali-cuda120",
    "tfrecord",
)
_USUAL = "TensorFlow, usual"

Measured = dict[str, dict[str, list[float]]]
"""Case, contender, records a second of each round."""


class Ratio(NamedTuple):
    """Ours over theirs, round by round."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.1f} ({self.low:.1f} to {self.high:.1f})"


def ratio(ours: list[float], theirs: list[float]) -> Ratio:
    each = [one / other for one, other in zip(ours, theirs, strict=True)]
    return Ratio(median(each), min(each), max(each))


def tensorflow_best(rates: dict[str, list[float]]) -> str | None:
    """The fastest of TensorFlow's configurations in this case."""
    theirs = [name for name in rates if name.startswith("TensorFlow")]
    return max(theirs, key=lambda name: median(rates[name])) if theirs else None


def measure(
    only: str, without: str, rounds: int, limit_s: float, measured: Measured
) -> Iterator[None]:
    """Adds to `measured`, case by case."""
    with tempfile.TemporaryDirectory() as scratch:
        for case in all_cases():
            if only not in str(case):
                continue
            files = case.work.files
            if not case.cold:
                warm(files)
            builders = {
                name: build
                for name, build in contenders(case, Path(scratch)).items()
                if not without or without not in name
            }
            rates = rates_in_turns(
                builders,
                case.work.batch_size,
                rounds,
                limit_s if not case.cold else float("inf"),
                files if case.cold else None,
            )
            measured[str(case)] = {name: each.records_per_s for name, each in rates.items()}
            print(case, {name: round(each.median) for name, each in rates.items()}, flush=True)
            yield


def table(measured: Measured) -> str:
    """A line for each contender in each case."""
    lines = [
        "| case | | records/s, median (range) | tfr.Loader is so many times as fast "
        "| tfr.TFRecordDataset is |",
        "|---|---|---:|---:|---:|",
    ]
    for case, rates in measured.items():
        for number, (name, each) in enumerate(rates.items()):
            cells = [
                "" if name in OURS or ours not in rates else str(ratio(rates[ours], each))
                for ours in OURS
            ]
            spread = f"{median(each):,.0f} ({min(each):,.0f} to {max(each):,.0f})"
            lines.append(
                f"| {case if number == 0 else ''} | {name} | {spread} | {' | '.join(cells)} |"
            )
    return "\n".join(lines)


def losses(measured: Measured) -> str:
    """Wherever anyone is faster than either of ours."""
    found = []
    for case, rates in measured.items():
        for ours in OURS:
            for name, each in rates.items():
                if ours not in rates or name in OURS:
                    continue
                against = ratio(rates[ours], each)
                if against.median < 1:
                    found.append(
                        f"- {case}: {ours} is {against.median:.2f} times as fast as {name}."
                    )
    return "\n".join(found) or "Nowhere in these cases."


def summary(measured: Measured) -> str:
    """Against the best of TensorFlow: what the README shows."""
    lines = [
        "| case | TensorFlow's best, records/s | tfr.TFRecordDataset | tfr.Loader |",
        "|---|---:|---:|---:|",
    ]
    for case, rates in measured.items():
        best = tensorflow_best(rates)
        if best is None or "thread" in case:
            continue
        ratios = [f"{ratio(rates[ours], rates[best]).median:.1f} x" for ours in (DATASET, LOADER)]
        lines.append(f"| {case} | {median(rates[best]):,.0f} | {' | '.join(ratios)} |")
    return "\n".join(lines)


def bars(measured: Measured) -> list[Bar]:
    made = []
    for case, rates in measured.items():
        best = tensorflow_best(rates)
        if best is not None and "thread" not in case:
            made += [
                Bar(case, ours, *ratio(rates[ours], rates[best])) for ours in (DATASET, LOADER)
            ]
    return made


TEXT = """# Benchmarks

<!-- Written by `python benchmarks/report.py`: change that and run it. -->

{machine}

`python benchmarks/report.py` measures this, after `pip install -r benchmarks/requirements.txt`. The data are
three shapes ([shapes.py](../tfrfast/_bench/shapes.py)): `ctr`, 2,000,000 records of 258 B; `mnist`, 60,000 of 3.2 KB; `image`,
16,000 of 110 KB. All contenders of a case take turns; figures are medians of {rounds} rounds with the lowest and the
highest, ratios are medians of the ratios round by round. A turn is an epoch, or its first {limit_s:g} s, in which case the
time to the first batch is not counted. Shuffled means an exact global shuffle for tfrfast, ArrayRecord and Grain, and a window of
8,192 records for TensorFlow, DALI and `tfrecord`. DALI and `tfrecord` check no CRC. Grain is
left out of `ctr`, where a turn would take it minutes. Cold means that the files were dropped from memory before
each turn. A `load` above the number of processors means that the machine was busy with other work, too: absolute figures are
low then, and ranges wide.

## Against TensorFlow at its best

{summary}

![The same ratios as a picture](benchmarks.svg)

## Where we lose

{losses}

## Everything

{table}
"""


def write(out: Path, kept: dict[str, Any]) -> None:
    measured: Measured = kept["measured"]
    (out / "benchmarks.json").write_text(json.dumps(kept, indent=1) + "\n")
    facts = "\n".join(f"- {name}: {fact}" for name, fact in kept["machine"].items())
    text = TEXT.format(
        machine=facts,
        rounds=kept["rounds"],
        limit_s=kept["limit_s"],
        summary=summary(measured),
        losses=losses(measured),
        table=table(measured),
    )
    (out / "benchmarks.md").write_text(text)
    title = "Times as fast as TensorFlow's fastest configuration"
    draw_ratios(out / "benchmarks.svg", title, bars(measured))


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose names hold this")
    parser.add_argument("--without", default="", metavar="TEXT", help="contenders to leave out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit-s", type=float, default=3)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    options = parser.parse_args()
    path = options.out / "benchmarks.json"
    kept = json.loads(path.read_text()) if options.only and path.exists() else {"measured": {}}
    options.out.mkdir(parents=True, exist_ok=True)
    measured = kept["measured"]
    cases = measure(options.only, options.without, options.rounds, options.limit_s, measured)
    for _ in cases:  # a run that is stopped leaves what it has
        kept |= {
            "machine": describe_machine(_PACKAGES),
            "rounds": options.rounds,
            "limit_s": options.limit_s,
        }
        write(options.out, kept)
    if not measured:
        sys.exit(f"no case's name holds {options.only!r}")


if __name__ == "__main__":
    main()
