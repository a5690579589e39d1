"""Who is measured: ours, TensorFlow in its best and its usual configurations, and what else is
installed of benchmarks/requirements.txt, each as its own documentation tunes it."""

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
from tfrfast import _native
from tfrfast._bench.pipelines import (
    TENSORFLOW_WAYS,
    WINDOW,
    Epoch,
    Work,
    dataset_way,
    loader_way,
    tensorflow_usual_way,
    tensorflow_way,
)

LOADER, DATASET = "tfr.Loader", "tfr.TFRecordDataset"
OURS = (LOADER, DATASET)
_COPIED_BYTES = 500 << 20  # of the data, into an ArrayRecord
_KINDS = {"int64": "int", "float32": "float", "bytes": "byte"}

Builder = Callable[[], Epoch]


def contenders(case: Case, scratch: Path) -> dict[str, Builder]:
    """A builder for each that can do this; `scratch` is for copies and indexes in other formats."""
    work, threads = case.work, case.threads
    found: dict[str, Builder] = {LOADER: lambda: loader_way(work, tfr.Reader(work.files), threads)}
    if _installed("tensorflow"):
        found[DATASET] = lambda: dataset_way(work, threads)
        for way in TENSORFLOW_WAYS:
            found[f"TensorFlow, {way}"] = _tensorflow(work, way, threads)
    if case.cold:
        return found
    if _installed("tensorflow"):
        found["TensorFlow, usual"] = lambda: tensorflow_usual_way(work, threads)
    if case.decoded and _installed("nvidia.dali"):
        found["NVIDIA DALI on CPU"] = lambda: _dali(case.data, work, threads, scratch)
    if threads is None and _installed("tfrecord"):
        found["tfrecord (PyPI)"] = lambda: _tfrecord(work)
    if threads is None and not case.decoded and _installed("array_record"):
        path = str(scratch / f"{case.data}.array_record")
        found["ArrayRecord"] = lambda: _array_record(work, path)
        # It reads record by record, 100 small ones a second here: a turn would take minutes.
        if _installed("grain") and case.data != "ctr":
            found["ArrayRecord with Grain"] = lambda: _grain(work, path)
    return found


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _tensorflow(work: Work, way: str, threads: int | None) -> Builder:
    return lambda: tensorflow_way(work, way, threads)


def _dali(data: str, work: Work, threads: int | None, scratch: Path) -> Epoch:
    """Its CPU reader, through indexes that `tfrfast index --export-text` writes. Checks no CRC."""
    from nvidia.dali import fn, pipeline_def
    from nvidia.dali import tfrecord as kinds

    indexes = [str(scratch / f"{data}-{os.path.basename(path)}.idx") for path in work.files]
    for path, index in zip(work.files, indexes, strict=True):
        _native.export_text_index(os.fsencode(path), os.fsencode(index))
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
        # Its copy of Example's description cannot be loaded beside TensorFlow's, which is the same.
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


def _array_record(work: Work, path: str) -> Epoch:
    """Its random access, a batch a call, over a copy of the first records."""
    source = _array_record_source(work, path)
    count = len(source) // work.batch_size * work.batch_size
    order = np.random.default_rng(0).permutation(count) if work.shuffled else np.arange(count)
    batches = [each.tolist() for each in np.array_split(order, count // work.batch_size)]
    return lambda: map(source.__getitems__, batches)


def _grain(work: Work, path: str) -> Epoch:
    import grain

    dataset = grain.MapDataset.source(_array_record_source(work, path))
    if work.shuffled:
        dataset = dataset.shuffle(seed=0)
    # Its default of 16 threads get in each other's way on few processors.
    threads = min(16, os.cpu_count() or 1)
    options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=500)
    batched = dataset.to_iter_dataset(options).batch(work.batch_size, batch_fn=list)
    return lambda: iter(batched)


def _array_record_source(work: Work, path: str) -> Any:
    from array_record.python.array_record_data_source import ArrayRecordDataSource
    from array_record.python.array_record_module import ArrayRecordWriter

    if not os.path.exists(path):
        writer = ArrayRecordWriter(path + ".part", "group_size:1")
        copied = 0
        with tfr.Reader(work.files) as reader:
            for record in reader:
                writer.write(record)
                copied += len(record)
                if copied > _COPIED_BYTES:
                    break
        writer.close()
        os.rename(path + ".part", path)
    return ArrayRecordDataSource(path)


def _fixed(work: Work) -> dict[str, tfr.FixedLen]:
    """The features of the three shapes are all of this kind."""
    return {
        name: spec for name, spec in (work.features or {}).items() if isinstance(spec, tfr.FixedLen)
    }
