"""Attacks tfrfast for a while: every attack of the matrix, on every road that it goes with.

    python tests/stress/attack.py --seconds 600            uses a new seed, and prints it
    python tests/stress/attack.py --cell "damage, Loader"  runs the cells whose names have this pattern
    python tests/stress/attack.py --seed 7 --round 123     repeats one round of that run
    python tests/stress/attack.py --matrix                 prints the matrix

Each round is a process of its own. A round may end in clear errors. It must never return wrong
bytes, lose any without a word, crash, hang, or leave wrong files that a later reader would trust.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import secrets
import shutil
import sys
import tempfile
import time
from pathlib import Path

import failures
import tfrfast as tfr
from matrix import KNOWN, cells, is_installed, table
from rounds import prepare, run_round

# Names are imported at their first use. Import them now, because an import would fail under a
# limit.
for _name in tfr.__all__:
    getattr(tfr, _name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--round", type=int, help="only this one, keeping its folder")
    parser.add_argument("--cell", default="", help="only cells whose name has this pattern")
    parser.add_argument("--matrix", action="store_true", help="print the matrix")
    arguments = parser.parse_args()
    if arguments.matrix:
        print(table())
        return 0
    if not failures.is_preloaded():
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], failures.preload())
    wanted = re.compile(arguments.cell)
    chosen = [cell for cell in cells() if wanted.search(f"{cell[0].name}, {cell[1].name}")]
    roads = {road.name: road for _, road in chosen}
    for road in roads.values():
        if not is_installed(road):
            print(f"left out: {road.name}, which needs {' and '.join(road.needs)}")
    chosen = [cell for cell in chosen if is_installed(cell[1])]
    prepare(road for _, road in chosen)
    print(f"seed {arguments.seed}, {len(chosen)} cells", flush=True)
    ends = time.monotonic() + arguments.seconds
    held: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    known: collections.Counter[str] = collections.Counter()
    failed: dict[str, int] = {}
    number = arguments.round or 0
    while chosen:
        # Each cell comes once before any comes twice.
        turn, place = divmod(number, len(chosen))
        order = random.Random(f"{arguments.seed}/{turn}").sample(chosen, len(chosen))
        attack, road = order[place]
        name = f"{attack.name}, {road.name}"
        if name not in failed:
            folder = Path(tempfile.mkdtemp(prefix="tfrfast-stress-"))
            failure = run_round(attack, road, f"{arguments.seed}/{number}", folder)
            if failure is None:
                held[attack.name].update(rounds=1, **json.loads((folder / "counts").read_text()))
            elif (attack.name, road.name) in KNOWN:
                known[f"{name}: {KNOWN[attack.name, road.name]}"] += 1
            else:
                failed[name] = number
                again = f"--seed {arguments.seed} --round {number}"
                again += f" --cell {arguments.cell!r}" if arguments.cell else ""
                print(f"{failure}\n{name} failed; its files: {folder}\nagain: {again}", flush=True)
            if failure is None or name not in failed:
                if arguments.round is None:
                    shutil.rmtree(folder, ignore_errors=True)
                else:
                    print(f"round {number} held: {name}; its files: {folder}")
        number += 1
        if arguments.round is not None or time.monotonic() >= ends:
            break
    for case, counts in held.items():
        print(f"{case:10}" + ", ".join(f"{count:,} {what}" for what, count in counts.items()))
    for case, count in sorted(known.items()):
        print(f"known to fail, {count} times: {case}")
    rounds = sum(counts["rounds"] for counts in held.values())
    print(f"{rounds} rounds held, {known.total()} failed as known, {len(failed)} cells failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
