"""Measures images from JPEG to batches of pixels, beside TensorFlow, DALI and torchvision.

    pip install ".[tensorflow]" nvidia-dali-cuda120 torch torchvision; python benchmarks/images.py

Every contender reads the same records, draws a window and a mirror for each image, and makes 224 x
224 pixels on one thread, or in one worker process. Each run is a process of its own, in turns.
Rates are images for each second of processor time, workers included. Missing packages are left
out. Files are in memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import multiprocessing
import os
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

SIZE = 224
BATCH = 32
PHOTOS = 24
COPIES = 16
# (height, width, quality) of photos with about that many bytes.
SHAPES = {"82 KB": (375, 500, 91), "110 KB": (440, 586, 91)}


def write_photos(path: str, height: int, width: int, quality: int) -> float:
    """Writes smooth pictures with noise, as JPEGs, and returns their mean size in bytes."""
    import tensorflow as tf

    random = np.random.default_rng(0)
    jpegs = []
    for number in range(PHOTOS):
        shape = (height, width) if number % 2 else (width, height)
        coarse = random.integers(0, 256, (shape[0] // 16 + 2, shape[1] // 16 + 2, 3))
        smooth = tf.image.resize(coarse.astype(np.float32), shape, method="bicubic").numpy()
        pixels = np.clip(smooth + random.normal(0, 10, (*shape, 3)), 0, 255).astype(np.uint8)
        jpegs.append(tf.io.encode_jpeg(pixels, quality=quality).numpy())
    with tfr.Writer(path, overwrite=True) as writer:
        for number, jpeg in enumerate(jpegs * COPIES):
            writer.write(tfr.encode_example({"image": jpeg, "label": number}))
    return sum(map(len, jpegs)) / PHOTOS


def loader(path: str, resize: Any = "bilinear") -> Iterator[int]:
    features = {"image": tfr.Image((SIZE, SIZE), crop="random", flip=True, resize=resize)}
    batches = tfr.Loader(path, BATCH, features=features, seed=0, threads=1, prefetch=1)
    while True:
        for batch in batches:
            yield len(batch["image"])


def area(path: str) -> Iterator[int]:
    return loader(path, "area")


def centers_by_loader(path: str) -> Iterator[int]:
    features = {"image": tfr.Image((SIZE, SIZE), crop="center")}
    batches = tfr.Loader(path, BATCH, features=features, seed=0, threads=1, prefetch=1)
    while True:
        for batch in batches:
            yield len(batch["image"])


def centers_in_a_bare_loop(path: str) -> Iterator[int]:
    features = {"image": tfr.Image((SIZE, SIZE), crop="center")}
    records = list(tfr.Reader(path))
    while True:
        for first in range(0, len(records), BATCH):
            yield len(tfr.parse_example(records[first : first + BATCH], features)["image"])


def tensorflow(path: str) -> Iterator[int]:
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)

    def decode(record: Any) -> Any:
        spec = {"image": tf.io.FixedLenFeature((), tf.string)}
        jpeg = tf.io.parse_single_example(record, spec)["image"]
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(jpeg),
            tf.zeros([1, 0, 4]),
            area_range=(0.08, 1.0),
            aspect_ratio_range=(3 / 4, 4 / 3),
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        pixels = tf.io.decode_and_crop_jpeg(jpeg, window, channels=3)
        pixels = tf.image.resize(pixels, (SIZE, SIZE))
        return tf.cast(tf.image.random_flip_left_right(pixels), tf.uint8)

    dataset = tf.data.TFRecordDataset(path).shuffle(PHOTOS * COPIES).repeat().map(decode)
    for batch in dataset.batch(BATCH):
        yield len(batch)


def dali(path: str) -> Iterator[int]:
    from nvidia.dali import fn, pipeline_def, types

    records = _jpegs(path)

    def source(info: Any) -> Any:
        return np.frombuffer(records[info.idx_in_epoch % len(records)], np.uint8)

    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
    def pipeline() -> Any:
        jpegs = fn.external_source(source, batch=False, dtype=types.UINT8)
        pixels = fn.decoders.image_random_crop(jpegs, device="cpu")
        pixels = fn.resize(pixels, resize_x=SIZE, resize_y=SIZE, antialias=False)
        return fn.flip(pixels, horizontal=fn.random.coin_flip())

    built = pipeline()
    built.build()
    while True:
        built.run()
        yield BATCH


def torchvision(path: str) -> Iterator[int]:
    import torch
    from PIL import Image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    steps = v2.Compose([v2.RandomResizedCrop(SIZE), v2.RandomHorizontalFlip(), v2.PILToTensor()])
    records = _jpegs(path)

    class Photos(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return len(records)

        def __getitem__(self, number: int) -> Any:
            return steps(Image.open(io.BytesIO(records[number])).convert("RGB"))

    batches = torch.utils.data.DataLoader(
        Photos(), BATCH, shuffle=True, num_workers=1, persistent_workers=True
    )
    while True:
        for batch in batches:
            yield len(batch)


def _jpegs(path: str) -> list[bytes]:
    features = {"image": tfr.FixedLen((), "bytes")}
    jpegs: list[bytes] = tfr.parse_example(list(tfr.Reader(path)), features)["image"].tolist()
    return jpegs


CONTENDERS: dict[str, tuple[Callable[[str], Iterator[int]], str]] = {
    "tfr.Image, bilinear": (loader, "numpy"),
    "tfr.Image, area": (area, "numpy"),
    "TensorFlow": (tensorflow, "tensorflow"),
    "DALI, CPU": (dali, "nvidia.dali"),
    "torchvision over PIL in a worker": (torchvision, "torchvision"),
    "centers, tfr.Loader": (centers_by_loader, "numpy"),
    "centers, tfr.parse_example alone": (centers_in_a_bare_loop, "numpy"),
}


def rate(name: str, path: str, seconds: float) -> float:
    batches = CONTENDERS[name][0](path)
    for _ in range(2 * PHOTOS * COPIES // BATCH):
        next(batches)
    images, began = 0, processor_time()
    while processor_time() - began < seconds:
        images += next(batches)
    return images / (processor_time() - began)


def processor_time() -> float:
    """Returns the seconds of this process and of its workers."""
    seconds = time.process_time()
    for worker in multiprocessing.active_children():
        user, system = Path(f"/proc/{worker.pid}/stat").read_text().split()[13:15]
        seconds += (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return seconds


def is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="of processor time, for each run"
    )
    parser.add_argument("--run", nargs=2, metavar=("CONTENDER", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(rate(*options.run, options.seconds))
        return
    names = [name for name, (_, package) in CONTENDERS.items() if is_installed(package)]
    for label, shape in SHAPES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/photos.tfrecord"
            mean = write_photos(path, *shape)
            rates: dict[str, list[float]] = {name: [] for name in names}
            for _ in range(options.turns):
                for name in names:
                    command = [sys.executable, __file__, "--seconds", str(options.seconds)]
                    done = subprocess.run(
                        [*command, "--run", name, path],
                        stdout=subprocess.PIPE,
                        text=True,
                        check=True,
                    )
                    rates[name].append(float(done.stdout.split()[-1]))
        print(f"\n{label}: {mean / 1000:.0f} KB on average\n\n| | images/s | of TensorFlow's |")
        print("|---|---:|---:|")
        for name in names:
            ratios = [a / b for a, b in zip(rates[name], rates["TensorFlow"], strict=True)]
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            ratio = f"{statistics.median(ratios):.2f} ({spread})"
            print(f"| {name} | {statistics.median(rates[name]):.0f} | {ratio} |")


if __name__ == "__main__":
    main()
