"""Times building map(parse).batch(n) and its first element, beside TensorFlow's own class.

python benchmarks/first_element.py [TURNS]        # each turn takes about a minute

Each measurement is a new process, which builds a first and a second dataset. Prints medians of
processor time, and the range of ratios. The two classes take turns.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tfrfast.bench.shapes import write_shape
from tfrfast.example.encoding import encode_example
from tfrfast.writing.writer import Writer

SHAPES = {"mnist": 256, "ctr": 1024, "wide": 256}
CLASSES = ("TensorFlow", "tfrfast")
_RECORDS = 4096
_WIDTH = 100  # features of "wide", each an integer or a float


def write_data(folder: Path) -> None:
    for name in SHAPES:
        if name != "wide":
            write_shape(name, folder / name, _RECORDS, 4)
    (folder / "wide").mkdir()
    with Writer(folder / "wide" / "train-00000-of-00001", index=False) as writer:
        for number in range(_RECORDS):
            values = (place * number for place in range(_WIDTH))
            row = {
                f"f{place:03}": value if place % 2 else float(value)
                for place, value in enumerate(values)
            }
            writer.write(encode_example(row))


def parser(name: str) -> Callable[[Any], Any]:
    """Returns a parse function that a user might write for these data."""
    import tensorflow as tf

    fixed = tf.io.FixedLenFeature

    def mnist(record: Any) -> Any:
        number, image = fixed([], tf.int64), fixed([784], tf.float32)
        specs = {"height": number, "width": number, "image": image, "label": number}
        row = tf.io.parse_single_example(record, specs)
        return tf.reshape(row["image"], [28, 28, 1]) / 255.0, tf.one_hot(row["label"], 10)

    def ctr(record: Any) -> Any:
        dense, cat = fixed([13], tf.float32), fixed([26], tf.int64)
        specs = {"label": fixed([], tf.int64), "dense": dense, "cat": cat}
        row = tf.io.parse_single_example(record, specs)
        given = {"dense": tf.math.log1p(row["dense"]), "cat": row["cat"] % 100_000}
        return given, tf.cast(row["label"], tf.float32)

    def wide(record: Any) -> Any:
        types = [tf.int64 if place % 2 else tf.float32 for place in range(_WIDTH)]
        specs = {f"f{place:03}": fixed([], dtype) for place, dtype in enumerate(types)}
        return tf.io.parse_single_example(record, specs)

    return {"mnist": mnist, "ctr": ctr, "wide": wide}[name]


def measure(which: str, name: str, folder: Path) -> list[float]:
    """Returns the milliseconds of processor time for this process's first and second dataset."""
    import tensorflow as tf

    import tfrfast as tfr

    made = {"TensorFlow": tf.data.TFRecordDataset, "tfrfast": tfr.TFRecordDataset}[which]
    files = sorted(map(str, (folder / name).glob("train-*")))
    parse, auto = parser(name), tf.data.AUTOTUNE
    list(tf.data.Dataset.range(3).map(lambda number: number + 1).batch(2))  # starts the runtime
    times = []
    for _ in range(2):
        begin = _processor_ms()
        dataset = made(files).map(parse, auto).batch(SHAPES[name]).prefetch(auto)
        iterator = iter(dataset)
        next(iterator)
        times.append(_processor_ms() - begin)
        del iterator
        time.sleep(0.3)  # lets the threads that read ahead end
    return times


def _processor_ms() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (used.ru_utime + used.ru_stime) * 1e3


def in_turns(turns: int, folder: Path) -> None:
    times: dict[tuple[str, str], list[list[float]]] = {}
    for turn in range(turns):
        for name in SHAPES:
            for which in CLASSES if turn % 2 else CLASSES[::-1]:
                command = [sys.executable, __file__, which, name, str(folder)]
                environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
                run = subprocess.run(command, capture_output=True, check=True, env=environment)
                times.setdefault((name, which), []).append(json.loads(run.stdout.split()[-1]))
    print(f"{turns} turns; load {os.getloadavg()[0]:.1f}; ms of processor time, medians")
    for name in SHAPES:
        for number, dataset in enumerate(("first", "second")):
            theirs, ours = ([each[number] for each in times[name, which]] for which in CLASSES)
            ratios = [our / their for our, their in zip(ours, theirs, strict=True)]
            print(
                f"{name:6} {dataset:6}  TensorFlow {statistics.median(theirs):4.0f}  "
                f"tfrfast {statistics.median(ours):4.0f}  ratio {statistics.median(ratios):.2f} "
                f"({min(ratios):.2f} to {max(ratios):.2f})"
            )


def main(arguments: Sequence[str]) -> None:
    if len(arguments) == 3:
        which, name, folder = arguments
        print(json.dumps(measure(which, name, Path(folder)), separators=(",", ":")))
        return
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        in_turns(int(arguments[0]) if arguments else 7, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
