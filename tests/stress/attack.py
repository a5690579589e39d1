"""Attacks tfrfast for a while: damage, stale files, kills, failing system calls, small limits.

    python tests/stress/attack.py --seconds 600            uses a new seed, and prints it
    python tests/stress/attack.py --seed 7 --round 123     repeats one round of that run

Each round is a process of its own. A round may end in clear errors. It must never return wrong
bytes, crash, hang, or leave wrong files that a later reader would trust.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import os
import random
import secrets
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import damaged_bytes
import damaged_caches
import failing_calls
import killed_jobs
import killed_processes
import little_memory
import slow_links
import small_limits
import stale_files
import tf_data_chains

import tfrfast as tfr

# Names are imported at their first use. Import them now, because an import would fail under a
# limit.
for _name in tfr.__all__:
    getattr(tfr, _name)

Attack = Callable[[random.Random, Path], str]

#: Each attack gets random numbers and an empty folder, and returns the name of the case.
ATTACKS: list[Attack] = [
    damaged_bytes.attack,
    stale_files.attack,
    killed_processes.attack,
    failing_calls.attack,
    small_limits.attack,
    tf_data_chains.attack,
    killed_jobs.attack,
    damaged_caches.attack,
    slow_links.attack,
    little_memory.attack,
]
if importlib.util.find_spec("obstore") is None:
    print("without obstore, no attack on caches and links")
    for _attack in (damaged_caches.attack, slow_links.attack):
        ATTACKS.remove(_attack)
#: A round takes a second or two. A round that takes this long hangs, on any machine.
PATIENCE_S = 300


def run_round(seed: int, number: int, folder: Path) -> str | None:
    """Runs a round in a child. Returns the failure, or None. The case's name goes to stdout."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE_S)
        os.setpgid(0, 0)
        status = 1
        try:
            chosen = random.Random(f"{seed}/{number}")
            # The cache is part of the attack, and never the user's own.
            os.environ["TFRFAST_CACHE_DIR"] = str(folder / "cache")
            (folder / "cache").mkdir()
            (folder / "data").mkdir()
            os.chdir(folder)
            case = chosen.choice(ATTACKS)(chosen, folder / "data")
            (folder / "case").write_text(case)
            status = 0
        except BaseException:
            (folder / "failure").write_text(traceback.format_exc())
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status == 0:
        return None
    failure = folder / "failure"
    said = failure.read_text() if failure.exists() else ""
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return f"{said}the process died of {name}" + (" (it hung)" if name == "SIGALRM" else "")
    return said or f"the process ended with status {status}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--round", type=int, help="only this one, keeping its folder")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    ends = time.monotonic() + arguments.seconds
    cases: collections.Counter[str] = collections.Counter()
    number = arguments.round or 0
    while True:
        folder = Path(tempfile.mkdtemp(prefix="tfrfast-stress-"))
        failure = run_round(arguments.seed, number, folder)
        if failure is not None:
            print(f"{failure}\nround {number} of seed {arguments.seed} failed; its files: {folder}")
            print(f"again: {Path(__file__).name} --seed {arguments.seed} --round {number}")
            return 1
        cases[(folder / "case").read_text()] += 1
        if arguments.round is not None:
            print(f"round {number} held: {next(iter(cases))}; its files: {folder}")
            return 0
        shutil.rmtree(folder)
        number += 1
        if time.monotonic() >= ends:
            break
    for case, count in sorted(cases.items()):
        print(f"{count:6}  {case}")
    print(f"{number} rounds held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
