"""Parses serialized tf.train.Examples and SequenceExamples into columns, without TensorFlow."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from tfrfast._features.compiled import CompiledFeatures
from tfrfast._features.inference import describe, settle
from tfrfast._features.names import check_names, explained
from tfrfast._features.remembered import compile_once
from tfrfast._features.samples import Sample
from tfrfast._features.sequences import compile_sequences
from tfrfast.columns import Batch
from tfrfast.errors import FeatureError
from tfrfast.features import AnyFeatures, Features, FixedLen, VarLen
from tfrfast.reader import Reader

__all__ = [
    "FlatRecords",
    "Serialized",
    "infer_features",
    "parse_example",
    "parse_sequence_example",
]


@runtime_checkable
class FlatRecords(Protocol):
    """Records end to end in one array, as a RecordBatch holds them."""

    @property
    def data(self) -> npt.NDArray[np.uint8]: ...
    @property
    def offsets(self) -> npt.NDArray[np.int64]: ...


Serialized: TypeAlias = Iterable[bytes] | FlatRecords


def parse_example(serialized: Serialized, features: AnyFeatures) -> Batch:
    """Parses a batch of serialized Examples into the same values as `tf.io.parse_example`.

        batch = tfr.parse_example(records, {"label": tfr.FixedLen((), "int64")})
        batch["label"]                       # int64 array (batch,)

    `serialized` is a list of bytes or a RecordBatch. `features` is a dict of specs, a list of
    names, or "infer" for all features. Without specs, `infer_features` finds them in these records.

    Raises FeatureError if a record does not fit; it names the record and the feature. Parsing runs
    without the GIL. It is fastest when the same dict of features is used again.
    """
    source = source_of(serialized)
    if type(features) is not dict and not isinstance(features, Mapping):
        features = settle(features, functools.partial(_first, source))
    compiled = compile_once(features)
    try:
        if isinstance(source, Flat):
            native = compiled.parser.parse_flat(source.data, source.offsets, source.indices)
            indices, valid = source.indices, source.valid
        else:
            native = compiled.parser.parse(source)
            indices, valid = real_rows(len(source))
    except FeatureError as error:
        raise _explained(error, compiled, source) from None
    if not compiled.names_checked:
        compiled.names_checked = True
        check_names(compiled, functools.partial(_first, source), stacklevel=3)
    return Batch(compiled.assemble(native), indices, valid)


def _first(source: Flat | list[bytes], count: int) -> Sample:
    if not isinstance(source, Flat):
        return Sample(source[:count], range(count))
    bounds = itertools.pairwise(source.offsets[: count + 1].tolist())
    records = [source.data[start:end].tobytes() for start, end in bounds]
    return Sample(records, source.indices[:count].tolist())


def _explained(
    error: FeatureError, compiled: CompiledFeatures, source: Flat | list[bytes]
) -> FeatureError:
    """The error. If a name seems to be wrong, it also lists the names that the record has."""
    if error.record is None:
        return error
    if not isinstance(source, Flat):
        return explained(error, compiled, source[error.record])
    row = int(np.flatnonzero(source.indices == error.record)[0])
    start, end = source.offsets[row : row + 2].tolist()
    return explained(error, compiled, source.data[start:end].tobytes())


def parse_sequence_example(
    serialized: Serialized,
    context_features: Features | None = None,
    sequence_features: Features | None = None,
) -> tuple[Batch, Batch, dict[str, npt.NDArray[np.int64]]]:
    """Parses a batch of serialized SequenceExamples, as `tf.io.parse_sequence_example` does.

    Returns the context columns, the sequence columns, and the number of steps in each row for each
    FixedLenSequence. A sequence feature is a FixedLenSequence (an array `(batch, longest, *shape)`)
    or a VarLen (`Ragged` of `Ragged` steps, or three-dimensional `Sparse`). Raises FeatureError if
    a record does not fit.
    """
    context = {} if context_features is None else context_features
    sequences = {} if sequence_features is None else sequence_features
    compiled = compile_sequences(context, sequences)
    source = source_of(serialized)
    if isinstance(source, Flat):
        native = compiled.parser.parse_flat(source.data, source.offsets, source.indices)
        indices, valid = source.indices, source.valid
    else:
        native = compiled.parser.parse(source)
        indices, valid = real_rows(len(source))
    context_columns, sequence_columns, lengths = compiled.assemble(native)
    return Batch(context_columns, indices, valid), Batch(sequence_columns, indices, valid), lengths


def infer_features(
    source: Iterable[bytes] | str | os.PathLike[str], sample: int = 1000
) -> dict[str, FixedLen | VarLen]:
    """Describes the features of the first `sample` records of `source`, as a dict to start from.

        features = tfr.infer_features("data/train-*")
        loader = tfr.Loader("data/train-*", 256, features=features)

    `source` is a Reader, a list of records, or a path or glob of shards.

    A feature that every record has, with the same number of values, is FixedLen. A feature of a
    single value that some records lack is FixedLen with zero or b"" as its default. Any other is
    VarLen. Features that have no values in any record are left out. Raises FeatureError if a
    feature has different types in different records.
    """
    if isinstance(source, (str, os.PathLike)):
        with Reader(source) as reader:
            return infer_features(reader, sample)
    records = list(itertools.islice(source, sample))
    return describe(Sample(records, range(len(records))))


class Flat(NamedTuple):
    """Records end to end."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int64]
    valid: npt.NDArray[np.bool_]


def source_of(serialized: Serialized) -> Flat | list[bytes]:
    """The records in one of the two forms that the native parser takes."""
    if not isinstance(serialized, FlatRecords):
        if isinstance(serialized, (bytes, str)):
            raise TypeError("serialized records are a list of bytes; put a single one in a list")
        return list(serialized)
    count = len(serialized.offsets) - 1
    indices, valid = real_rows(count)
    indices = getattr(serialized, "indices", indices)
    valid = getattr(serialized, "valid", valid)
    return Flat(serialized.data, serialized.offsets, indices, valid)


def real_rows(count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The numbers and the validity of `count` records that have no numbers yet."""
    return np.arange(count, dtype=np.int64), np.ones(count, np.bool_)
