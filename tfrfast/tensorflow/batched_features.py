"""make_batched_features_dataset: tf.data's function, with a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.dataset import TFRecordDataset
from tfrfast.tensorflow.read.opening import opening_of
from tfrfast.tensorflow.reasons import RefusedError


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Any = None,
    label_key: str | None = None,
    reader_args: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10_000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Any:
    """Replaces `tf.data.experimental.make_batched_features_dataset`, and reads and decodes whole
    batches.

        made = tfrfast.tensorflow.make_batched_features_dataset
        batches = made("train-*", 256, features, label_key="label")
        model.fit(batches, steps_per_epoch=1000)

    The shuffle is exact for any `shuffle_buffer_size`. With `shuffle=False`, records come in the
    order of the sorted file names. tfrfast chooses its threads and keeps the order, so
    `reader_num_threads`, `parser_num_threads` and `sloppy_ordering` change nothing.

    Args:
      file_pattern: a file name, a glob, or a list of these.
      batch_size: rows of a batch.
      features: the spec of each feature, of tf.io.
      reader: None, `TFRecordDataset`, or a function of a file name that returns such a dataset, for
        example TFX's `gzip_reader_fn`. The function is called once, to see how it opens a file.
      label_key: a feature that is returned apart from other features, as `(features, label)`.
      reader_args: further positional arguments of `reader`, such as the compression.
      num_epochs: None repeats without end, in full batches.
      shuffle: whether records are shuffled.
      shuffle_buffer_size: accepted.
      shuffle_seed: None draws a seed.
      prefetch_buffer_size: batches that are read ahead. None: TensorFlow chooses.
      reader_num_threads: accepted.
      parser_num_threads: accepted.
      sloppy_ordering: accepted.
      drop_final_batch: whether a last batch that is not full is left out.
    """
    if label_key is not None and label_key not in features:
        names = ", ".join(map(repr, features))
        raise ValueError(f"label_key is {label_key!r}, but must be a feature: one of {names}.")
    files = tf.data.Dataset.list_files(file_pattern, shuffle=False)
    dataset = _records(files, reader, reader_args or ())
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, seed=shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    try:
        dataset = dataset.parse_example(features)
    except (TypeError, ValueError):  # specs that only TensorFlow knows
        dataset = dataset.apply(tf.data.experimental.parse_example_dataset(dict(features)))
    if label_key is not None:
        dataset = dataset.map(lambda parsed: (parsed, parsed.pop(label_key)))
    ahead = tf.data.AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size
    return dataset.prefetch(ahead)


def _records(files: Any, reader: Any, arguments: Sequence[Any]) -> Any:
    """Returns the records that the reader finds in the files."""
    if reader in (None, TFRecordDataset, internals.TheirTFRecordDataset):
        return TFRecordDataset(files, *arguments)
    name = tf.TensorSpec([], tf.string)
    opened = internals.traced_in_order(
        lambda name: internals.variant_of(reader(name, *arguments)), (name,), {}
    )
    try:
        opening = opening_of(opened)
        if opening.maps:
            raise RefusedError("its function calls map()")
    except RefusedError as refused:
        raise TypeError(
            "make_batched_features_dataset() of tfrfast reads whole TFRecord files: reader must be "
            f"None, TFRecordDataset, or a function that opens one file by it. {reader!r} is none: "
            f"{refused}. tf.data.experimental has the function for other readers."
        ) from None
    return TFRecordDataset(
        files, opening.compression, on_corruption="skip" if opening.skip_damage else "raise"
    )
