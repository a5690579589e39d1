"""What stands between a road and its objects: a slow link that loses answers, a damaged DiskCache."""

from __future__ import annotations

import contextlib
import os
import random
import time
from pathlib import Path

from scene import Scene, meanwhile, outcome

_PATIENCE_S = 60


def slow(scene: Scene) -> None:
    """A link of 0.5 to 6 MB/s that loses answers: all records, in about the necessary time."""
    chosen = scene.chosen
    rate, losses = chosen.choice([0.5e6, 1e6, 2e6, 4e6, 6e6]), chosen.choice([0, 0.02, 0.1])
    scene.link = {"bytes_per_s": rate, "losses": losses, "seed": chosen.random()}
    scene.set_up(shards=chosen.randrange(1, 4), most=200)
    begun = time.monotonic()
    options = {"storage": {"timeout": 2}}
    for _ in range(2):
        said = outcome(lambda: scene.open(options=options))
        assert said.error is None, f"{said.error!r}"
        scene.judge(scene.truth(), said)
    fair = 6 * sum(file.stat().st_size for file in scene.files) / rate + 3 * losses * 100
    took = time.monotonic() - begun
    assert took < fair + _PATIENCE_S, f"{took:.0f} s at {rate / 1e6} MB/s and {losses:.0%} losses"


def damaged_cache(scene: Scene) -> None:
    """Files of the cache are damaged, also while it is read."""
    chosen = scene.chosen
    scene.set_up()
    kept = scene.folder / "out" / "kept"
    for _ in range(chosen.randrange(2, 5)):
        opened = scene.open()
        thread = meanwhile(lambda: _damage_some(kept, chosen), chosen.uniform(0, 0.1))
        said = [outcome(opened), outcome(opened)]
        thread.join()
        _damage_some(kept, chosen)
        for each in [*said, outcome(opened), outcome(scene.open)]:
            assert each.error is None, f"{each.error!r}"
            scene.judge(scene.truth(), each)


def _damage_some(kept: Path, chosen: random.Random) -> None:
    for _ in range(chosen.randrange(1, 6)):
        files = [path for path in sorted(kept.rglob("*")) if path.is_file()]
        if files:
            with contextlib.suppress(FileNotFoundError):  # a reader has removed the file
                _damage(chosen.choice(files), files, chosen)


def _damage(path: Path, others: list[Path], chosen: random.Random) -> None:
    size = path.stat().st_size
    at = chosen.randrange(size + 1)
    kind = chosen.choice(["flip", "zero", "overwrite", "cut", "empty", "remove", "swap", "repeat"])
    if kind == "remove":
        path.unlink()
    elif kind == "swap":
        other, between = chosen.choice(others), path.with_name("between")
        if other != path:
            path.rename(between)
            other.rename(path)
            between.rename(other)
    elif kind in ("cut", "empty"):
        os.truncate(path, at if kind == "cut" else 0)
    else:
        with open(path, "r+b") as file:
            file.seek(at)
            old = file.read(chosen.choice([1, 8, 16, 4096]))
            file.seek(at)
            if kind == "flip" and old:
                file.write(bytes([old[0] ^ 1 << chosen.randrange(8)]))
            elif kind == "zero":
                file.write(bytes(len(old)))
            elif kind == "overwrite":
                file.write(chosen.randbytes(len(old)))
            elif kind == "repeat":
                file.write(old + old)
