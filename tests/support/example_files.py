"""Shards of tf.train.Examples with every kind of feature, and tensors as plain Python."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import tfrfast as tfr
from record_files import write_shard


def some_example(number: int) -> bytes:
    """Returns Example `number`. `id` is the number, and all other features depend on it."""
    choice = random.Random(number)
    length = choice.randrange(4)
    features: dict[str, Any] = {
        "id": number,
        "label": number % 2,
        "dense": [choice.random() for _ in range(3)],
        "name": b"%d-" % number + choice.randbytes(choice.randrange(60)),
        "words": [choice.randbytes(choice.randrange(40)) for _ in range(choice.randrange(4))],
        "numbers": [choice.randrange(-(2**40), 2**40) for _ in range(length)],
        "positions": sorted(choice.sample(range(10), length)),
        "weights": [choice.random() for _ in range(length)],
        "marks": list(range(length)),
        "raw": choice.randbytes(8),
    }
    if length:
        features["lengths"] = [length]
    return tfr.encode_example(features)


def write_examples(folder: Path, counts: list[int]) -> list[str]:
    """Writes a shard for each count. Ids continue from shard to shard."""
    files, first = [], 0
    for i, count in enumerate(counts):
        records = map(some_example, range(first, first + count))
        files.append(write_shard(folder / f"examples-{i:03}", records))
        first += count
    return files


def elements(dataset: Any) -> list[Any]:
    """Returns the elements of a tf.data dataset as plain Python."""
    return [plain(each) for each in dataset]


def until_error(dataset: Any) -> tuple[list[Any], Any]:
    """Returns the elements before the first error, and the class of the error; None for none."""
    import tensorflow as tf

    found: list[Any] = []
    try:
        for each in dataset:
            found.append(plain(each))
    except tf.errors.OpError as error:
        return found, type(error)
    return found, None


def outcomes(dataset: Any) -> list[Any]:
    """Returns each element of a tf.data dataset as plain Python, or the class of its error."""
    import tensorflow as tf

    found: list[Any] = []
    iterator = iter(dataset)
    while True:
        try:
            found.append(plain(next(iterator)))
        except StopIteration:
            return found
        except tf.errors.OpError as error:
            found.append(type(error))


def plain(value: Any) -> Any:
    """Returns tensors, columns and their structures as plain Python, which can be compared."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if hasattr(value, "dense_shape"):
        parts = (value.indices, value.values, value.dense_shape)
        return [plain(part) for part in parts]
    if hasattr(value, "flat_values"):
        # In NumPy: to_list slices a tensor for each row.
        rows = plain(value.flat_values)
        for splits in reversed(value.nested_row_splits):
            ends = splits.numpy().tolist()
            rows = [rows[begin:end] for begin, end in pairwise(ends)]
        return rows
    if hasattr(value, "to_list"):
        return value.to_list()
    value = value.numpy() if hasattr(value, "numpy") else value
    return value if isinstance(value, bytes) else value.tolist()
