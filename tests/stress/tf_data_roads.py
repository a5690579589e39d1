"""Roads of tf.data: TFRecordDataset, and accelerated datasets of TensorFlow's own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import tfrfast as tfr
from road import CHAINS, FRAMEWORK, ORDERED, READS, SKIPS, TENSORFLOW, Opened, Road, Task
from truth import Item, content_of


def _specs() -> dict[str, Any]:
    import tensorflow as tf

    return {"id": tf.io.FixedLenFeature([], tf.int64), "text": tf.io.FixedLenFeature([], tf.string)}


def _parsed(dataset: Any) -> Any:
    import tensorflow as tf

    specs = _specs()
    return dataset.map(lambda record: tf.io.parse_single_example(record, specs)).batch(16)


def _fused(dataset: Any) -> Any:
    import tensorflow as tf

    specs = _specs()
    return dataset.batch(16).map(lambda records: tf.io.parse_example(records, specs))


def rows_of(dataset: Any) -> Iterator[Item]:
    for element in dataset:
        if isinstance(element, dict):
            ids, texts = element["id"].numpy().tolist(), element["text"].numpy().tolist()
            yield from ((None, content_of(*row)) for row in zip(ids, texts, strict=True))
        else:
            records = element.numpy()
            yield from (
                (None, each) for each in ([records] if element.shape.rank == 0 else records)
            )


def ours(make: Callable[[Any], Any], **options: Any) -> Callable[[Task], Opened]:
    def open_dataset(task: Task) -> Opened:
        corruption = {"on_corruption": "skip"} if task.skips else {}
        dataset = make(tfr.TFRecordDataset(task.paths, task.compression, **options, **corruption))
        return Opened(lambda: rows_of(dataset))

    return open_dataset


def accelerated(make: Callable[[Any, Any], Any]) -> Callable[[Task], Opened]:
    def open_dataset(task: Task) -> Opened:
        import tensorflow as tf

        files = tf.data.Dataset.from_tensor_slices(task.paths)
        read = functools.partial(tf.data.TFRecordDataset, compression_type=task.compression)
        dataset = tfr.accelerate(make(files, read))
        return Opened(lambda: rows_of(dataset))

    return open_dataset


def _interleaved(files: Any, read: Any) -> Any:
    return files.interleave(read, cycle_length=2, block_length=3)


_OURS = frozenset({READS, SKIPS, FRAMEWORK, TENSORFLOW})
_THEIRS = frozenset({READS, FRAMEWORK, TENSORFLOW})

ROADS = [
    Road("TFRecordDataset", ours(lambda each: each), _OURS | {CHAINS, ORDERED}),
    Road("TFRecordDataset, parallel", ours(lambda each: each.batch(16), num_parallel_reads=2), _OURS),
    Road("TFRecordDataset, shuffled", ours(lambda each: each.shuffle(100)), _OURS),
    Road("TFRecordDataset, fused", ours(_fused), _OURS | {ORDERED}),
    Road("accelerate, in order", accelerated(lambda files, read: _parsed(read(files))), _THEIRS | {ORDERED}),
    Road("accelerate, interleaved", accelerated(lambda files, read: _parsed(_interleaved(files, read))), _THEIRS),
    Road("accelerate, shuffled", accelerated(lambda files, read: _fused(read(files).shuffle(1000))), _THEIRS),
]  # fmt: skip
ROADS = [Road(each.name, each.open, each.has, ("tensorflow",)) for each in ROADS]
