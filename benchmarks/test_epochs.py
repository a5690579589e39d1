"""Times an epoch of every case, with tfrfast and with every other contender.

    pytest benchmarks/test_epochs.py -k "mnist and warm" --benchmark-columns=median,min,max

It prints a table for each case. `python benchmarks/report.py` measures the same cases, but
alternates the contenders, so that a noisy machine disturbs less. It writes docs/benchmarks.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from benchmarks.cases import Case, all_cases
from benchmarks.contenders import contenders
from benchmarks.rates import Turn, drop_from_memory, time_epoch
from tfrfast.bench.shapes import warm

ROUNDS = 3
NAMES = (
    "tfr.Loader",
    "tfr.TFRecordDataset",
    "TensorFlow, file after file",
    "TensorFlow, interleave",
    "tfr.TFRecordDataset, usual",
    "TensorFlow, usual",
    "NVIDIA DALI on CPU",
    "tfrecord (PyPI)",
    "ArrayRecord",
    "ArrayRecord with Grain",
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", list(all_cases()), ids=str)
def test_epoch(benchmark: Any, case: Case, name: str, scratch: Path) -> None:
    benchmark.group = str(case)
    found = contenders(case, scratch)
    if name not in found:
        pytest.skip(f"{name} is not installed, or cannot do this")
    work = case.work
    # slow contenders would take minutes for all files
    files = work.files if case.cold else work.files[:1]
    with tfr.Reader(files) as reader:
        num_records = len(reader)
    if not case.cold:
        warm(files)
    built = None if case.cold else found[name](files)
    turns: list[Turn] = []

    def prepare() -> tuple[tuple[Any, ...], dict[str, Any]]:
        if case.cold:
            drop_from_memory(files)
        return (built or found[name](files),), {}

    def run(start: Any) -> None:
        turns.append(time_epoch(start, work.batch_size, num_records))

    benchmark.pedantic(run, setup=prepare, rounds=ROUNDS, warmup_rounds=0 if case.cold else 1)
    benchmark.extra_info["turns"] = [turn._asdict() for turn in sorted(turns[-ROUNDS:])]
