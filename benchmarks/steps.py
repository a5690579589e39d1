"""Measures steps of episodes beside bare reads, tf.data and Lance, and writes docs/step-speed.md.

    pip install pylance tensorflow; python benchmarks/steps.py      # ten minutes, 2 GB of disk

Each contender runs in a process of its own, in turns. Rates are by processor time, which other work
on the machine hardly changes. All files are in memory.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tfrfast as tfr

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "step-speed.md"
EPISODE_STEPS = 400
LARGE_BYTES, LARGE_EPISODES = 12_000, 60  # a record has 4.8 MB
SMALL_BYTES, SMALL_EPISODES = 4_000, 600
BUFFER = 100_000
BATCH = 256
CHUNK = 16
IMAGE, ACTION, NUMBER = "steps/observation/image", "steps/action", "steps/number"
WINDOWS = {ACTION: tfr.Window(after=CHUNK - 1), IMAGE: tfr.Window(before=1)}
FEATURES = {
    ACTION: tfr.FixedLen((CHUNK, 10), "float32"),
    f"{ACTION}/valid": tfr.FixedLen((CHUNK,), "int64"),
    IMAGE: tfr.FixedLen((2,), "bytes"),
    NUMBER: tfr.FixedLen((), "int64"),
}


def write_set(folder: Path, episodes: int, image_bytes: int) -> list[str]:
    """Four shards of episodes with one camera and a list of ten numbers for each step."""
    folder.mkdir()
    random = np.random.default_rng(0)
    paths = [str(folder / f"train-{shard:05d}-of-00004") for shard in range(4)]
    noise = random.bytes(1 << 22)
    number = 0
    for shard, path in enumerate(paths):
        with tfr.Writer(path, sync=False, overwrite=True) as writer:
            for _ in range(shard, episodes, 4):
                sizes = np.clip(
                    random.normal(image_bytes, image_bytes / 10, EPISODE_STEPS), 100, None
                )
                starts = random.integers(0, len(noise) - 2 * image_bytes, EPISODE_STEPS)
                images = [noise[at : at + int(n)] for at, n in zip(starts, sizes, strict=True)]
                writer.write_example(
                    {
                        ACTION: random.random(10 * EPISODE_STEPS, np.float32),
                        IMAGE: images,
                        NUMBER: np.arange(number, number + EPISODE_STEPS),
                        "episode": shard,
                    }
                )
                number += EPISODE_STEPS
    return paths


# -- contenders, each of which runs in a process of its own


def cost_of(run: Callable[[], int], turns: int = 7) -> list[float]:
    """Microseconds of processor time for one item, in each turn."""
    run()
    costs = []
    for _ in range(turns):
        began = time.process_time()
        count = run()
        costs.append((time.process_time() - began) / count * 1e6)
    return costs


def random_steps(paths: list[str], io: str) -> list[float]:
    steps = tfr.Steps(paths, along="steps/", io=io)
    numbers = np.random.default_rng(1).integers(0, len(steps), 4000).tolist()

    def run() -> int:
        for number in numbers:
            steps[number]
        return len(numbers)

    return cost_of(run)


def bare_reads(paths: list[str]) -> list[float]:
    files = [os.open(path, os.O_RDONLY) for path in paths]
    size = min(map(os.path.getsize, paths))
    places = np.random.default_rng(1).integers(0, size - LARGE_BYTES, 4000).tolist()

    def run() -> int:
        for number, place in enumerate(places):
            os.pread(files[number % len(files)], LARGE_BYTES, place)
        return len(places)

    return cost_of(run)


def whole_records(paths: list[str]) -> list[float]:
    """Returns the cost of a step without a step file: the whole episode is read."""
    reader = tfr.Reader(paths)
    numbers = np.random.default_rng(1).integers(0, len(reader), 40).tolist()

    def run() -> int:
        for number in numbers:
            reader[number]
        return len(numbers)

    return cost_of(run, 3)


def batches_at_random(read: Callable[[Any], Any], count: int) -> list[float]:
    random = np.random.default_rng(2)
    batches = [random.integers(0, count, BATCH) for _ in range(20)]

    def run() -> int:
        for batch in batches:
            read(batch)
        return BATCH * len(batches)

    return cost_of(run)


def random_batches(paths: list[str]) -> list[float]:
    steps = tfr.Steps(paths, along="steps/")
    specs = {
        ACTION: tfr.FixedLen((10,), "float32"),
        IMAGE: tfr.FixedLen((), "bytes"),
        NUMBER: tfr.FixedLen((), "int64"),
    }
    return batches_at_random(lambda batch: tfr.parse_example(steps[batch], specs), len(steps))


def lance_batches(paths: list[str]) -> list[float]:
    import lance

    frames = lance.dataset(str(Path(paths[0]).parent / "frames.lance"))
    return batches_at_random(frames.take, frames.count_rows())


def convert_to_lance(paths: list[str]) -> None:
    import lance
    import pyarrow as pa

    specs = {
        ACTION: tfr.FixedLen((10,), "float32"),
        IMAGE: tfr.FixedLen((), "bytes"),
        NUMBER: tfr.FixedLen((), "int64"),
    }
    scan = tfr.scan(tfr.Steps(paths, along="steps/"), features=specs)
    table = pa.RecordBatchReader.from_stream(scan)
    lance.write_dataset(table, str(Path(paths[0]).parent / "frames.lance"))


class Judge:
    """Judges the mixing of an epoch's samples, and finds the largest memory in use."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.numbers: list[np.ndarray] = []
        self.memory = 0

    def add(self, numbers: Any) -> None:
        self.numbers.append(np.array(numbers))
        if len(self.numbers) % 20 == 0:
            facts = Path("/proc/self/status").read_text()
            held = int(facts.partition("RssAnon:")[2].split()[0]) << 10
            self.memory = max(self.memory, held)

    def result(self, seconds: float) -> dict[str, float]:
        order = np.concatenate(self.numbers)
        apart = np.abs(np.diff(order)).mean() / self.total * 3
        episodes = [np.sort(each // EPISODE_STEPS) for each in self.numbers if len(each) == BATCH]
        pairs = []
        for each in episodes:
            counts = np.unique(each, return_counts=True)[1]
            pairs.append((counts * (counts - 1) / 2).sum())
        chance = BATCH * (BATCH - 1) / 2 * (EPISODE_STEPS - 1) / (self.total - 1)
        return {
            "us": seconds / len(order) * 1e6,
            "samples": len(order),
            "different": len(np.unique(order)),
            "memory": self.memory,
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
            "apart": float(apart),
            "pairs": float(np.mean(pairs) / chance),
            "drift": float(np.corrcoef(np.arange(len(order)), order)[0, 1]),
        }


def sets_of(paths: list[str], count: int) -> list[list[str]]:
    """Divides the files into `count` sets."""
    size = len(paths) // count
    return [paths[first : first + size] for first in range(0, len(paths), size)]


def steps_loaded(paths: list[str], count: int) -> dict[str, float]:
    judge = Judge(SMALL_EPISODES * EPISODE_STEPS)
    began = time.process_time()
    sets = {
        str(number): (tfr.Steps(part, along="steps/", windows=WINDOWS), 1)
        for number, part in enumerate(sets_of(paths, count))
    }
    mixture = tfr.Mixture(sets, seed=3)
    for batch in tfr.Loader(mixture, BATCH, features=FEATURES, threads=2):
        judge.add(batch[NUMBER])
    return judge.result(time.process_time() - began)


def tf_data(paths: list[str], count: int) -> dict[str, float]:
    """Works in the order of Octo and its successors: interleaves each set's episodes, cuts them into
    windows, flattens the windows, samples the sets by weight, and mixes all in a buffer.
    """
    import tensorflow as tf

    def samples(record: Any) -> Any:
        parsed = tf.io.parse_single_example(
            record,
            {
                ACTION: tf.io.FixedLenSequenceFeature((10,), tf.float32, allow_missing=True),
                IMAGE: tf.io.FixedLenSequenceFeature((), tf.string, allow_missing=True),
                NUMBER: tf.io.FixedLenSequenceFeature((), tf.int64, allow_missing=True),
            },
        )
        steps = tf.range(tf.shape(parsed[NUMBER])[0])
        last = tf.shape(steps)[0] - 1
        ahead = steps[:, None] + tf.range(CHUNK)[None, :]
        behind = tf.maximum(steps[:, None] + tf.range(-1, 1)[None, :], 0)
        return {
            ACTION: tf.gather(parsed[ACTION], tf.minimum(ahead, last)),
            f"{ACTION}/valid": ahead <= last,
            IMAGE: tf.gather(parsed[IMAGE], behind),
            NUMBER: parsed[NUMBER],
        }

    auto = tf.data.AUTOTUNE
    judge = Judge(SMALL_EPISODES * EPISODE_STEPS)
    began = time.process_time()
    sets = [
        tf.data.Dataset.from_tensor_slices(part)
        .shuffle(len(part), seed=1)
        .interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=auto)
        .map(samples, num_parallel_calls=auto)
        .flat_map(tf.data.Dataset.from_tensor_slices)
        for part in sets_of(paths, count)
    ]
    mixed = sets[0] if count == 1 else tf.data.Dataset.sample_from_datasets(sets, [0.5, 0.5], 2)
    dataset = mixed.shuffle(BUFFER, seed=3).batch(BATCH, num_parallel_calls=auto).prefetch(auto)
    for batch in dataset.as_numpy_iterator():
        judge.add(batch[NUMBER])
    return judge.result(time.process_time() - began)


def ten_million(paths: list[str]) -> dict[str, float]:
    """Makes and opens a step file of 10 million steps of one camera. Links to one shard stand for
    all shards.
    """
    from tfrfast import _native
    from tfrfast.jobs.chosen_records import ShardSizes
    from tfrfast.keys.key_file import stamp_of
    from tfrfast.steps import building
    from tfrfast.steps.axis import encoded_axis

    folder = Path(paths[0]).parent / "links"
    folder.mkdir(exist_ok=True)
    first = tfr.Reader(paths[0])
    copies = 10_000_000 // (len(first) * EPISODE_STEPS)
    links = [str(folder / f"train-{number:05d}") for number in range(copies)]
    for link in links:
        if not os.path.exists(link):
            os.link(paths[0], link)
    reader = tfr.Reader(links, progress=False)
    axis = encoded_axis("steps/")
    tasks = building._planned(ShardSizes(first), building._layout(first, axis), 1)
    parts = [task.run(lambda done: None) for task in tasks]
    tables = _native.StepTables(axis)
    for _ in range(copies):
        for part in parts:
            tables.append(part)
    path = building.step_path(reader, axis)
    Path(path).parent.mkdir(exist_ok=True)
    with open(path, "wb", buffering=0) as file:
        building._write(tables.finish(reader._fingerprint, stamp_of(reader)), file)
    reader = tfr.Reader(links, index="require")
    opened, read = [], []
    for turn in range(9):
        began = time.process_time()
        steps = tfr.Steps(reader, along="steps/")
        opened.append(time.process_time() - began)
        number = len(steps) * turn // 9
        record = tfr.parse_example([steps[number]], {NUMBER: FEATURES[NUMBER]})
        assert record[NUMBER][0] == number % (len(first) * EPISODE_STEPS)
        read.append(len(steps))
    return {
        "steps": read[0],
        "shards": copies,
        "open_ms": statistics.median(opened) * 1e3,
        "open_ms_max": max(opened) * 1e3,
        "bytes": os.path.getsize(path),
    }


def build_rates(paths: list[str]) -> dict[str, float]:
    verified, built = [], []
    for _ in range(3):
        began = time.process_time()
        tfr.verify(paths, progress=False)
        verified.append(time.process_time() - began)
        began = time.process_time()
        tfr.build_steps(paths, along="steps/", progress=False)
        built.append(time.process_time() - began)
    gigabytes = sum(map(os.path.getsize, paths)) / 1e9
    return {
        "verify": gigabytes / statistics.median(verified),
        "build": gigabytes / statistics.median(built),
    }


LARGE: dict[str, Callable[[list[str]], Any]] = {
    "pread": bare_reads,
    "mapped": lambda paths: random_steps(paths, "mmap"),
    "pread steps": lambda paths: random_steps(paths, "pread"),
    "records": whole_records,
    "batches": random_batches,
    "lance": lance_batches,
    "convert": convert_to_lance,
    "ten million": ten_million,
    "building": build_rates,
}
SMALL: dict[str, Callable[[list[str]], Any]] = {
    "loader": lambda paths: steps_loaded(paths, 1),
    "tf.data": lambda paths: tf_data(paths, 1),
    "loader of two": lambda paths: steps_loaded(paths, 2),
    "tf.data of two": lambda paths: tf_data(paths, 2),
}


def run_alone(name: str, paths: list[str]) -> Any:
    """Runs a contender in a process of its own. Returns its result."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, __file__, "--contender", name, *paths],
        stdout=subprocess.PIPE,
        env=environment,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def spread(values: list[float], digits: int = 1) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def measured(folder: Path, turns: int) -> Iterator[str]:
    """Yields the lines of the page."""
    large = write_set(folder / "large", LARGE_EPISODES, LARGE_BYTES)
    built = run_alone("building", large)
    costs: dict[str, list[float]] = {}
    for _ in range(turns):
        for name in ("pread", "mapped", "pread steps", "records"):
            costs.setdefault(name, []).append(statistics.median(run_alone(name, large)))
    bare = costs["pread"]
    yield "## A step at random"
    yield ""
    yield (
        f"A record has {EPISODE_STEPS} steps and {EPISODE_STEPS * LARGE_BYTES / 1e6:.1f} MB, and a "
        f"step {LARGE_BYTES / 1000:.0f} KB: a picture, ten numbers and a number."
    )
    yield ""
    yield "| | microseconds of processor time | times a bare read |"
    yield "|---|---:|---:|"
    for name, says in (
        ("pread", "`os.pread` of as many bytes, nothing verified"),
        ("mapped", "`steps[i]`, mapped"),
        ("pread steps", '`steps[i]`, `io="pread"`'),
        ("records", "`reader[record]`, the whole episode"),
    ):
        ratios = [each / base for each, base in zip(costs[name], bare, strict=True)]
        yield f"| {says} | {spread(costs[name])} | {spread(ratios)} |"
    yield ""
    yield (
        f"Making the step file takes {built['verify'] / built['build']:.1f} times the processor "
        f"time of `tfr.verify`. A second of processor time is enough for {built['build']:.1f} GB of "
        "records."
    )
    yield ""

    yield "## Beside Lance"
    yield ""
    run_alone("convert", large)
    ours, theirs = [], []
    for _ in range(turns):
        ours.append(statistics.median(run_alone("batches", large)))
        theirs.append(statistics.median(run_alone("lance", large)))
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    yield (
        f"The same frames were converted to Lance. Batches of {BATCH} frames at random, all "
        "columns decoded to arrays:"
    )
    yield ""
    yield "| | microseconds of processor time a frame |"
    yield "|---|---:|"
    yield f"| `parse_example(steps[numbers])`, from the TFRecord files | {spread(ours)} |"
    yield f"| `lance.dataset(...).take(numbers)`, converted | {spread(theirs)} |"
    yield f"| Lance's time by ours | {spread(ratios)} |"
    yield ""

    yield "## Ten million steps"
    yield ""
    found = run_alone("ten million", large)
    yield (
        f"{found['steps']:,} steps hold one camera and a list of ten numbers. Their step file has "
        f"{found['bytes'] / 1e6:.1f} MB, {found['bytes'] / found['steps']:.2f} bytes a step. Given "
        f"an open Reader of {found['shards']} shards, `Steps` opens the step file in "
        f"{found['open_ms']:.1f} ms of processor time (at most {found['open_ms_max']:.1f})."
    )
    yield ""

    small = write_set(folder / "small", SMALL_EPISODES, SMALL_BYTES)
    for part in (*sets_of(small, 1), *sets_of(small, 2)):
        tfr.build_steps(part, along="steps/", progress=False)
    results: dict[str, list[dict[str, float]]] = {}
    for _ in range(turns):
        for name in SMALL:
            results.setdefault(name, []).append(run_alone(name, small))
    total = SMALL_EPISODES * EPISODE_STEPS
    yield "## Beside a buffer of frames"
    yield ""
    yield (
        f"{total:,} steps of {SMALL_BYTES / 1000:.0f} KB, with windows of {CHUNK} "
        f"actions and two pictures, in batches of {BATCH}. tf.data interleaves each set's episodes, "
        "cuts their windows, flattens them, samples the sets by weight, and mixes all in a buffer of "
        f"{BUFFER:,}. Nothing is decoded. One epoch, with opening and starting; the step file was "
        "made before."
    )
    yield ""
    yield "| | Loader, one set | tf.data, one set | Loader, two sets | tf.data, two sets |"
    yield "|---|---:|---:|---:|---:|"

    def row(says: str, key: str, factor: float, digits: int) -> str:
        cells = [spread([each[key] * factor for each in results[name]], digits) for name in SMALL]
        return f"| {says} | {' | '.join(cells)} |"

    yield row("microseconds of processor time a sample", "us", 1, 1)
    yield row("most memory, MB, without the mapped pages of files", "memory", 1e-6, 0)
    yield row("most memory, MB, with these pages, which other processes share", "peak", 1e-6, 0)
    yield row("different steps of the epoch", "different", 1, 0)
    yield row("neighbours' distance in the data, as a multiple of a random order's", "apart", 1, 3)
    yield row("pairs of one episode in a batch, as a multiple of a random order's", "pairs", 1, 3)
    yield row("correlation of the order with that of the data (0 is fair)", "drift", 1, 3)
    yield ""
    for number, says in (("", "one set"), (" of two", "two sets")):
        pairs = list(zip(results["loader" + number], results["tf.data" + number], strict=True))
        faster = spread([b["us"] / a["us"] for a, b in pairs])
        smaller = spread([b["memory"] / a["memory"] for a, b in pairs])
        yield (
            f"With {says}, tf.data takes {faster} times the processor time for a sample, and "
            f"{smaller} times the memory."
        )
    yield ""
    yield (
        "A Mixture takes an exact share of each set in every few samples. So with two sets, "
        "neighbours are a little further apart in the data than by chance."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--contender", choices=[*LARGE, *SMALL], help=argparse.SUPPRESS)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", help="where the data go")
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        result = (LARGE | SMALL)[options.contender](options.paths)
        print(json.dumps(result))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        day = datetime.datetime.now(datetime.timezone.utc).date()
        load = os.getloadavg()[0]
        lines = [
            "# How fast steps are",
            "",
            "`python benchmarks/steps.py` wrote this page about [steps of episodes](steps.md).",
            "",
            f"{day:%d %B %Y}, {os.cpu_count()} processors ({platform.machine()}), "
            f"Python {platform.python_version()}, tfrfast {tfr.__version__}, beside other work "
            f"with a load of {load:.0f}. All files are in memory. Figures are medians of turns, with "
            "the lowest and the highest.",
            "",
        ]
        for line in measured(Path(folder), options.turns):
            print(line, flush=True)
            lines.append(line)
    PAGE.write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
