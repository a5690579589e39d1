"""TFRecord files as a random-access training format: indexed, verified, globally shuffled, fast."""

import importlib
from typing import TYPE_CHECKING

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
from tfrfast.writer import ShardedWriter, Writer

if TYPE_CHECKING:
    from tfrfast.tensorflow import TFRecordDataset as TFRecordDataset
    from tfrfast.tensorflow import explain as explain

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

# Names that need TensorFlow, and the module that each comes from when it is first used.
_ON_USE = {"TFRecordDataset": "tfrfast.tensorflow", "explain": "tfrfast.tensorflow"}


def __getattr__(name: str) -> object:
    if name in _ON_USE:
        return getattr(importlib.import_module(_ON_USE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
