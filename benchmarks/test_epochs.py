"""Epochs of every kind through ours and through everything they are measured beside.

    pytest benchmarks/test_epochs.py -k "mnist and warm" --benchmark-columns=median,min,max

One table for each case. `python benchmarks/report.py` measures the same in turns, which a noisy
machine disturbs less, and writes docs/benchmarks.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.cases import Case, all_cases
from benchmarks.contenders import contenders
from benchmarks.rates import drop_from_memory, rate_of
from tfrfast._bench.shapes import warm

LIMIT_S = 3
ROUNDS = 3
NAMES = (
    "tfr.Loader",
    "tfr.TFRecordDataset",
    "TensorFlow, file after file",
    "TensorFlow, interleave",
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
    if not case.cold:
        warm(work.files)
    built = None if case.cold else found[name]()
    rates: list[float] = []

    def prepare() -> tuple[tuple[Any, ...], dict[str, Any]]:
        if case.cold:
            drop_from_memory(work.files)
        return (built or found[name](),), {}

    def run(start: Any) -> None:
        rates.append(rate_of(start, work.batch_size, LIMIT_S))

    benchmark.pedantic(run, setup=prepare, rounds=ROUNDS, warmup_rounds=0 if case.cold else 1)
    benchmark.extra_info["records_per_s"] = sorted(rates[-ROUNDS:])
