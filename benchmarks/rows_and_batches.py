"""Measures `tfr.accelerate` for each size of rows and of batches, and says where it is slowest.

    python benchmarks/rows_and_batches.py [CHAIN ...] [--rows 100 3000] [--batches 1 8] [--turns 5]

Eight chains, one of each kind, are run plain, accelerated and plain once more by turns, in one
process for each chain and size of rows. A run iterates whole epochs until it has used `--seconds`
of processor time; the first epoch, which opens files and fills caches, comes before. Ratios are
medians of the turns: above 1, the accelerated chain is faster. The ratio of the two plain runs is
the noise. With --memory, each dataset runs in a process of its own, for the peak of the memory that
it holds, without pages of mapped files, and for the time to its first batch.

With --results, cells are added to a file, so that the grid can be measured in pieces. The last
measurement of a cell counts. `--table` prints the file.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

CHAINS = ["fixed", "variable", "padded", "filtered", "decoded", "pictures", "gzip", "cached"]
ROW_BYTES = [100, 3_000, 100_000, 2_600_000]
BATCHES = [1, 4, 8, 16, 64]
_MAX_BATCH_BYTES = 256 << 20
_SET_BYTES, _MAX_ROWS, _FILES = 96 << 20, 4096, 4


class Cell(NamedTuple):
    """The ratios of a chain, a size of rows and a size of batches; None if the chain is left to
    TensorFlow.
    """

    chain: str
    row_bytes: int
    batch: int
    cpu: float | None = None
    wall: float | None = None
    lowest: float = 1.0  # by processor time
    highest: float = 1.0
    noise: float = 1.0  # of plain runs beside plain runs
    wall_noise: float = 1.0
    step: float = 0.0  # microseconds of processor time of a batch

    @property
    def text(self) -> str:
        return "TensorFlow" if self.cpu is None else f"{self.cpu:.2f} ({self.wall:.2f})"

    @property
    def line(self) -> str:
        head = f"{self.chain:9}{self.row_bytes:10,} B {self.batch:3} {self.text:14}"
        if self.cpu is None:
            return head
        spread = f"{self.lowest:.2f} to {self.highest:.2f}, noise {self.noise:.2f}"
        return f"{head} {spread}, {self.wall_noise:.2f} by wall, {self.step:,.0f} us"


def values_of(row_bytes: int) -> int:
    """Returns the number of floats, or the width of pictures, in rows of so many bytes."""
    return max(1, row_bytes // 4 - 10)


def write_set(folder: Path, chain: str, row_bytes: int) -> list[str]:
    import tensorflow as tf

    import tfrfast as tfr

    rows = min(_MAX_ROWS, max(64, _SET_BYTES // row_bytes))
    folder.mkdir(parents=True, exist_ok=True)
    paths = [str(folder / f"train-{n:05d}-of-{_FILES:05d}") for n in range(_FILES)]
    random = np.random.default_rng(0)
    noise, count = random.random(1 << 20, np.float32), values_of(row_bytes)
    compression: Literal["GZIP"] | None = "GZIP" if chain == "gzip" else None
    pictures = [_picture(tf, random, row_bytes) for _ in range(4)] if chain == "pictures" else []
    for number, path in enumerate(paths):
        with tfr.Writer(path, compression=compression, sync=False, overwrite=True) as writer:
            for row in range(number, rows, _FILES):
                at = int(random.integers(0, len(noise) - count))
                example: dict[str, Any] = {"label": row}
                if chain == "pictures":
                    example["image"] = pictures[row % 4]
                elif chain == "decoded":
                    example["raw"] = noise[at : at + count].tobytes()
                elif chain in ("variable", "padded"):
                    length = int(random.integers(max(1, count * 3 // 4), count + 1))
                    example["values"] = noise[at : at + length]
                else:
                    example["values"] = noise[at : at + count]
                writer.write_example(example)
    return paths


def _picture(tf: Any, random: Any, row_bytes: int) -> bytes:
    """Returns a JPEG of noise, of about so many bytes."""
    side = max(8, int((row_bytes / 1.45) ** 0.5))
    pixels = random.integers(0, 256, (side, side, 3)).astype(np.uint8)
    return bytes(tf.io.encode_jpeg(pixels, quality=80).numpy())


def build(chain: str, paths: Sequence[str], batch: int, row_bytes: int) -> Any:
    """Returns the dataset as TensorFlow's documentation would write it."""
    import tensorflow as tf

    count, auto = values_of(row_bytes), tf.data.AUTOTUNE
    values: Any = tf.io.FixedLenFeature([count], tf.float32)
    if chain in ("variable", "padded"):
        values = tf.io.VarLenFeature(tf.float32)
    specs: dict[str, Any] = {"label": tf.io.FixedLenFeature([], tf.int64)}
    specs |= {
        "pictures": {"image": tf.io.FixedLenFeature([], tf.string)},
        "decoded": {"raw": tf.io.FixedLenFeature([], tf.string)},
    }.get(chain, {"values": values})

    def parse(record: Any) -> Any:
        row = tf.io.parse_single_example(record, specs)
        label = tf.cast(row["label"], tf.int32)
        if chain == "pictures":
            image = tf.io.decode_jpeg(row["image"], channels=3)
            return tf.image.resize(image, [64, 64]) / 255.0, label
        if chain == "decoded":
            return tf.reshape(tf.io.decode_raw(row["raw"], tf.float32), [count]) * 2.0, label
        if chain == "variable":
            return row["values"], label
        if chain == "padded":
            return tf.sparse.to_dense(row["values"]), label
        return row["values"] * 2.0 - 1.0, label

    names = tf.data.Dataset.from_tensor_slices(list(paths))
    compression = "GZIP" if chain == "gzip" else None
    records = names.interleave(
        lambda name: tf.data.TFRecordDataset(name, compression),
        cycle_length=4,
        num_parallel_calls=auto,
    )
    if chain in ("padded", "decoded", "pictures", "gzip"):
        records = records.shuffle(256)
    rows = records.map(parse, auto)
    if chain == "filtered":
        rows = rows.filter(lambda values, label: label % 4 != 0)
    if chain == "cached":
        rows = rows.cache().shuffle(1_000)
    if chain == "padded":
        return rows.padded_batch(batch, ([count], []), drop_remainder=True).prefetch(auto)
    return rows.batch(batch).prefetch(auto)


def costs(dataset: Any, seconds: float) -> tuple[float, float]:
    """Returns the processor time and the wall time of an epoch."""
    epochs = 0
    begin, wall = time.process_time(), time.perf_counter()
    while True:
        for _ in dataset:
            pass
        epochs += 1
        used = time.process_time() - begin
        if used >= seconds:
            return used / epochs, (time.perf_counter() - wall) / epochs


def compare(chain: str, row_bytes: int, given: argparse.Namespace) -> None:
    """Prints a Cell for each size of batches."""
    import tfrfast as tfr

    paths = files_of(chain, row_bytes, given)
    for batch in given.batches:
        if batch * row_bytes > _MAX_BATCH_BYTES:
            continue
        plain, again = (build(chain, paths, batch, row_bytes) for _ in range(2))
        ours = tfr.accelerate(plain)
        for dataset in (plain, ours, again):
            costs(dataset, 0)
        if ours is plain or getattr(ours, "_built", None) is plain:
            print(json.dumps(Cell(chain, row_bytes, batch)), flush=True)
            continue
        turns = []
        for turn in range(given.turns):
            runs = [plain, ours, again]
            runs = runs[turn % 3 :] + runs[: turn % 3]
            found = {id(run): costs(run, given.seconds) for run in runs}
            turns.append([found[id(run)] for run in (plain, ours, again)])
        theirs, own, noise = np.array(turns).transpose(1, 2, 0)
        ratios, alike = theirs / own, theirs / noise
        step = 1e6 * np.median(own[0]) / max(1, len(list(ours)))
        cpu, wall = np.median(ratios, axis=1).tolist()
        noises = np.median(alike, axis=1).tolist()
        spread = float(ratios[0].min()), float(ratios[0].max())
        cell = Cell(chain, row_bytes, batch, cpu, wall, *(*spread, *noises, float(step)))
        print(json.dumps(cell), flush=True)


def memory(chain: str, row_bytes: int, batch: int, given: argparse.Namespace, ours: bool) -> None:
    """Prints the peak of the memory that an epoch holds, in MB, the seconds to the first batch, and
    the processor time until then.
    """
    import tfrfast as tfr

    dataset = build(chain, files_of(chain, row_bytes, given), batch, row_bytes)
    dataset = tfr.accelerate(dataset) if ours else dataset
    before, wall, used = held_bytes(), time.perf_counter(), time.process_time()
    iterator = iter(dataset)
    next(iterator)
    first = time.perf_counter() - wall, time.process_time() - used
    peak = max(held_bytes() for _ in iterator) - before
    print(json.dumps([round(peak / 1e6), *first]))


def held_bytes() -> int:
    """Returns the memory of this process without mapped files."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("RssAnon:")[2].split()[0])


def files_of(chain: str, row_bytes: int, given: argparse.Namespace) -> list[str]:
    folder = Path(given.data) / f"{chain}-{row_bytes}"
    return sorted(map(str, folder.glob("train-*-of-?????"))) or write_set(folder, chain, row_bytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("chains", nargs="*", default=CHAINS)
    parser.add_argument("--rows", nargs="*", type=int, default=ROW_BYTES, help="bytes of a row")
    parser.add_argument("--batches", nargs="*", type=int, default=BATCHES)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--data", default="", help="a folder to keep the data in")
    parser.add_argument("--results", type=Path, help="a file to which cells are added")
    parser.add_argument("--table", action="store_true", help="print --results, measure nothing")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if given.one == "compare":
        compare(given.chains[0], given.rows[0], given)
    elif given.one:
        memory(given.chains[0], given.rows[0], given.batches[0], given, given.one == "ours")
    elif given.table:
        print_table(read_cells(given.results))
    else:
        with tempfile.TemporaryDirectory() as folder:
            cells = list(measured(given, given.data or folder))
        print_table(read_cells(given.results) if given.results else cells)


def measured(given: argparse.Namespace, data: str) -> Iterator[Cell]:
    def run(chain: str, row_bytes: int, batches: Sequence[int], what: str) -> Iterator[Any]:
        command = [sys.executable, __file__, chain, "--rows", str(row_bytes), "--one", what]
        command += ["--batches", *map(str, batches), "--data", data]
        command += ["--turns", str(given.turns), "--seconds", str(given.seconds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            yield from map(json.loads, process.stdout)
        if process.returncode:
            raise SystemExit(f"{chain}, {row_bytes} B: exit status {process.returncode}")

    for chain in given.chains:
        for row_bytes in given.rows:
            for found in run(chain, row_bytes, given.batches, "compare"):
                cell, line = Cell(*found), ""
                if given.memory:
                    for what in ("plain", "ours"):
                        ((held, wall, used),) = run(chain, row_bytes, [cell.batch], what)
                        line += f"  {what} {held:,} MB, first {wall:.2f} s ({used:.2f})"
                print(f"{cell.line}{line}", flush=True)
                if given.results:
                    with given.results.open("a") as file:
                        print(json.dumps(cell), file=file)
                yield cell


def read_cells(path: Path) -> list[Cell]:
    """Returns the last measurement of each cell."""
    cells = [Cell(*json.loads(line)) for line in path.read_text().splitlines()]
    return list({each[:3]: each for each in cells}.values())


def print_table(cells: Sequence[Cell]) -> None:
    """Prints processor time and, in brackets, wall time, in Markdown."""
    known = {each[:3]: each for each in cells}
    batches = sorted({each.batch for each in cells})
    print(f"| chain | bytes of a row | {' | '.join(map(str, batches))} |")
    print(f"|---|---:|{'---:|' * len(batches)}")
    for chain, row_bytes in dict.fromkeys(each[:2] for each in cells):
        row = [known.get((chain, row_bytes, batch)) for batch in batches]
        print(
            f"| {chain} | {row_bytes:,} | {' | '.join(each.text if each else '' for each in row)} |"
        )
    planned = [each for each in cells if each.cpu is not None]
    for name, ratio, noise in (
        ("processor time", "cpu", "noise"),
        ("wall time", "wall", "wall_noise"),
    ):
        ratios = sorted((float(getattr(each, ratio)), *each[:3]) for each in planned)
        lowest = ", ".join(f"{r:.2f} ({c}, {b} B, batch {n})" for r, c, b, n in ratios[:3])
        middle = statistics.median(each[0] for each in ratios)
        alike = [float(getattr(each, noise)) for each in planned]
        print(f"{name}: median {middle:.2f}; lowest {lowest}", end="")
        print(f"; plain beside itself {min(alike):.2f} to {max(alike):.2f}")


if __name__ == "__main__":
    main()
