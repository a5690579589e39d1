"""Measures `tfr.accelerate` for each size of rows and of batches, and says where it is slowest.

    python benchmarks/rows_and_batches.py [CHAIN ...] [--rows 100 3000] [--batches 1 8] [--turns 5]

Eight chains, one of each kind, are run plain and accelerated by turns, in one process for each
chain and size of rows. A run iterates whole epochs until it has used `--seconds` of processor time;
the first epoch, which opens files and fills caches, comes before. Ratios are medians of the pairs:
above 1, the accelerated chain is faster. With --memory, each dataset runs in a process of its own,
for the peak of its memory and the time to its first batch.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

CHAINS = ["fixed", "variable", "padded", "filtered", "decoded", "pictures", "gzip", "cached"]
ROW_BYTES = [100, 3_000, 100_000, 2_600_000]
BATCHES = [1, 4, 8, 16, 64]
_MAX_BATCH_BYTES = 256 << 20
_SET_BYTES, _MAX_ROWS, _FILES = 96 << 20, 4096, 4


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
    compression = "GZIP" if chain == "gzip" else None
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
    import tfrfast as tfr

    folder = Path(given.data) / f"{chain}-{row_bytes}"
    paths = sorted(map(str, folder.glob("train-*-of-?????"))) or write_set(folder, chain, row_bytes)
    for batch in given.batches:
        if batch * row_bytes > _MAX_BATCH_BYTES:
            continue
        plain = build(chain, paths, batch, row_bytes)
        ours = tfr.accelerate(build(chain, paths, batch, row_bytes))
        both = plain, ours
        for dataset in both:
            costs(dataset, 0)
        pairs = []
        for turn in range(given.turns):
            found = {n: costs(both[n], given.seconds) for n in ((0, 1) if turn % 2 else (1, 0))}
            pairs.append([theirs / own for theirs, own in zip(found[0], found[1], strict=True)])
        ratios = [[pair[n] for pair in pairs] for n in (0, 1)]
        cpu, wall = map(statistics.median, ratios)
        spread = f"{min(ratios[0]):.2f} to {max(ratios[0]):.2f}"
        steps = 1e6 * found[1][0] / max(1, len(list(ours)))
        print(json.dumps([chain, row_bytes, batch, cpu, wall, spread, round(steps)]), flush=True)


def memory(chain: str, row_bytes: int, batch: int, given: argparse.Namespace, ours: bool) -> None:
    """Prints the peak of this process's memory in MB, and the seconds to the first batch."""
    import tfrfast as tfr

    paths = sorted(map(str, (Path(given.data) / f"{chain}-{row_bytes}").glob("train-*-of-?????")))
    dataset = build(chain, paths, batch, row_bytes)
    dataset = tfr.accelerate(dataset) if ours else dataset
    begin = time.perf_counter()
    iterator = iter(dataset)
    next(iterator)
    first = time.perf_counter() - begin
    for _ in iterator:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([chain, row_bytes, batch, "ours" if ours else "plain", round(peak), first]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("chains", nargs="*", default=CHAINS)
    parser.add_argument("--rows", nargs="*", type=int, default=ROW_BYTES, help="bytes of a row")
    parser.add_argument("--batches", nargs="*", type=int, default=BATCHES)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--data", default="")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if given.one == "compare":
        compare(given.chains[0], given.rows[0], given)
    elif given.one:
        memory(given.chains[0], given.rows[0], given.batches[0], given, given.one == "ours")
    else:
        with tempfile.TemporaryDirectory() as folder:
            measure(given, given.data or folder)


def measure(given: argparse.Namespace, data: str) -> None:
    def run(chain: str, row_bytes: int, batches: Sequence[int], what: str) -> list[Any]:
        command = [sys.executable, __file__, chain, "--rows", str(row_bytes), "--one", what]
        command += ["--batches", *map(str, batches), "--data", data]
        command += ["--turns", str(given.turns), "--seconds", str(given.seconds)]
        made = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        return [json.loads(line) for line in made.stdout.splitlines()]

    found = []
    for chain in given.chains:
        for row_bytes in given.rows:
            cells = run(chain, row_bytes, given.batches, "compare")
            for _, _, batch, cpu, wall, spread, step in cells:
                line = f"{chain:9}{row_bytes:10,} B {batch:3} {cpu:6.2f} ({spread}) {wall:6.2f}"
                if given.memory:
                    for what in ("plain", "ours"):
                        ((*_, peak, first),) = run(chain, row_bytes, [batch], what)
                        line += f"  {what} {peak:,} MB, first {first:.2f} s"
                print(f"{line}  {step:,} us", flush=True)
            found += cells
    for place, name in ((3, "processor time"), (4, "wall time")):
        ratios = sorted((cell[place], *cell[:3]) for cell in found)
        lowest = ", ".join(f"{r:.2f} ({c}, {b} B, batch {n})" for r, c, b, n in ratios[:3])
        middle = statistics.median(each[0] for each in ratios)
        print(f"{name}: median {middle:.2f}; lowest {lowest}")


if __name__ == "__main__":
    main()
