"""Times the pipelines of public training programs, plain and through `tfr.accelerate`.

python benchmarks/pipelines [NAME ...] [--turns 9] [--seconds 2] [--out docs/pipelines.md]

Each NAME is a part of a program's name. A chain is measured in a process of its own, in pairs of
one run each, which take turns at going first. A run makes the dataset and iterates it until it has
taken so many seconds of processor time, of all threads. Figures are rows for each such second, with
medians of the pairs' ratios and their range. Indexes are built before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[2]
# At the end of the path: this measures the installed package, not the sources.
sys.path = [each for each in sys.path if Path(each).resolve() != Path(__file__).resolve().parent]
sys.path.append(str(ROOT))

from benchmarks.pipelines.results import Result, page, summary  # noqa: E402

if TYPE_CHECKING:
    from benchmarks.pipelines.chain import Chain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from benchmarks.pipelines.every import CHAINS

    if given.one is not None:
        from benchmarks.pipelines.measuring import measured

        print(json.dumps(measured(CHAINS[given.one], given.data, given.turns, given.seconds)))
        return
    with tempfile.TemporaryDirectory() as data:
        measure(given, CHAINS, data)


def measure(given: argparse.Namespace, chains: Sequence[Chain], data: str) -> None:
    """Measures each chain in a process. Those that read the same data share its files."""
    results = []
    for number, chain in enumerate(chains):
        if given.names and not any(name in chain.programs for name in given.names):
            continue
        command = [sys.executable, __file__, "--one", str(number)]
        command += ["--turns", str(given.turns), "--seconds", str(given.seconds), "--data", data]
        run = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        results.append(Result(*json.loads(run.stdout.splitlines()[-1])))
        print(results[-1].line, flush=True)
        if given.out:  # a run that is stopped leaves what it has
            given.out.write_text(page(results, given.turns, given.seconds))
    print(summary(results))


if __name__ == "__main__":
    main()
