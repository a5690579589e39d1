"""A round: an attack on a road, in a process of its own."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from matrix import Attack
from road import FRAMEWORK, Road
from scene import Scene
from whole_children import watch

#: A round takes a second or two. A round that takes this long hangs, on any machine.
PATIENCE_S = 300


def run_round(attack: Attack, road: Road, seed: str, folder: Path) -> str | None:
    """Runs a round in a child. Returns the failure, or None. What was judged is counted in a file."""
    sys.stdout.flush()
    if FRAMEWORK in road.has:
        # Frameworks take seconds to import, and are imported once. They are not there otherwise.
        child = _frameworks.Process(target=_run, args=(attack.name, road.name, seed, folder))
        child.start()
        child.join()
        status = child.exitcode or 0
        child.close()
    else:
        process = os.fork()
        if process == 0:
            _run(attack.name, road.name, seed, folder)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status == 0:
        return None
    failure = folder / "failure"
    said = failure.read_text() if failure.exists() else ""
    if status < 0:
        return f"{said}the process died of {signal.Signals(-status).name}"
    return said or f"the process ended with status {status}"


_frameworks = multiprocessing.get_context("forkserver")


def prepare(roads: Iterable[Road]) -> None:
    """Names the frameworks that the rounds need."""
    needs = {name for road in roads if FRAMEWORK in road.has for name in road.needs}
    _frameworks.set_forkserver_preload([*sorted(needs), "rounds"])


def _run(attack_name: str, road_name: str, seed: str, folder: Path) -> None:
    from matrix import ATTACKS, ROADS

    status = 1
    scene = None
    try:
        os.setpgid(0, 0)
        watch(folder / "failure", PATIENCE_S)
        # The cache is part of the attack, and never the user's own.
        os.environ["TFRFAST_CACHE_DIR"] = str(folder / "cache")
        (folder / "cache").mkdir()
        os.chdir(folder)
        multiprocessing.set_start_method("fork", force=True)  # of PyTorch's workers
        attack = next(each for each in ATTACKS if each.name == attack_name)
        road = next(each for each in ROADS if each.name == road_name)
        scene = Scene(road, random.Random(seed), folder)
        attack.run(scene)
        (folder / "counts").write_text(json.dumps(scene.counts))
        status = 0
    except BaseException:
        (folder / "failure").write_text(f"{traceback.format_exc()}{scene.case if scene else ''}\n")
    finally:
        os._exit(status)
