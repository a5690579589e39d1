"""TFRecord files as a random-access training format: indexed, verified, globally shuffled, fast."""

import _thread
import importlib
import os

# Type checkers know the name. Importing typing would take most of the time of `import tfrfast`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from tfrfast._native import RecordBatch, crc32c, masked_crc32c
    from tfrfast.columns import Batch, Bytes, Ragged, Sparse
    from tfrfast.copying import Copied, copy
    from tfrfast.disk_cache import DiskCache
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
    from tfrfast.exporting import Exported, export
    from tfrfast.features import FixedLen, FixedLenSequence, SparseIndexed, VarLen
    from tfrfast.indexing import build_index
    from tfrfast.keys import Keyed, build_keys
    from tfrfast.loader import Loader, LoaderStats
    from tfrfast.order import (
        BlockShuffle,
        ByTokens,
        InOrder,
        Mixture,
        Permutation,
        Plan,
        Shuffle,
        Weighted,
    )
    from tfrfast.reader import Location, Reader, Shard, Skipped
    from tfrfast.record_writer import TFRecordWriter
    from tfrfast.scanning import Scan, scan
    from tfrfast.shuffling import Shuffled, shuffle
    from tfrfast.tensorflow import TFRecordDataset as TFRecordDataset
    from tfrfast.tensorflow import accelerate as accelerate
    from tfrfast.tensorflow import explain as explain
    from tfrfast.tensorflow import make_batched_features_dataset as make_batched_features_dataset
    from tfrfast.text_indexes import export_text_indexes, import_text_indexes
    from tfrfast.tfds_folder import TfdsSplit, tfds
    from tfrfast.verifying import Verified, verify
    from tfrfast.writer import ShardedWriter, Writer

__all__ = [
    "Batch",
    "BlockShuffle",
    "ByTokens",
    "Bytes",
    "Copied",
    "CorruptRecordError",
    "DiskCache",
    "Exported",
    "FeatureError",
    "FixedLen",
    "FixedLenSequence",
    "InOrder",
    "Keyed",
    "Loader",
    "LoaderStats",
    "Location",
    "Mixture",
    "Permutation",
    "Plan",
    "Ragged",
    "Reader",
    "RecordBatch",
    "RecordError",
    "Scan",
    "Shard",
    "ShardedWriter",
    "Shuffle",
    "Shuffled",
    "Skipped",
    "SlowPathWarning",
    "Sparse",
    "SparseIndexed",
    "StaleIndexError",
    "TFRecordWriter",
    "TfdsSplit",
    "TruncatedRecordError",
    "VarLen",
    "Verified",
    "Weighted",
    "Writer",
    "build_index",
    "build_keys",
    "copy",
    "crc32c",
    "encode_example",
    "encode_examples",
    "export",
    "export_text_indexes",
    "import_text_indexes",
    "infer_features",
    "masked_crc32c",
    "parse_example",
    "parse_sequence_example",
    "scan",
    "shuffle",
    "tfds",
    "verify",
]

__version__ = "0.1.0"

# Each name's module, which is imported when the name is first used. So `tfrfast --version` need not
# wait for NumPy, and only the last four names need TensorFlow.
_ON_USE = {
    "Batch": "tfrfast.columns",
    "BlockShuffle": "tfrfast.order",
    "ByTokens": "tfrfast.order",
    "Bytes": "tfrfast.columns",
    "Copied": "tfrfast.copying",
    "CorruptRecordError": "tfrfast.errors",
    "DiskCache": "tfrfast.disk_cache",
    "Exported": "tfrfast.exporting",
    "FeatureError": "tfrfast.errors",
    "FixedLen": "tfrfast.features",
    "FixedLenSequence": "tfrfast.features",
    "InOrder": "tfrfast.order",
    "Keyed": "tfrfast.keys",
    "Loader": "tfrfast.loader",
    "LoaderStats": "tfrfast.loader",
    "Location": "tfrfast.reader",
    "Mixture": "tfrfast.order",
    "Permutation": "tfrfast.order",
    "Plan": "tfrfast.order",
    "Ragged": "tfrfast.columns",
    "Reader": "tfrfast.reader",
    "RecordBatch": "tfrfast._native",
    "RecordError": "tfrfast.errors",
    "Scan": "tfrfast.scanning",
    "Shard": "tfrfast.reader",
    "ShardedWriter": "tfrfast.writer",
    "Shuffle": "tfrfast.order",
    "Shuffled": "tfrfast.shuffling",
    "Skipped": "tfrfast.reader",
    "SlowPathWarning": "tfrfast.errors",
    "Sparse": "tfrfast.columns",
    "SparseIndexed": "tfrfast.features",
    "StaleIndexError": "tfrfast.errors",
    "TFRecordWriter": "tfrfast.record_writer",
    "TfdsSplit": "tfrfast.tfds_folder",
    "TruncatedRecordError": "tfrfast.errors",
    "VarLen": "tfrfast.features",
    "Verified": "tfrfast.verifying",
    "Weighted": "tfrfast.order",
    "Writer": "tfrfast.writer",
    "build_index": "tfrfast.indexing",
    "build_keys": "tfrfast.keys",
    "copy": "tfrfast.copying",
    "crc32c": "tfrfast._native",
    "encode_example": "tfrfast.encoding",
    "encode_examples": "tfrfast.encoding",
    "export": "tfrfast.exporting",
    "export_text_indexes": "tfrfast.text_indexes",
    "import_text_indexes": "tfrfast.text_indexes",
    "infer_features": "tfrfast.example",
    "masked_crc32c": "tfrfast._native",
    "parse_example": "tfrfast.example",
    "parse_sequence_example": "tfrfast.example",
    "scan": "tfrfast.scanning",
    "shuffle": "tfrfast.shuffling",
    "tfds": "tfrfast.tfds_folder",
    "verify": "tfrfast.verifying",
    "TFRecordDataset": "tfrfast.tensorflow",
    "accelerate": "tfrfast.tensorflow",
    "explain": "tfrfast.tensorflow",
    "make_batched_features_dataset": "tfrfast.tensorflow",
}

# Held while a name's module is imported. A fork waits for it, because a child would wait forever
# for an import of a thread that it does not have. It does not wait longer than this: the import may
# need a lock that the forking thread has taken before.
_importing = _thread.RLock()
_MAX_WAIT_S = 30


def _release_after_fork() -> None:
    if _importing._is_owned():  # type: ignore[attr-defined]
        _importing.release()


def _release_in_child() -> None:
    _release_after_fork()
    if not _importing._is_owned():  # type: ignore[attr-defined]
        _importing._at_fork_reinit()  # type: ignore[attr-defined]


os.register_at_fork(
    before=lambda: _importing.acquire(timeout=_MAX_WAIT_S),
    after_in_parent=_release_after_fork,
    after_in_child=_release_in_child,
)


def __getattr__(name: str) -> object:
    if name in _ON_USE:
        with _importing:
            value: object = getattr(importlib.import_module(_ON_USE[name]), name)
        globals()[name] = value
        return value
    if f"tfrfast.{name}" in _ON_USE.values():
        try:
            with _importing:
                return importlib.import_module(f"tfrfast.{name}")
        except ModuleNotFoundError as error:
            if error.name != "tfrfast._native":
                raise
            raise ModuleNotFoundError(
                f"There is no native module beside {__file__}. If these are the sources, run "
                "Python in another folder, where it finds the installed tfrfast. To install it: "
                "pip install . in the folder of the sources.",
                name=error.name,
            ) from None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_USE})
