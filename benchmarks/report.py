"""Measures every case and writes docs/benchmarks.md with its pictures.

    python benchmarks/report.py [--only TEXT] [--without TEXT] [--rounds 3] [--limit-s 1.5] [--out docs]

The contenders of a case take turns. `--only mnist` measures only cases whose name has `mnist` in
it, and `--without Grain` leaves out contenders whose name has `Grain` in it. The figures are kept
in OUT/benchmarks.json, and a run with `--only` adds to them.
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

# At the end of the path: this measures the installed package, not the sources.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks.cases import all_cases
from benchmarks.contenders import (
    DATASET,
    LOADER,
    OURS,
    USUAL_DATASET,
    USUAL_TENSORFLOW,
    contenders,
)
from benchmarks.rates import Rates, rates_in_turns
from benchmarks.ratio_chart import Bar, draw_ratios
from tfrfast.bench.machine import describe_machine
from tfrfast.bench.shapes import SHAPES, warm

_PACKAGES = (
    "numpy",
    "tensorflow",
    "tensorflow-cpu",
    "array_record",
    "grain",
    "nvidia-dali-cuda120",
    "tfrecord",
)

Measured = dict[str, dict[str, Rates]]
"""By case and contender."""


class Ratio(NamedTuple):
    """The ratio of our rate to theirs, by round."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.1f} ({self.low:.1f} to {self.high:.1f})"


def ratio(ours: Rates, theirs: Rates) -> Ratio:
    rounds = zip(ours.records_per_s, theirs.records_per_s, strict=True)
    each = [one / other for one, other in rounds]
    return Ratio(median(each), min(each), max(each))


def tensorflow_best(rates: dict[str, Rates]) -> str | None:
    """The fastest of TensorFlow's configurations in this case."""
    theirs = [name for name in rates if name.startswith("TensorFlow")]
    return max(theirs, key=lambda name: rates[name].median) if theirs else None


def measure(
    only: str, without: str, rounds: int, limit_s: float, measured: Measured
) -> Iterator[None]:
    """Adds the rates to `measured`, case by case."""
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
                builders, files, case.work.batch_size, rounds, limit_s, case.cold
            )
            measured[str(case)] = rates
            print(case, {name: round(each.median) for name, each in rates.items()}, flush=True)
            yield


def table(measured: Measured) -> str:
    """A line for each contender in each case."""
    lines = [
        "| case | | records/s, median (range) | processor s per million | shards "
        "| tfr.Loader, times as fast | tfr.TFRecordDataset, times as fast |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for case, rates in measured.items():
        for number, (name, each) in enumerate(rates.items()):
            cells = [
                case if number == 0 else "",
                name,
                f"{each.median:,.0f} ({min(each.records_per_s):,.0f} to "
                f"{max(each.records_per_s):,.0f})",
                processor_s(each),
                str(each.shards),
                *(
                    ""
                    if name.startswith("tfr.") or ours not in rates
                    else str(ratio(rates[ours], each))
                    for ours in OURS
                ),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def processor_s(rates: Rates) -> str:
    return f"{median(rates.processor_s_per_million):.3g}"


def losses(measured: Measured) -> str:
    """A line for each case in which another contender is faster than one of ours.

    The usual pipeline with our dataset is compared only with the same pipeline of TensorFlow.
    """
    found = []
    for case, rates in measured.items():
        pairs = [(ours, other) for ours in OURS for other in rates if not other.startswith("tfr.")]
        for ours, other in [*pairs, (USUAL_DATASET, USUAL_TENSORFLOW)]:
            if ours not in rates or other not in rates:
                continue
            against = ratio(rates[ours], rates[other])
            if against.median < 1:
                found.append(f"- {case}: {ours} is {against.median:.2f} times as fast as {other}.")
    return "\n".join(found) or "Nowhere in these cases."


def usual(measured: Measured) -> str:
    """Compares TensorFlow's usual pipeline with the same pipeline after one name was changed."""
    lines = [
        "| case | TensorFlow, records/s | tfr.TFRecordDataset | processor s per million: both |",
        "|---|---:|---:|---:|",
    ]
    for case, rates in measured.items():
        if USUAL_DATASET not in rates or "thread" in case:
            continue
        ours, theirs = rates[USUAL_DATASET], rates[USUAL_TENSORFLOW]
        lines.append(
            f"| {case} | {theirs.median:,.0f} | {ratio(ours, theirs)} "
            f"| {processor_s(theirs)}, {processor_s(ours)} |"
        )
    return "\n".join(lines)


def summary(measured: Measured) -> str:
    """Compares tfrfast with the best of TensorFlow. The README shows some of these lines."""
    lines = [
        "| case | TensorFlow's best, records/s | tfr.TFRecordDataset | tfr.Loader "
        "| processor s per million: TensorFlow, TFRecordDataset, Loader |",
        "|---|---:|---:|---:|---:|",
    ]
    for case, rates in measured.items():
        best = tensorflow_best(rates)
        if best is None or "thread" in case:
            continue
        ratios = [f"{ratio(rates[ours], rates[best]).median:.1f} x" for ours in (DATASET, LOADER)]
        spent = ", ".join(processor_s(rates[name]) for name in (best, DATASET, LOADER))
        lines.append(f"| {case} | {rates[best].median:,.0f} | {' | '.join(ratios)} | {spent} |")
    return "\n".join(lines)


def bars(measured: Measured) -> list[Bar]:
    made = []
    for case, rates in measured.items():
        best = tensorflow_best(rates)
        if best is not None and "thread" not in case:
            data, _, work = case.partition(", ")
            made += [
                Bar(data, work, ours, *ratio(rates[ours], rates[best]))
                for ours in (DATASET, LOADER)
            ]
    return sorted(made, key=lambda bar: list(SHAPES).index(bar.group))


TEXT = """# Benchmarks

<!-- Written by `python benchmarks/report.py`: change that and run it. -->

{machine}

`python benchmarks/report.py` measures this, after `pip install -r benchmarks/requirements.txt`. The
data have three shapes ([shapes.py](../tfrfast/bench/shapes.py)): `ctr` is 2,000,000 records of
258 B, `mnist` is 60,000 records of 3.2 KB, and `image` is 16,000 records of 110 KB.

- All contenders of a case take turns. Figures are medians of {rounds} rounds with the lowest and the
  highest. Ratios are medians of the ratios of each round.
- A turn is a whole epoch, beginning with `iter()`. If a contender needs more than {limit_s:g} s for an
  epoch, it reads only the first shards: as many as fit into {limit_s:g} s, and at least one.
- Processor time is the sum over all threads.
- Shuffled means an exact global shuffle for tfrfast, ArrayRecord and Grain, and a window of 8,192
  records for TensorFlow, DALI and `tfrecord`.
- DALI and `tfrecord` check no CRC.
- Grain is left out of `ctr`, where a turn would take minutes.
- GZIP shards have one member each, as TensorFlow writes them. The cache of inflated spans is set
  to 32 MiB, less than either set, so each epoch inflates all bytes.
- Cold means that the files were dropped from memory before each turn. Each turn builds its pipeline
  anew, so turns of `tfr.TFRecordDataset` include its planning.
- A `load` above the number of processors means that the machine was also busy with other work.
  Absolute figures are low then, and ranges wide.

## Against TensorFlow at its best

{summary}

![The same ratios as a picture](benchmarks.svg)

## The usual pipeline, one name changed

Most programs have `TFRecordDataset(files, num_parallel_reads=AUTOTUNE)`, then
`.map(parse_single_example).batch(n)`, and in shuffled cases `.shuffle(8192)`. The table shows the
gain from changing only the name of the dataset's class.
[pipelines.md](pipelines.md) has pipelines of public programs.

{usual}

## Where we lose

{losses}

## Everything

{table}
"""


def measured_of(kept: dict[str, Any]) -> Measured:
    return {
        case: {name: Rates(**each) for name, each in rates.items()}
        for case, rates in kept["measured"].items()
    }


def write(out: Path, kept: dict[str, Any]) -> None:
    measured = measured_of(kept)
    (out / "benchmarks.json").write_text(json.dumps(kept, indent=1) + "\n")
    facts = "\n".join(f"- {name}: {fact}" for name, fact in kept["machine"].items())
    text = TEXT.format(
        machine=facts,
        rounds=kept["rounds"],
        limit_s=kept["limit_s"],
        summary=summary(measured),
        usual=usual(measured),
        losses=losses(measured),
        table=table(measured),
    )
    (out / "benchmarks.md").write_text(text)
    machine = kept["machine"]
    draw_ratios(
        out / "benchmarks.svg",
        "How fast tfrfast reads, beside TensorFlow",
        "tf.data.TFRecordDataset in its fastest configuration",
        bars(measured),
        notes=[
            f"TensorFlow {machine.get('tensorflow', 'of the machine')} on {machine['processor']}, "
            f"{machine['memory']}, {machine['date']}."
        ],
    )


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["TFRFAST_INFLATED_BYTES"] = str(32 << 20)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only cases with this in their names"
    )
    parser.add_argument(
        "--without",
        default="",
        metavar="TEXT",
        help="leave out contenders with this in their names",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit-s", type=float, default=1.5)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    options = parser.parse_args()
    path = options.out / "benchmarks.json"
    kept = json.loads(path.read_text()) if options.only and path.exists() else {"measured": {}}
    options.out.mkdir(parents=True, exist_ok=True)
    measured = measured_of(kept)
    cases = measure(options.only, options.without, options.rounds, options.limit_s, measured)
    for _ in cases:  # writes after each case, so that a stopped run leaves its figures
        kept |= {
            "machine": kept.get("machine", {}) | describe_machine(_PACKAGES),
            "rounds": options.rounds,
            "limit_s": options.limit_s,
            "measured": {
                case: {name: each._asdict() for name, each in rates.items()}
                for case, rates in measured.items()
            },
        }
        write(options.out, kept)
    if not measured:
        sys.exit(f"no case has {options.only!r} in its name")


if __name__ == "__main__":
    main()
