"""One of several processes of a MultiWorkerMirroredStrategy. TF_CONFIG names the process.

strategy_child.py FILES... prints the numbers of its records, as JSON
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

import tfrfast as tfr

strategy = tf.distribute.MultiWorkerMirroredStrategy()


def number_of(record: Any) -> Any:
    return tf.io.parse_single_example(record, {"id": tf.io.FixedLenFeature([], tf.int64)})["id"]


def numbers(dataset: Any) -> list[int]:
    found: list[int] = []
    for batch in strategy.experimental_distribute_dataset(dataset):
        for part in strategy.experimental_local_results(batch):
            found += part.numpy().tolist()
    return found


print(
    json.dumps(
        {
            name: numbers(
                library.TFRecordDataset(sys.argv[1:]).shuffle(100).map(number_of).batch(8)
            )
            for name, library in {"theirs": tf.data, "ours": tfr}.items()
        }
    ),
    flush=True,
)
os._exit(0)  # without waiting for the other process
