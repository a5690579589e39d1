"""TFRecordDataset: tf.data's class, with planned calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from tfrfast.storage.disk_cache import DiskCache
from tfrfast.storage.remote.options import Storage
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.build.file_order import stream
from tfrfast.tensorflow.planned_dataset import PlannedDataset
from tfrfast.tensorflow.read.file_names import FileNames, file_names
from tfrfast.tensorflow.read.nodes import static_integer
from tfrfast.tensorflow.read.sources import (
    AskedRecords,
    Opening,
    note_opening,
    told_as,
    turns_of,
    why_judged,
)
from tfrfast.tensorflow.reasons import Refusal, warn_once, why_theirs
from tfrfast.tensorflow.source import Source

_IN_A_FUNCTION = "A TFRecordDataset in a function reads record by record"
_OUTSIDE = "TFRecordDataset(files) outside it, or tfr.accelerate() of the finished dataset"

OnCorruption = Literal["raise", "skip"]


class TFRecordDataset(PlannedDataset):
    """The records of TFRecord files: `tf.data.TFRecordDataset`, faster, in any exact order.

        records = tfr.TFRecordDataset(files).shuffle(1_000_000, seed=1)
        batches = records.batch(256).parse_example(features).prefetch(2)

    Raises the errors of TensorFlow's class.

    Args:
      filenames: a string, path or list of these, a string tensor, or a dataset of scalar strings.
        May be symbolic. A name that does not exist and has wildcards is a glob: "train-*".
      compression_type: "", "ZLIB" or "GZIP".
      buffer_size: accepted, and checked; files are mapped.
      num_parallel_reads: the number of interleaved files, in TensorFlow's order. For AUTOTUNE this
        process chooses the runtime's number. batch() builds missing indexes.
      name: for the dataset's operation.
      on_corruption: "raise", or "skip" to leave damaged records out.
      storage: options of s3://, gs://, az://, hf:// and https:// URLs, as for Reader. Graphs hold
        the options without secrets: in another process, the environment supplies the secrets.
      cache: a `tfrfast.DiskCache` that keeps bytes from URLs on this machine. Graphs hold its
        folder and its limit.
      decompressed_cache: a `tfrfast.DiskCache` that keeps the inflated bytes of compressed shards,
        as for Reader.
    """

    if not TYPE_CHECKING:  # the arguments are those of __init__()

        def __new__(cls, *arguments: Any, **options: Any) -> Any:
            if internals.missing():
                return _theirs_alone(*arguments, **options)
            return super().__new__(cls)

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
        *,
        on_corruption: OnCorruption = "raise",
        storage: Mapping[str, Any] | None = None,
        cache: DiskCache | None = None,
        decompressed_cache: DiskCache | None = None,
    ) -> None:
        if on_corruption not in ("raise", "skip"):
            raise ValueError(f'on_corruption is {on_corruption!r}, but must be "raise" or "skip".')
        skips = on_corruption == "skip"
        reached = Storage(storage, cache, decompressed_cache)
        names = file_names(filenames, name, reached)
        given = names.dataset, compression_type, buffer_size, num_parallel_reads, name
        compression = "" if compression_type is None else compression_type
        buffer_bytes = 0 if buffer_size is None else static_integer(buffer_size)
        is_usual = isinstance(compression, str) and not why_judged(compression, buffer_bytes)
        if not is_usual or names.has_scheme:
            if skips and names.has_scheme:
                raise ValueError(
                    'on_corruption="skip" needs files that tfrfast reads, but only TensorFlow can '
                    "read names with such a scheme."
                )
            # TensorFlow's class, even if tf.data.TFRecordDataset was replaced.
            instead = "names of files on a disk, or on storage that is mounted as a folder"
            why = Refusal(
                "only TensorFlow's own reader can read the files", instead * names.has_scheme
            )
            theirs = internals.TheirTFRecordDataset(*given)
            super().__init__(AskedRecords(theirs, names.dataset, None, why))
            return
        turns = turns_of(num_parallel_reads)
        if turns is not None and names.known is not None and len(names.known) < 2:
            turns = 1
        source = Source(names, skips, compression, reached, num_parallel_reads, turns)
        if not tf.executing_eagerly() and names.known is None:
            super().__init__(told_as(stream(source), f"{source.description}: streaming"))
        else:
            super().__init__(
                AskedRecords(_theirs(given, names, compression), names.dataset, source)
            )
        if not tf.executing_eagerly() and names.tensor is not None:
            note_opening(self, names.tensor, Opening(compression, skips))
            if names.known is None:
                reason = Refusal(names.why_unknown, _OUTSIDE)
                warn_once("function", _IN_A_FUNCTION, reason)


def _theirs(given: tuple[Any, ...], names: FileNames, compression: str) -> Any:
    """Returns the same records, read by TensorFlow."""
    has_options = internals.options_of(names.dataset) != tf.data.Options()
    if names.tensor is None or given[3] is not None or has_options:
        return internals.TheirTFRecordDataset(*given)
    # TensorFlow cannot write its TFRecordDatasetV2 into a graph.
    variant = tf.raw_ops.TFRecordDataset(
        filenames=names.tensor,
        compression_type=compression,
        buffer_size=tf.constant(internals.default_buffer_bytes, tf.int64),
    )
    return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.string))


def _theirs_alone(
    filenames: Any,
    compression_type: Any = None,
    buffer_size: Any = None,
    num_parallel_reads: Any = None,
    name: str | None = None,
    **options: Any,
) -> Any:
    """Returns TensorFlow's dataset, in a TensorFlow that lacks private names."""
    asked = [name for name, value in options.items() if value not in (None, "raise")]
    if asked:
        raise NotImplementedError(f"{asked[0]}= is not possible: {why_theirs().why}.")
    warn_once("names", "TensorFlow reads all datasets", why_theirs())
    return tf.data.TFRecordDataset(
        filenames, compression_type, buffer_size, num_parallel_reads, name=name
    )
