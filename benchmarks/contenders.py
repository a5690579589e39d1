"""The contenders: tfrfast, TensorFlow in its best and its usual configurations, and all installed
packages of benchmarks/requirements.txt, each tuned as its own documentation says.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import tfrfast as tfr
from benchmarks.cases import Case
from benchmarks.rates import Builder
from tfrfast.bench.pipelines import (
    TENSORFLOW_WAYS,
    WINDOW,
    Epoch,
    Work,
    dataset_way,
    epochs_of,
    import_tensorflow,
    loader_way,
    tensorflow_features,
    tensorflow_way,
)

LOADER, DATASET = "tfr.Loader", "tfr.TFRecordDataset"
OURS = (LOADER, DATASET)
# The usual pipeline, with tfrfast's class and with TensorFlow's.
USUAL_DATASET, USUAL_TENSORFLOW = "tfr.TFRecordDataset, usual", "TensorFlow, usual"
_KINDS = {"int64": "int", "float32": "float", "bytes": "byte"}

_WorkBuilder = Callable[[Work], Epoch]


def contenders(case: Case, scratch: Path) -> dict[str, Builder]:
    """Returns a builder for each contender that can do `case`. Copies and indexes in other formats
    go to `scratch`.
    """
    threads = case.threads
    found: dict[str, _WorkBuilder] = {
        LOADER: lambda work: loader_way(work, tfr.Reader(work.files), threads)
    }
    if _installed("tensorflow"):
        found[DATASET] = lambda work: dataset_way(work, threads)
        for way in TENSORFLOW_WAYS:
            found[f"TensorFlow, {way}"] = _tensorflow(way, threads)
    if not case.cold:
        found |= _others(case, scratch)
    return {name: _for_files(build, case.work) for name, build in found.items()}


def _others(case: Case, scratch: Path) -> dict[str, _WorkBuilder]:
    """The contenders that are measured only warm."""
    threads = case.threads
    found: dict[str, _WorkBuilder] = {}
    if _installed("tensorflow"):
        found[USUAL_DATASET] = lambda work: dataset_usual_way(work, threads)
        found[USUAL_TENSORFLOW] = lambda work: tensorflow_usual_way(work, threads)
    if case.compression:
        return found
    if case.decoded and _installed("nvidia.dali"):
        found["NVIDIA DALI on CPU"] = lambda work: _dali(case.data, work, threads, scratch)
    if threads is None and _installed("tfrecord"):
        found["tfrecord (PyPI)"] = _tfrecord
    if threads is None and not case.decoded and _installed("array_record"):
        found["ArrayRecord"] = lambda work: _array_record(work, scratch / case.data)
        # Grain reads record by record, 100 small records a second here. A turn would take minutes.
        if _installed("grain") and case.data != "ctr":
            found["ArrayRecord with Grain"] = lambda work: _grain(work, scratch / case.data)
    return found


def _for_files(build: _WorkBuilder, work: Work) -> Builder:
    return lambda files: build(work._replace(files=files))


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _tensorflow(way: str, threads: int | None) -> _WorkBuilder:
    return lambda work: tensorflow_way(work, way, threads)


def _dali(data: str, work: Work, threads: int | None, scratch: Path) -> Epoch:
    """DALI's CPU reader, with indexes as docs/dali.md writes them. Checks no CRC."""
    from nvidia.dali import fn, pipeline_def
    from nvidia.dali import tfrecord as kinds

    indexes = [str(scratch / f"{data}-{os.path.basename(path)}.idx") for path in work.files]
    for path, index in zip(work.files, indexes, strict=True):
        with tfr.Reader(path) as reader, open(index, "w", encoding="ascii") as text:
            places = map(reader.locate, range(len(reader)))
            text.writelines(f"{place.offset} {place.length + 16}\n" for place in places)
    kind_of = {
        "int64": (kinds.int64, 0),
        "float32": (kinds.float32, 0.0),
        "bytes": (kinds.string, ""),
    }
    features = {
        name: kinds.FixedLenFeature(list(spec.shape), *kind_of[spec.dtype])
        for name, spec in _fixed(work).items()
    }

    @pipeline_def(
        batch_size=work.batch_size,
        num_threads=threads or os.cpu_count(),
        device_id=None,
        prefetch_queue_depth=4,
    )
    def pipeline() -> Any:
        columns = fn.readers.tfrecord(
            path=work.files,
            index_path=indexes,
            features=features,
            random_shuffle=work.shuffled,
            initial_fill=WINDOW if work.shuffled else 1024,
        )
        return tuple(columns[name] for name in features)

    built = pipeline()
    built.build()
    batches = len(tfr.Reader(work.files)) // work.batch_size
    return lambda: (built.run() for _ in range(batches))


def _tfrecord(work: Work) -> Epoch:
    if "tensorflow" in sys.modules:
        # TensorFlow's descriptor of Example equals tfrecord's, and only one of the two can be
        # loaded.
        sys.modules.setdefault("tfrecord.example_pb2", sys.modules["tensorflow"].train)
    from tfrecord.iterator_utils import shuffle_iterator
    from tfrecord.reader import tfrecord_iterator, tfrecord_loader

    def rows_of(path: str) -> Iterable[Any]:
        if work.features is None:
            return map(bytes, tfrecord_iterator(path))
        description = {name: _KINDS[spec.dtype] for name, spec in _fixed(work).items()}
        return tfrecord_loader(path, None, description)

    def start() -> Iterable[Any]:
        rows = itertools.chain.from_iterable(map(rows_of, work.files))
        if work.shuffled:
            rows = shuffle_iterator(rows, WINDOW)
        return iter(lambda: list(itertools.islice(rows, work.batch_size)), [])

    return start


def _array_record(work: Work, folder: Path) -> Epoch:
    """ArrayRecord's random access to a copy of the data, with one call for each batch."""
    source = _array_record_source(work, folder)
    count = len(source)
    order = np.random.default_rng(0).permutation(count) if work.shuffled else np.arange(count)
    numbers = order.tolist()
    batches = [numbers[at : at + work.batch_size] for at in range(0, count, work.batch_size)]
    return lambda: map(source.__getitems__, batches)


def _grain(work: Work, folder: Path) -> Epoch:
    import grain

    dataset = grain.MapDataset.source(_array_record_source(work, folder))
    if work.shuffled:
        dataset = dataset.shuffle(seed=0)
    # Grain's default of 16 threads is too many for few processors.
    threads = min(16, os.cpu_count() or 1)
    options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=500)
    batched = dataset.to_iter_dataset(options).batch(work.batch_size, batch_fn=list)
    return lambda: iter(batched)


def _array_record_source(work: Work, folder: Path) -> Any:
    """A data source over copies of the files. A copy is made when it is first needed."""
    from array_record.python.array_record_data_source import ArrayRecordDataSource
    from array_record.python.array_record_module import ArrayRecordWriter

    folder.mkdir(exist_ok=True)
    copies = []
    for path in work.files:
        copy = str(folder / (os.path.basename(path) + ".array_record"))
        if not os.path.exists(copy):
            writer = ArrayRecordWriter(copy + ".part", "group_size:1")
            with tfr.Reader(path) as reader:
                for record in reader:
                    writer.write(record)
            writer.close()
            os.rename(copy + ".part", copy)
        copies.append(copy)
    return ArrayRecordDataSource(copies)


def _fixed(work: Work) -> dict[str, tfr.FixedLen]:
    """Returns the specs. All features of the three shapes are FixedLen."""
    return {
        name: spec for name, spec in (work.features or {}).items() if isinstance(spec, tfr.FixedLen)
    }


def tensorflow_usual_way(work: Work, threads: int | None = None) -> Epoch:
    """Returns most programs' pipeline: AUTOTUNE reads files, and each record is parsed alone."""
    return _usual(import_tensorflow().data.TFRecordDataset, work, threads)


def dataset_usual_way(work: Work, threads: int | None = None) -> Epoch:
    """Returns the same pipeline with only the dataset's name changed."""
    return _usual(tfr.TFRecordDataset, work, threads)


def _usual(dataset_class: Any, work: Work, threads: int | None) -> Epoch:
    tf = import_tensorflow()
    auto = tf.data.AUTOTUNE
    dataset = dataset_class(work.files, work.compression, num_parallel_reads=auto)
    if work.shuffled:
        dataset = dataset.shuffle(WINDOW)
    if work.features is not None:
        specs = tensorflow_features(work.features)
        dataset = dataset.map(
            lambda record: tf.io.parse_single_example(record, specs), num_parallel_calls=auto
        )
    return epochs_of(dataset.batch(work.batch_size).prefetch(auto), threads)
