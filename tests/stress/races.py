"""Looks for data races at the boundary between Python and native code, for a while.

    python tests/stress/races.py SITE --seconds 600     SITE holds tfrfast, made for the thread sanitizer

Runs the scenarios of tests/support/boundary.py, one after the other, under GCC's thread sanitizer.
The sanitizer sees all accesses of native code. The interpreter is not made for the sanitizer, so
only its locks are seen.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SUPPORT = Path(__file__).parents[1] / "support"
SUPPRESSIONS = Path(__file__).with_suffix(".supp")
SCENARIOS = ["threads", "exits", "forks", "garbage", "signals"]
#: A round takes seconds. A round that takes this long hangs, on any machine.
PATIENCE_S = 900


def sanitized_environment(site: Path) -> dict[str, str]:
    compiler = os.environ.get("CXX", "g++")
    library = subprocess.check_output([compiler, "-print-file-name=libtsan.so"], text=True).strip()
    return {
        **os.environ,
        "LD_PRELOAD": library,
        "PYTHONPATH": os.pathsep.join([str(site), str(SUPPORT)]),
        # Forked children of processes with many threads continue under the sanitizer.
        "TSAN_OPTIONS": f"exitcode=66 die_after_fork=0 suppressions={SUPPRESSIONS}",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    environment = sanitized_environment(arguments.site.resolve())
    ends = time.monotonic() + arguments.seconds
    held: collections.Counter[str] = collections.Counter()
    for number, scenario in enumerate(itertools.cycle(SCENARIOS)):
        folder = tempfile.mkdtemp(prefix="tfrfast-races-")
        command = [str(SUPPORT / "boundary.py"), scenario, folder, "--rounds", "3"]
        seed = arguments.seed + number // len(SCENARIOS)
        done = subprocess.run(
            [sys.executable, *command, "--seed", str(seed)],
            env=environment,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if done.returncode != 0 or done.stdout:
            print(f"{done.stdout}\n{scenario} with seed {seed} failed: exit code {done.returncode}")
            return 1
        shutil.rmtree(folder)
        held[scenario] += 1
        if time.monotonic() >= ends:
            break
    print("held: " + ", ".join(f"{count} x {scenario}" for scenario, count in held.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
