"""Robots' samples from episodes: speed and memory of the programs' tf.data, and of Steps.

python benchmarks/robots.py [--turns 3] [--seconds 8] [--buffer 250000]

Each contender runs in a process of its own, by turns. Its first batch comes before the clock starts:
buffers are full then. A figure is the samples for each second of processor time of all threads, and
the peak of anonymous memory, which leaves out the mapped pages of files. The pipelines are those of
`benchmarks/pipelines/robots.py`: openpi decodes pictures of 224 x 224 as they are, Octo and OpenVLA
resize pictures of 256 x 256 to them, by dlimp's lanczos3, which takes tf.data long. `tfr.Image`
resizes with a triangle filter.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path = [each for each in sys.path if Path(each or ".").resolve() != Path(__file__).parent]
sys.path.append(str(ROOT))  # last: this measures the installed package, not the sources

SIDE, BATCH, CHUNK = 224, 64, 16
# The size of the stored pictures, and how many of them a sample has.
CASES = {"openpi": (224, 1), "OpenVLA": (256, 1), "Octo": (256, 2)}
EPISODES, SHARDS = 64, 8
IMAGE, ACTION = "steps/observation/image", "steps/action"
CONTENDERS = ("tf.data", "accelerate", "Steps", "Steps, BlockShuffle", "Steps, InOrder")


def write_episodes(folder: Path, side: int) -> None:
    """Writes episodes of 20 to 120 steps, with pictures as a camera's."""
    import tensorflow as tf

    import tfrfast as tfr

    numbers = np.random.default_rng(7)
    noises = numbers.normal(0, 4, (16, side, side, 3)).astype(np.float32)
    with tfr.ShardedWriter(str(folder / "robots"), num_shards=SHARDS) as writer:
        for episode in range(EPISODES):
            steps = int(numbers.integers(20, 121))
            coarse = numbers.integers(0, 255, (15, 15, 3)).astype(np.float32)
            smooth = tf.image.resize(coarse, (side, side), method="bicubic").numpy()
            pictures = []
            for step in range(steps):
                noisy = np.roll(smooth, step, 1) + noises[step % 16]
                pixels = np.clip(noisy, 0, 255).astype(np.uint8)
                pictures.append(tf.io.encode_jpeg(pixels, quality=80).numpy())
            writer.write(
                tfr.encode_example(
                    {
                        IMAGE: pictures,
                        "steps/observation/state": numbers.random(steps * 8, np.float32),
                        ACTION: numbers.random(steps * 7, np.float32),
                        "steps/language_instruction": [b"pick up block %d" % episode] * steps,
                        "steps/is_first": [int(step == 0) for step in range(steps)],
                        "steps/is_last": [int(step == steps - 1) for step in range(steps)],
                    }
                )
            )


def of_tf_data(files: list[str], case: str, buffer: int, accelerates: bool) -> Any:
    import tensorflow as tf

    import tfrfast as tfr
    from benchmarks.pipelines import robots

    side, history = CASES[case]

    def decode(frame: Any) -> Any:
        def one(image: Any) -> Any:
            pixels = tf.io.decode_image(image, 3, expand_animations=False)
            if side != SIDE:
                size = (SIDE, SIDE)
                pixels = tf.image.resize(pixels, size, method="lanczos3", antialias=True)
                pixels = tf.cast(tf.clip_by_value(tf.round(pixels), 0, 255), tf.uint8)
            return tf.ensure_shape(pixels, (SIDE, SIDE, 3))

        image = frame["image"]
        images = one(image) if history == 1 else tf.map_fn(one, image, fn_output_signature=tf.uint8)
        return {**frame, "image": images}

    trajectories = robots._episodes(files).repeat().map(robots.chunked(history), robots.AUTO)
    frames = robots.flattened(trajectories).shuffle(buffer)
    dataset = frames.map(decode, robots.AUTO).batch(BATCH).prefetch(2)
    return tfr.accelerate(dataset) if accelerates else dataset


def of_steps(files: list[str], case: str, name: str) -> Iterator[Any]:
    import tfrfast as tfr

    history = CASES[case][1]

    windows: dict[str, Any] = {ACTION: tfr.Window(after=CHUNK - 1)}
    if history > 1:
        windows[IMAGE] = tfr.Window(before=history - 1)
    steps = tfr.Steps(files, along="steps/", windows=windows)
    orders = {
        "Steps": tfr.Shuffle(3),
        "Steps, BlockShuffle": tfr.BlockShuffle(64, 2, streams=1, seed=3),
        "Steps, InOrder": tfr.InOrder(),
    }
    features = {
        IMAGE: tfr.Image(size=(SIDE, SIDE)),
        "steps/observation/state": tfr.FixedLen((8,), "float32"),
        ACTION: tfr.FixedLen((CHUNK, 7), "float32"),
        "steps/language_instruction": tfr.FixedLen((), "bytes"),
    }
    loader = tfr.Loader(steps, BATCH, order=orders[name], features=features)
    return itertools.chain.from_iterable(itertools.repeat(loader))


class Memory(threading.Thread):
    """Looks for the peak of this process's anonymous memory."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0

    def run(self) -> None:
        while True:
            status = Path("/proc/self/status").read_text()
            found = re.search(r"RssAnon:\s+(\d+) kB", status)
            self.peak = max(self.peak, int(found[1]) << 10 if found else 0)
            time.sleep(0.02)


def run(name: str, folder: Path, case: str, seconds: float, buffer: int) -> None:
    """Prints the samples for each second of processor time, and the peak of memory."""
    files = sorted(map(str, folder.glob("robots-?????-of-?????")))
    memory = Memory()
    memory.start()
    if name.startswith("Steps"):
        batches = iter(of_steps(files, case, name))
    else:
        batches = iter(of_tf_data(files, case, buffer, name == "accelerate"))
    next(batches)
    samples, begin = 0, time.process_time()
    while time.process_time() - begin < seconds:
        next(batches)
        samples += BATCH
    print(samples / (time.process_time() - begin), memory.peak / 1e6, flush=True)
    os._exit(0)  # a buffer takes long to free


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--buffer", type=int, default=250_000)
    parser.add_argument("--contenders", nargs="*", default=CONTENDERS)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if given.one:
        name, folder, case = given.one
        run(name, Path(folder), case, given.seconds, given.buffer)
    with tempfile.TemporaryDirectory() as data:
        for side in {side for side, _ in CASES.values()}:
            (Path(data) / str(side)).mkdir()
            write_episodes(Path(data) / str(side), side)
        print(f"{EPISODES} episodes; a buffer of {given.buffer:,} samples")
        print(
            "| program | contender | samples a second | times tf.data | peak, MB | tf.data's by it |"
        )
        print("|---|---|---:|---:|---:|---:|")
        for case, (side, _) in CASES.items():
            found: dict[str, list[tuple[float, float]]] = {each: [] for each in given.contenders}
            for _ in range(given.turns):
                for name in random.sample(list(found), len(found)):
                    command = [sys.executable, __file__, "--one", name, f"{data}/{side}", case]
                    command += ["--seconds", str(given.seconds), "--buffer", str(given.buffer)]
                    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                    rate, peak = map(float, done.stdout.split())
                    found[name].append((rate, peak))
            base = found.get("tf.data") or [(float("nan"), float("nan"))]
            for name, pairs in found.items():
                ratios = sorted(a[0] / b[0] for a, b in zip(pairs, base, strict=False))
                rate, peak = (statistics.median(each) for each in zip(*pairs, strict=True))
                whole = statistics.median(each[1] for each in base)
                print(
                    f"| {case} | {name} | {rate:,.0f} | {statistics.median(ratios):.2f} "
                    f"({ratios[0]:.2f} to {ratios[-1]:.2f}) | {peak:,.0f} | {whole / peak:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
