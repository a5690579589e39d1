"""Reads a silent server's objects by tf.data until Ctrl-C. Run with a URL and a way to read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf

import tfrfast as tfr

#: A silent server is waited for that long, longer than any test waits.
FOR_AN_HOUR = {"timeout": 3600, "retries": 0}

WAYS: dict[str, Callable[[str], Any]] = {
    "file order": lambda url: opened(url).batch(10),
    "shuffled": lambda url: opened(url).shuffle(9, seed=1).batch(10),
    "loader": lambda url: tfr.Loader(
        tfr.Reader(url, storage=FOR_AN_HOUR), 10, seed=1
    ).to_tf_dataset(),
    "names in the graph": lambda url: tf.data.Dataset.from_tensors(url).flat_map(opened),
}


def opened(names: Any) -> Any:
    return tfr.TFRecordDataset(names, storage=FOR_AN_HOUR)


def main(url: str, way: str) -> None:
    dataset = WAYS[way](url)
    if way != "loader":  # after prefetch(), TensorFlow's own iterator would read
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
    print("open", flush=True)
    sys.stdin.readline()  # from now on the server is silent
    try:
        print("reading", flush=True)
        for _ in dataset:  # list() would ask for the length first, which opens the files
            pass
    except (KeyboardInterrupt, RuntimeError) as error:
        # TensorFlow's own iterators turn a KeyboardInterrupt into a RuntimeError.
        assert isinstance(error, KeyboardInterrupt) or way == "names in the graph"
        assert "KeyboardInterrupt" in repr(error), error
        print("interrupted", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
