"""A set of shards with every kind of damage, and what each job and command says of it.

A road takes the set and a folder for its results, and returns the places that it reported.
"""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import tfrfast as tfr
from record_files import flip_byte
from tfrfast.reader import Skipped

RECORDS = 10

#: The shard and the first byte of a damaged place.
Place = tuple[str, int]


class DamagedSet(NamedTuple):
    paths: list[str]
    #: The damage of frames, which is found without reading payloads.
    frames: set[Place]
    #: All damage.
    all: set[Place]
    #: The number of intact records.
    intact: int


class Road(NamedTuple):
    name: str
    report: Callable[[list[str], Path], set[Place]]
    reads_payloads: bool = True


def write_damaged(folder: Path) -> DamagedSet:
    """Episodes of two steps, in a whole shard, one with a bad payload, one with a bad length, one
    without an intact frame, and one that ends inside a record.
    """
    folder.mkdir()
    paths, offsets = [], []
    for shard in range(5):
        path = folder / f"part-{shard}"
        begins = []
        with tfr.Writer(path, index=False) as writer:
            for number in range(shard * RECORDS, (shard + 1) * RECORDS):
                begins.append(writer.num_bytes)
                writer.write_example({"label": number, "steps/at": [number, -number]})
        paths.append(str(path))
        offsets.append(begins)
    flip_byte(paths[1], offsets[1][3] + 12)
    flip_byte(paths[2], offsets[2][6])
    for begin in offsets[3]:
        flip_byte(paths[3], begin + 8)
    with open(paths[4], "r+b") as file:
        file.truncate(offsets[4][-1] + 20)
    frames = {(paths[2], offsets[2][6]), (paths[3], 0), (paths[4], offsets[4][-1])}
    return DamagedSet(paths, frames, {(paths[1], offsets[1][3]), *frames}, 5 * RECORDS - 13)


def places(damage: Iterable[Skipped]) -> set[Place]:
    return {(each.path, each.begin) for each in damage}


def _reader(paths: list[str]) -> tfr.Reader:
    return tfr.Reader(paths, on_corruption="skip", index="memory")


def _loader(paths: list[str], folder: Path) -> set[Place]:
    loader = tfr.Loader(_reader(paths), 4, features=["label"])
    list(loader)
    return places(loader.reader.skipped)


def _scan(paths: list[str], folder: Path) -> set[Place]:
    rows = tfr.scan(_reader(paths), features=["label"])
    list(rows)
    return places(rows.reader.skipped)


def _built_steps(paths: list[str], folder: Path) -> set[Place]:
    steps = tfr.Steps(paths, along="steps/", on_corruption="skip", index_folder=folder)
    return places(steps.skipped)


def _kept_steps(paths: list[str], folder: Path) -> set[Place]:
    tfr.Steps(paths, along="steps/", on_corruption="skip", index_folder=folder).close()
    return _built_steps(paths, folder)


def _shuffled(paths: list[str], folder: Path) -> set[Place]:
    made = tfr.shuffle(paths, folder / "x", num_shards=2, on_corruption="skip")
    return places(made.skipped)


def _copied(paths: list[str], folder: Path) -> set[Place]:
    made = tfr.copy(_reader(paths), slice(None), folder / "x")
    return places(made.skipped)


def warned(call: Callable[..., object]) -> Callable[[list[str], Path], set[Place]]:
    """A job whose result lists no damage. Its warning counts the places and names the first."""

    def report(paths: list[str], folder: Path) -> set[Place]:
        reader = _reader(paths)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(reader, folder)
        [text] = [str(each.message) for each in caught]
        found = places(reader.skipped)
        path, begin = min(found)
        assert f": {len(found)} places, the first at bytes {begin} to " in text
        assert repr(path) in text
        return found

    return report


def command(*arguments: str, out: bool = False) -> Callable[[list[str], Path], set[Place]]:
    """A command, whose last arguments are the shards and, with `out`, a new name."""

    def report(paths: list[str], folder: Path) -> set[Place]:
        new = ["--out", str(folder / "x")] if out else []
        called = [sys.executable, "-m", "tfrfast", *arguments, *new, *paths]
        done = subprocess.run(called, capture_output=True, text=True)
        assert done.returncode == 1, done.stderr
        lines = (done.stderr + done.stdout).splitlines()
        rows = (re.fullmatch(r" *([\d,]+) +[\d,]+ +(?:1|unknown) +(\S+)", each) for each in lines)
        return {(row[2], int(row[1].replace(",", ""))) for row in rows if row}

    return report


SKIP = ("--on-corruption", "skip")
COMMANDS = [
    Road("info", command("info"), False),
    Road("count", command("count", *SKIP), False),
    Road("verify", command("verify")),
    Road("cat", command("cat", "--records=:", *SKIP)),
    Road("head", command("head", "-n", "99", *SKIP)),
    Road("sample", command("sample", "-n", "99", *SKIP)),
    Road("schema", command("schema", *SKIP)),
    Road("stats", command("stats", *SKIP)),
    Road("keys", command("keys", "--by", "label", *SKIP)),
    Road("shuffle", command("shuffle", "--num-shards", "2", *SKIP, out=True)),
]
JOBS = [
    Road("Loader", _loader),
    Road("scan", _scan),
    Road("Steps", _built_steps),
    Road("Steps of a kept file", _kept_steps),
    Road("shuffle()", _shuffled),
    Road("copy()", _copied),
    Road("verify()", lambda paths, folder: places(tfr.verify(paths).damage)),
    Road("build_keys()", warned(lambda r, folder: tfr.build_keys(r, "label", folder=folder))),
    Road("statistics()", warned(lambda r, folder: tfr.statistics(r, features=["label"]))),
    Road("build_steps()", warned(lambda r, f: tfr.build_steps(r, along="steps/", folder=f))),
]
# With DuckDB or Polars, and PyArrow.
TABLES = [
    Road("copy --where", command("copy", "--where", "label < 12", *SKIP, out=True)),
    Road("export", lambda p, folder: places(tfr.export(_reader(p), folder / "x").skipped)),
]
