"""Times the pipelines of public training programs, plain and through `tfr.accelerate`.

python benchmarks/pipelines [NAME ...] [--turns 9] [--seconds 2] [--out docs/pipelines.md]

Each NAME is a part of a program's name. A chain is measured in a process of its own. A plain run and
an accelerated run make a pair, and each goes first in every other pair. A run makes the dataset and
iterates it until all threads together have used `--seconds` of processor time. Figures are rows for
each second of processor time, and the median and range of the pairs' ratios. Indexes are built
before.
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
    """Measures each chain in a process. Chains that read the same data share the files."""
    results = []
    for number, chain in enumerate(chains):
        if given.names and not any(name in chain.programs for name in given.names):
            continue
        command = [sys.executable, __file__, "--one", str(number)]
        command += ["--turns", str(given.turns), "--seconds", str(given.seconds), "--data", data]
        run = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        results.append(Result(*json.loads(run.stdout.splitlines()[-1])))
        print(results[-1].line, flush=True)
        if given.out:  # after an interruption, the page has the results so far
            given.out.write_text(page(results, given.turns, given.seconds))
    print(summary(results))


if __name__ == "__main__":
    main()
