"""The demo from beginning to end."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tfrfast import __version__
from tfrfast.base.progress import ProgressBar
from tfrfast.base.sizes import format_bytes
from tfrfast.bench.compare import Comparison, compare
from tfrfast.bench.machine import describe_machine
from tfrfast.bench.pipelines import Work, import_tensorflow
from tfrfast.bench.shapes import SHAPES, write_shape
from tfrfast.bench.table import table_of
from tfrfast.cli.demo.exactly_once import SIZES, count_records
from tfrfast.cli.demo.training import train_and_resume
from tfrfast.jobs.indexing.building import build_index
from tfrfast.jobs.verifying import verify
from tfrfast.reader import Reader

_ROUNDS = 3

Say = Callable[[str], None]


class _Size(NamedTuple):
    records: int
    shards: int


_SIZES = {"ctr": _Size(200_000, 4), "mnist": _Size(30_000, 4), "image": _Size(2_000, 4)}


class DemoFailedError(AssertionError):
    """A promise of the demo did not hold on this machine."""


def run_demo(out: Path | None, say: Say, show_progress: bool | None) -> dict[str, Any]:
    """Runs all steps, reports the result of each, and returns the facts.

    Data go to `out`, or to a temporary folder, which is removed at the end.
    """
    tf = import_tensorflow()
    began = time.perf_counter()
    machine = describe_machine(["numpy"])
    say(f"tfrfast {__version__}, TensorFlow {tf.__version__}, Python {machine['python']}")
    say(f"{machine['processor']}, {machine['memory']}, {machine['system']}\n")
    data = out or Path(tempfile.mkdtemp(prefix="tfrfast-demo-"))
    try:
        shards = _make(data, say)
        verified = _index_and_verify(shards, say)
        counts = _exactly_once(data, say)
        training = _train(shards["mnist"], data, say)
        comparisons = _compare(shards, say, show_progress)
    finally:
        if out is None:
            shutil.rmtree(data, ignore_errors=True)
    took_s = time.perf_counter() - began
    say(f"All of it took {took_s:.0f} s.")
    return {
        "tfrfast": __version__,
        "tensorflow": tf.__version__,
        "machine": machine,
        "verified": verified,
        "exactly_once": counts,
        "training": training,
        "comparisons": [each.facts() for each in comparisons],
        "seconds": round(took_s, 1),
    }


def _make(data: Path, say: Say) -> dict[str, list[str]]:
    say("1. Data of three shapes")
    shards = {}
    for name, size in _SIZES.items():
        began = time.perf_counter()
        shards[name] = write_shape(name, data / name, size.records, size.shards)
        total = sum(Path(path).stat().st_size for path in shards[name])
        say(
            f"   {name:6} {size.records:8,} records, {format_bytes(total)}, {size.shards} shards, "
            f"written in {time.perf_counter() - began:.1f} s"
        )
    return shards


def _index_and_verify(shards: dict[str, list[str]], say: Say) -> list[dict[str, Any]]:
    say("\n2. Indexed once, every checksum of every record verified")
    facts = []
    for name, paths in shards.items():
        began = time.perf_counter()
        build_index(paths, progress=False)
        indexed_s = time.perf_counter() - began
        began = time.perf_counter()
        Reader(paths, index="require").close()
        opened_s = time.perf_counter() - began
        began = time.perf_counter()
        found = verify(paths, progress=False)
        verified_s = time.perf_counter() - began
        good, total = found.num_records, found.num_bytes
        if found.damage:
            raise DemoFailedError(f"Records of {name} are damaged: {found.damage}.")
        say(
            f"   {name:6} {good:8,} records good; indexed in {indexed_s * 1e3:.0f} ms, opened in "
            f"{opened_s * 1e3:.1f} ms, verified at {total / verified_s / 1e9:.1f} GB/s"
        )
        facts.append(
            {
                "data": name,
                "records": good,
                "bytes": total,
                "indexed_s": indexed_s,
                "opened_s": opened_s,
                "verified_s": verified_s,
            }
        )
    return facts


def _exactly_once(data: Path, say: Say) -> list[dict[str, Any]]:
    say("\n3. A shuffled epoch has each record exactly once, on any number of ranks")
    facts = []
    for size in SIZES:
        for count in count_records(data, size):
            say(
                f"   {size:7,} records, ranks: {count.ranks}, "
                f"{count.reader:19} {count.once:,} once, {count.missing:,} missing, "
                f"{count.repeated:,} repeated"
            )
            if not count.exact:
                raise DemoFailedError(f"Not each of {size:,} records came exactly once: {count}")
            facts.append(count._asdict())
    return facts


def _train(shards: list[str], data: Path, say: Say) -> dict[str, Any]:
    say("\n4. A Keras model, trained for an epoch of a globally shuffled set, stopped and resumed")
    with Reader(shards) as reader:
        done = train_and_resume(reader, data)
    say(
        f"   {done.steps} steps in one go: {done.accuracy:.1%} right at the end; then\n   stopped "
        f"after {done.stopped_after}, saved ({done.state_bytes} bytes for the input), and resumed:"
    )
    say(f"   same records at every step: {_yes(done.same_records)}")
    say(f"   same weights, bit for bit:  {_yes(done.same_weights)}")
    if not done.same_records:
        raise DemoFailedError("The resumed run saw other records than the run in one go.")
    return done._asdict()


def _compare(
    shards: dict[str, list[str]], say: Say, show_progress: bool | None
) -> list[Comparison]:
    say("\n5. Beside tf.data.TFRecordDataset: its fastest configuration, in turns, warm")
    works = [(False, False), (False, True), (True, False), (True, True)]
    total = len(shards) * len(works)
    comparisons: list[Comparison] = []
    with ProgressBar("   Timing", show_progress, unit="pipelines") as bar:
        for name, paths in shards.items():
            shape = SHAPES[name]
            with Reader(paths) as reader:
                for decoded, shuffled in works:
                    features = shape.features if decoded else None
                    work = Work(paths, shape.batch_size, shuffled, features)
                    comparisons.append(compare(name, work, reader, rounds=_ROUNDS))
                    bar.update(len(comparisons), total)
    for line in table_of(comparisons):
        say("   " + line)
    say("")
    return comparisons


def _yes(fact: bool) -> str:
    return "yes" if fact else "NO"
