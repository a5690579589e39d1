"""TFRecord files as a random-access training format: indexed, verified, globally shuffled, fast."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfrfast._native import RecordBatch, crc32c, masked_crc32c
    from tfrfast.block_shuffle import BlockShuffle
    from tfrfast.columns import Batch, Bytes, Ragged, Sparse
    from tfrfast.encoding import encode_example, encode_examples
    from tfrfast.errors import (
        CorruptRecordError,
        FeatureError,
        RecordError,
        SlowPathWarning,
        StaleIndexError,
        TruncatedRecordError,
    )
    from tfrfast.example import infer_features, parse_example, parse_sequence_example
    from tfrfast.features import FixedLen, FixedLenSequence, SparseIndexed, VarLen
    from tfrfast.indexing import build_index
    from tfrfast.loader import Loader, LoaderStats
    from tfrfast.permutation import Permutation
    from tfrfast.plan import Plan
    from tfrfast.reader import Location, Reader, Shard, Skipped
    from tfrfast.record_writer import TFRecordWriter
    from tfrfast.shuffling import Shuffled, shuffle
    from tfrfast.tensorflow import TFRecordDataset as TFRecordDataset
    from tfrfast.tensorflow import explain as explain
    from tfrfast.tensorflow import make_batched_features_dataset as make_batched_features_dataset
    from tfrfast.writer import ShardedWriter, Writer

__all__ = [
    "Batch",
    "BlockShuffle",
    "Bytes",
    "CorruptRecordError",
    "FeatureError",
    "FixedLen",
    "FixedLenSequence",
    "Loader",
    "LoaderStats",
    "Location",
    "Permutation",
    "Plan",
    "Ragged",
    "Reader",
    "RecordBatch",
    "RecordError",
    "Shard",
    "ShardedWriter",
    "Shuffled",
    "Skipped",
    "SlowPathWarning",
    "Sparse",
    "SparseIndexed",
    "StaleIndexError",
    "TFRecordWriter",
    "TruncatedRecordError",
    "VarLen",
    "Writer",
    "build_index",
    "crc32c",
    "encode_example",
    "encode_examples",
    "infer_features",
    "masked_crc32c",
    "parse_example",
    "parse_sequence_example",
    "shuffle",
]

__version__ = "0.1.0"

# Each name's module, which is imported when the name is first used. So `tfrfast --version` need not
# wait for NumPy, and only the last two names need TensorFlow.
_ON_USE = {
    "Batch": "tfrfast.columns",
    "BlockShuffle": "tfrfast.block_shuffle",
    "Bytes": "tfrfast.columns",
    "CorruptRecordError": "tfrfast.errors",
    "FeatureError": "tfrfast.errors",
    "FixedLen": "tfrfast.features",
    "FixedLenSequence": "tfrfast.features",
    "Loader": "tfrfast.loader",
    "LoaderStats": "tfrfast.loader",
    "Location": "tfrfast.reader",
    "Permutation": "tfrfast.permutation",
    "Plan": "tfrfast.plan",
    "Ragged": "tfrfast.columns",
    "Reader": "tfrfast.reader",
    "RecordBatch": "tfrfast._native",
    "RecordError": "tfrfast.errors",
    "Shard": "tfrfast.reader",
    "ShardedWriter": "tfrfast.writer",
    "Shuffled": "tfrfast.shuffling",
    "Skipped": "tfrfast.reader",
    "SlowPathWarning": "tfrfast.errors",
    "Sparse": "tfrfast.columns",
    "SparseIndexed": "tfrfast.features",
    "StaleIndexError": "tfrfast.errors",
    "TFRecordWriter": "tfrfast.record_writer",
    "TruncatedRecordError": "tfrfast.errors",
    "VarLen": "tfrfast.features",
    "Writer": "tfrfast.writer",
    "build_index": "tfrfast.indexing",
    "crc32c": "tfrfast._native",
    "encode_example": "tfrfast.encoding",
    "encode_examples": "tfrfast.encoding",
    "infer_features": "tfrfast.example",
    "masked_crc32c": "tfrfast._native",
    "parse_example": "tfrfast.example",
    "parse_sequence_example": "tfrfast.example",
    "shuffle": "tfrfast.shuffling",
    "TFRecordDataset": "tfrfast.tensorflow",
    "explain": "tfrfast.tensorflow",
    "make_batched_features_dataset": "tfrfast.tensorflow",
}


def __getattr__(name: str) -> object:
    if name in _ON_USE:
        value: object = getattr(importlib.import_module(_ON_USE[name]), name)
        globals()[name] = value
        return value
    if f"tfrfast.{name}" in _ON_USE.values():
        return importlib.import_module(f"tfrfast.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_USE})
