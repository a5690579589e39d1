"""Ways to read shards in batches: TensorFlow's, as its guides tune them, and tfrfast's.

A dataset is built once and a reader is opened once, as for training. A way is a function that
starts an epoch and returns the epoch's batches.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tfrfast.features import Features, FixedLen, VarLen
from tfrfast.loading.loader import Loader
from tfrfast.order import Mixture, Weight
from tfrfast.reader import Reader

WINDOW = 8192
TENSORFLOW_WAYS = ("file after file", "interleave")
_FILES_AT_ONCE = 4

Epoch = Callable[[], Iterable[Any]]


class Weighed(NamedTuple):
    """A data set of a mixture."""

    files: list[str]
    weight: Weight
    compression: str = ""


class Work(NamedTuple):
    """The records, their order and their form."""

    files: list[str]
    batch_size: int
    shuffled: bool
    features: Features | None = None
    """None for serialized records."""
    mixed: tuple[Weighed, ...] = ()
    """The data sets of a mixture, which replace `files`."""
    records: int | None = None
    """The number of records to read of an endless mixture."""
    compression: str = ""
    """Of all files: "", "GZIP" or "ZLIB". TensorFlow has to know it."""

    def __str__(self) -> str:
        order = "mixed" if self.mixed else "shuffled" if self.shuffled else "in order"
        return f"{'records' if self.features is None else 'decoded'}, {order}"


def import_tensorflow() -> Any:
    """Returns TensorFlow without its log messages. Raises an ImportError that says how to install
    it.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        if "tensorflow" in sys.modules:
            import tensorflow
        else:
            # TensorFlow writes some lines before it reads the log level, the last line at its first
            # op.
            with _standard_error_dropped():
                import tensorflow

                tensorflow.constant(0.0) + 1
    except ImportError as error:
        raise ImportError(
            f"this compares with TensorFlow, which cannot be imported ({error}). "
            "Install it: pip install tensorflow"
        ) from error
    return tensorflow


@contextmanager
def _standard_error_dropped() -> Iterator[None]:
    """Drops the output of native code, too."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def tensorflow_ways(work: Work) -> dict[str, Epoch]:
    """Returns the configurations that TensorFlow's guides recommend. tfrfast is compared with the
    fastest.
    """
    return {way: tensorflow_way(work, way) for way in TENSORFLOW_WAYS}


def tensorflow_way(work: Work, way: str, threads: int | None = None) -> Epoch:
    """Returns TensorFlow's pipeline. `way` decides whether files are interleaved."""
    tf = import_tensorflow()
    auto = tf.data.AUTOTUNE
    if work.mixed:
        sources = [_tensorflow_records(each, True, way).repeat() for each in work.mixed]
        total = sum(each.weight for each in work.mixed)
        weights = [float(each.weight / total) for each in work.mixed]
        dataset = tf.data.Dataset.sample_from_datasets(sources, weights).take(work.records)
    else:
        dataset = _tensorflow_records(work, work.shuffled, way)
    dataset = dataset.batch(work.batch_size)
    if work.features is not None:
        specs = tensorflow_features(work.features)
        dataset = dataset.map(
            lambda records: tf.io.parse_example(records, specs), num_parallel_calls=auto
        )
    return epochs_of(dataset.prefetch(auto), threads)


def _tensorflow_records(work: Work | Weighed, shuffled: bool, way: str) -> Any:
    tf = import_tensorflow()
    files = _names_for_tensorflow(work)
    if way == "interleave":
        names = tf.data.Dataset.from_tensor_slices(files)
        if shuffled:
            names = names.shuffle(len(files))
        dataset = names.interleave(
            lambda name: tf.data.TFRecordDataset(name, work.compression),
            cycle_length=min(_FILES_AT_ONCE, len(files)),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=False,
        )
    else:
        dataset = tf.data.TFRecordDataset(files, work.compression)
    return dataset.shuffle(WINDOW) if shuffled else dataset


def _names_for_tensorflow(work: Work | Weighed) -> list[bytes]:
    return [os.fsencode(name) for name in work.files]  # they may not be UTF-8


def dataset_way(work: Work, threads: int | None = None) -> Epoch:
    """Returns TensorFlow's pipeline with the drop-in dataset and its method `parse_example`."""
    tf = import_tensorflow()
    from tfrfast.tensorflow import TFRecordDataset

    dataset = TFRecordDataset(_names_for_tensorflow(work), work.compression)
    if work.shuffled:
        dataset = dataset.shuffle(WINDOW)
    dataset = dataset.batch(work.batch_size)
    if work.features is not None:
        dataset = dataset.parse_example(work.features)
    return epochs_of(dataset.prefetch(tf.data.AUTOTUNE), threads)


def loader_dataset_way(work: Work, data: Reader | Mixture) -> Epoch:
    """A Loader's batches as a dataset."""
    loader = _loader(work, data, None)
    return lambda: loader.to_tf_dataset()


def loader_way(work: Work, data: Reader | Mixture, threads: int | None = None) -> Epoch:
    """Returns batches for NumPy. Each epoch makes a new loader, which has read nothing ahead."""

    def start() -> Iterable[Any]:
        loader = _loader(work, data, threads)
        yield from loader
        loader.close()

    return start


def _loader(work: Work, data: Reader | Mixture, threads: int | None) -> Any:
    options: dict[str, Any] = {} if work.mixed else {"shuffle": work.shuffled}
    return Loader(data, work.batch_size, features=work.features, threads=threads, **options)


def epochs_of(dataset: Any, threads: int | None) -> Epoch:
    if threads is not None:
        options = import_tensorflow().data.Options()
        options.threading.private_threadpool_size = threads
        dataset = dataset.with_options(options)
    return lambda: dataset


def tensorflow_features(features: Features) -> dict[str, Any]:
    """Returns the same features as specs of tf.io."""
    tf = import_tensorflow()
    kinds = {"int64": tf.int64, "float32": tf.float32, "bytes": tf.string}
    made = {}
    for name, spec in features.items():
        if isinstance(spec, FixedLen):
            made[name] = tf.io.FixedLenFeature(spec.shape, kinds[spec.dtype], spec.default)
        elif isinstance(spec, VarLen):
            made[name] = tf.io.RaggedFeature(kinds[spec.dtype], row_splits_dtype=tf.int64)
        else:
            raise TypeError(f"{name!r}: {spec!r} has no counterpart here.")
    return made
