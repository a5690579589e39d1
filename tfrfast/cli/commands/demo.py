"""Make small data sets of three shapes, verify them, count that every record comes exactly once,
train, stop and resume a Keras model, and time tfrfast beside tf.data.TFRecordDataset. Takes a
minute or two and 400 MB of disk. Needs TensorFlow.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tfrfast import __version__
from tfrfast.base.progress import ProgressBar
from tfrfast.base.sizes import format_bytes
from tfrfast.base.tables import terminal_width
from tfrfast.bench.compare import Comparison, compare, table_of
from tfrfast.bench.machine import describe_machine
from tfrfast.bench.pipelines import Work, import_tensorflow
from tfrfast.bench.shapes import SHAPES, write_shape
from tfrfast.cli.common import add_common, print_json
from tfrfast.cli.demo.exactly_once import SIZES, Tally, count_records
from tfrfast.cli.demo.training import Training, train_and_resume
from tfrfast.jobs.indexing.building import build_index
from tfrfast.jobs.verifying import verify
from tfrfast.reader import Reader

_RECORDS = {"ctr": 200_000, "mnist": 30_000, "image": 2_000}
_SHARDS = 4
_ROUNDS = 3
_INDENT = "   "

_Say = Callable[[str], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, paths=False)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="make the data here, and keep them (default: in a temporary folder)",
    )


class DemoFailedError(AssertionError):
    """A promise of the demo did not hold on this machine."""


def run(options: argparse.Namespace) -> int:
    tf = import_tensorflow()
    began = time.perf_counter()
    machine = describe_machine(["numpy"])
    stream = sys.stderr if options.json else sys.stdout
    say = partial(print, file=stream, flush=True)
    say(f"tfrfast {__version__}, TensorFlow {tf.__version__}, Python {machine['python']}")
    say(f"{machine['processor']}, {machine['memory']}\n{machine['system']}\n")
    with contextlib.ExitStack() as stack:
        data = options.out or Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="tfrfast-demo-", ignore_cleanup_errors=True)
            )
        )
        shards = _make(data, say)
        verified = _index_and_verify(shards, say)
        counts = _exactly_once(data, say)
        training = _train(shards["mnist"], data, say)
        comparisons = _compare(shards, say, options.progress)
        width = terminal_width(stream)
        for line in table_of(comparisons, width and width - len(_INDENT)):
            say(f"{_INDENT}{line}")
    took_s = time.perf_counter() - began
    say(f"\nAll of it took {took_s:.0f} s.")
    if options.json:
        print_json(
            {
                "tfrfast": __version__,
                "tensorflow": tf.__version__,
                "machine": machine,
                "verified": verified,
                "exactly_once": counts,
                "training": training,
                "comparisons": [each.facts() for each in comparisons],
                "seconds": round(took_s, 1),
            }
        )
    return 0


def _make(data: Path, say: _Say) -> dict[str, list[str]]:
    say("1. Data of three shapes")
    shards = {}
    for name, records in _RECORDS.items():
        began = time.perf_counter()
        shards[name] = write_shape(name, data / name, records, _SHARDS)
        total = sum(Path(path).stat().st_size for path in shards[name])
        say(
            f"   {name:6} {records:8,} records, {format_bytes(total)}, {_SHARDS} shards, "
            f"written in {time.perf_counter() - began:.1f} s"
        )
    return shards


def _index_and_verify(shards: dict[str, list[str]], say: _Say) -> list[dict[str, Any]]:
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
            f"   {name:6} {good:8,} good, at {total / verified_s / 1e9:.1f} GB/s; indexed in "
            f"{indexed_s * 1e3:.0f} ms, opened in {opened_s * 1e3:.1f} ms"
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


def _exactly_once(data: Path, say: _Say) -> list[Tally]:
    say("\n3. A shuffled epoch has each record exactly once, on any number of ranks")
    counts = []
    for size in SIZES:
        for count in count_records(data, size):
            say(
                f"   {size:6,}, ranks: {count.ranks}, "
                f"{count.reader:19} {count.once:,} once, {count.missing:,} missing, "
                f"{count.repeated:,} repeated"
            )
            if count.once != size:
                raise DemoFailedError(f"Not each of {size:,} records came exactly once: {count}")
            counts.append(count)
    return counts


def _train(shards: list[str], data: Path, say: _Say) -> Training:
    say("\n4. A Keras model, trained on a globally shuffled set, stopped and resumed")
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
    return done


def _compare(shards: dict[str, list[str]], say: _Say, progress: bool | None) -> list[Comparison]:
    say("\n5. Beside tf.data.TFRecordDataset: its fastest configuration, in turns, warm")
    works = [(False, False), (False, True), (True, False), (True, True)]
    total = len(shards) * len(works)
    comparisons: list[Comparison] = []
    with ProgressBar("   Timing", progress, unit="pipelines") as bar:
        for name, paths in shards.items():
            shape = SHAPES[name]
            with Reader(paths) as reader:
                for decoded, shuffled in works:
                    features = shape.features if decoded else None
                    work = Work(paths, shape.batch_size, shuffled, features)
                    comparisons.append(compare(name, work, reader, rounds=_ROUNDS))
                    bar.update(len(comparisons), total)
    return comparisons


def _yes(fact: bool) -> str:
    return "yes" if fact else "NO"
