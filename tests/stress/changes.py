"""Shards that change by every route, under an open road and between its epochs, with indexes of
their earlier state: each epoch is of the old shard or of the new one, and a new run of the new.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import tfrfast as tfr
from road import SERVED, TENSORFLOW
from scene import Scene, meanwhile, outcome
from tfrecord_model import OVERHEAD
from truth import State, gone, some_texts, write


def another(chosen: random.Random, scene: Scene, shard: int, version: int) -> tuple[str, State]:
    """Returns another state of a shard, which is hard to tell from the old one."""
    texts = scene.states[shard].texts
    kind = chosen.choice(
        ["same lengths", "same size", "one less", "one more", "shrunk", "grown", "some", "unlike"]
    )
    fresh = [b"%d" % version + text[1:] for text in texts]
    if kind == "same size" and len(fresh) > 1:
        # Bytes move from one record to another, so the records between the two move, too.
        first, second = sorted(chosen.sample(range(len(fresh)), 2))
        own = len(b" ".join(fresh[first].split(b" ", 3)[:3])) + 1
        cut = chosen.randrange(own, len(fresh[first]) + 1)
        fresh[first], fresh[second] = fresh[first][:cut], fresh[second] + fresh[first][cut:]
    elif kind == "one less" and len(fresh) > 1:
        # The same number of bytes, with one record less.
        fresh[0] += bytes(OVERHEAD) + fresh.pop(1)
        whole = sum(map(len, scene.states[shard].records[:2])) + OVERHEAD
        surplus = len(scene.state_of(fresh[:1]).records[0]) - whole
        fresh[0] = (
            fresh[0][: len(fresh[0]) - surplus] if surplus > 0 else fresh[0] + bytes(-surplus)
        )
    elif kind == "one more":
        fresh.append(b"%d %d %06d more" % (version, shard, len(fresh)))
    elif kind == "shrunk":
        fresh = texts[: chosen.randrange(len(texts) + 1)]
    elif kind == "grown":
        more = some_texts(chosen, shard, version)
        fresh = texts + [_renumbered(text, len(texts)) for text in more]
    elif kind == "some" and fresh:
        changed = set(chosen.sample(range(len(fresh)), chosen.randrange(1, len(fresh) + 1)))
        fresh = [fresh[i] if i in changed else texts[i] for i in range(len(texts))]
    elif kind != "same lengths":
        kind, fresh = "unlike", some_texts(chosen, shard, version)
    return kind, scene.state_of(fresh)


def _renumbered(text: bytes, by: int) -> bytes:
    version, shard, number, rest = text.split(b" ", 3)
    return b"%s %s %06d %s" % (version, shard, int(number) + by, rest)


def rewrite(path: Path, other: Path) -> None:
    with open(path, "r+b") as file:
        file.write(other.read_bytes())
        file.truncate()


def truncate_first(path: Path, other: Path) -> None:
    path.write_bytes(other.read_bytes())


def rename_over(path: Path, other: Path) -> None:
    os.replace(other, path)


def copy_over(path: Path, other: Path) -> None:
    shutil.copy2(other, path)  # with the file's times, like `cp -p`


def link_over(path: Path, other: Path) -> None:
    path.unlink()
    os.link(other, path)


def point_elsewhere(path: Path, other: Path) -> None:
    path.unlink()
    path.symlink_to(other)


def vanish(path: Path, other: Path) -> None:
    path.unlink()


IN_PLACE = (rewrite, truncate_first, copy_over)
WHOLE = (rename_over, link_over, point_elsewhere, vanish)

#: Filesystems on which inodes and change times distinguish files of the same size and time; see
#: docs/trust.md.
IDENTITY_LASTS_ON = {
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "jfs", "tmpfs",
}  # fmt: skip


@functools.cache
def identity_lasts(folder: Path) -> bool:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    around = [mount for mount in mounts if folder.is_relative_to(mount[1])]
    return max(around, key=lambda mount: len(mount[1]))[2] in IDENTITY_LASTS_ON


def attack(scene: Scene) -> None:
    chosen = scene.chosen
    scene.set_up()
    shard = chosen.randrange(len(scene.files))
    path, records = scene.files[shard], scene.states
    is_served = SERVED in scene.road.has
    kept = chosen.choice(
        ["auto", "memory"] if is_served else ["auto", "memory", "beside", "folder"]
    )
    options = {"index": kept.replace("beside", "auto")}
    if kept == "folder":
        options = {"index_folder": str(scene.folder / "indexes")}
    for version in range(1, chosen.randrange(2, 4)):
        if kept == "beside":
            tfr.build_index(path, progress=False)
        if chosen.random() < 0.05:
            time.sleep(2.2)  # from now on, a change of the shard changes its times
        opened = scene.open(options=options)
        kind, changed = another(chosen, scene, shard, version)
        # A compressed file that is half of one state and half of another has no records to name, and
        # a server would send it as an object.
        route = chosen.choice(WHOLE if scene.compression or is_served else IN_PLACE + WHOLE)
        other = scene.folder / f"other-{version}"
        write(other, changed.records, scene.compression)
        act, times = _change(scene, path, other, route)
        after = [changed if i == shard else state for i, state in enumerate(records)]
        if route is vanish:
            after[shard] = gone()
        truth = scene.truth(after, in_place=[shard] if route in IN_PLACE else [])
        moment = chosen.choice(["before", "during", "meanwhile", "between"])
        scene.case = f"{route.__name__}, {kind}, {moment}{times}"
        if moment == "between":
            said = outcome(opened)
            assert said.error is None, f"nothing has changed yet: {said.error!r}"
            scene.judge(scene.truth(), said)
        if moment == "meanwhile":
            thread = meanwhile(act, chosen.uniform(0, 0.02))
            said = outcome(opened)
            thread.join()
        elif moment == "during":
            said = outcome(opened, act, chosen.choice([1, 2, 60, 300]))
            act()  # if there were too few records
        else:
            act()
            said = outcome(opened)
        scene.judge(truth, said)
        scene.judge(truth, outcome(opened))  # the next epoch of the same road
        if route is vanish:
            assert outcome(scene.open).error is not None, "a shard is gone, without an error"
            rename_over(path, other)
        scene.states = records = [*records[:shard], changed, *records[shard + 1 :]]
        check_new(scene, options)


def _change(
    scene: Scene, path: Path, other: Path, route: Callable[[Path, Path], None]
) -> tuple[Callable[[], None], str]:
    before = os.stat(path)
    keeps_time = (
        route is not vanish and scene.chosen.random() < 0.5 and identity_lasts(scene.folder)
    )
    real = path.resolve() if route in IN_PLACE else path

    @functools.cache
    def act() -> None:
        """Acts at its first call."""
        if keeps_time:
            os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        route(real, other)
        if keeps_time:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    return act, ", mtime kept" if keeps_time else ""


def check_new(scene: Scene, options: dict[str, str]) -> None:
    """New runs of the road return the shard as it is now, with or without its old index."""
    scene.check_exact()
    if TENSORFLOW in scene.road.has:
        return
    kept = {name: option for name, option in options.items() if name.startswith("index")}
    said = outcome(lambda: scene.open(options=kept))
    assert said.error is None, f"a new run fails: {said.error!r}"
    scene.judge(scene.truth(), said)
    if options.get("index") == "auto":
        scene.judge(scene.truth(), outcome(lambda: scene.open(options={"index": "require"})))
