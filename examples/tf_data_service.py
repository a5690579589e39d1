"""A tf.data service: a dispatcher and two workers, which together give each record once.

python examples/tf_data_service.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf
from mnist_data import features, write_digits

import tfrfast as tfr
import tfrfast.tensorflow  # a worker runs graphs that have tfrfast's ops in them

service = tf.data.experimental.service


def work(dispatcher: str) -> None:
    """Runs a worker, on this machine or on another machine that sees the same files."""
    worker = service.WorkerServer(service.WorkerConfig(dispatcher))
    sys.stdin.read()  # until the parent process ends
    del worker


@contextmanager
def running_service(num_workers: int) -> Iterator[str]:
    """Starts a dispatcher here, and workers in other processes. Yields the dispatcher's address."""
    dispatcher = service.DispatchServer()
    address = dispatcher.target.split("://")[1]
    command = [sys.executable, __file__, "--work", address]
    workers = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(num_workers)]
    try:
        yield dispatcher.target
    finally:
        for each in workers:
            each.communicate(b"")


def batches(shards: list[str], address: str, batch_size: int = 100) -> tf.data.Dataset:
    """Returns the batches of one exact shuffle of all records, shared among the workers."""
    return (
        tfr.TFRecordDataset(shards)
        .shuffle(1, seed=7)  # exact and global for any number
        .batch(batch_size)
        .parse_example(features("bytes"))
        .apply(service.distribute(service.ShardingPolicy.DYNAMIC, address))
    )


def count(shards: list[str], num_workers: int = 2) -> tuple[int, int]:
    """Returns the number of delivered records, and of different records among them."""
    seen: list[bytes] = []
    with running_service(num_workers) as address:
        for batch in batches(shards, address).as_numpy_iterator():
            seen += [image.tobytes() for image in batch["image"]]
    return len(seen), len(set(seen))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", type=int, default=10_000)
    parser.add_argument("--work", metavar="DISPATCHER", help="be a worker")
    options = parser.parse_args()
    if options.work:
        work(options.work)
        return
    with tempfile.TemporaryDirectory() as temporary:
        digits = write_digits(Path(temporary), "bytes", options.train)
        tfr.build_index(digits.train)
        records, different = count(digits.train)
        print(f"{records} records from two workers, {different} of them different")


if __name__ == "__main__":
    main()
