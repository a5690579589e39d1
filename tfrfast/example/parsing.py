"""Parses serialized tf.train.Examples and SequenceExamples into columns, without TensorFlow."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from typing import cast

import numpy as np
import numpy.typing as npt

from tfrfast.base.arguments import UNLIMITED, integer
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.columns import Batch
from tfrfast.errors import FeatureError
from tfrfast.features import AnyFeatures, Features
from tfrfast.features.compiling import compile_once
from tfrfast.features.inference import (
    RECORDS_TO_INFER,
    Described,
    settle,
    specs_of,
    survey_all,
    survey_sample,
)
from tfrfast.features.names import check_names, explained
from tfrfast.features.sequences import compile_sequences
from tfrfast.features.sources import FlatRecords, Sample, Serialized, source_of
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths

__all__ = [
    "FlatRecords",
    "Serialized",
    "infer_features",
    "parse_example",
    "parse_rows",
    "parse_sequence_example",
]


@explains_arguments
def parse_example(serialized: Serialized, features: AnyFeatures) -> Batch:
    """Parses a batch of serialized Examples into the same values as `tf.io.parse_example`.

        batch = tfr.parse_example(records, {"label": tfr.FixedLen((), "int64")})
        batch["label"]                       # int64 array (batch,)

    `serialized` is a list of bytes or a RecordBatch. `features` is a dict of specs, a list of
    names, or "infer" for all features. Without specs, `infer_features` finds them in these records.

    Raises FeatureError, which names the record and the feature, if a record does not fit. Parsing
    runs without the GIL, and is fastest with the same dict of features in each call.
    """
    return parse_rows(serialized, features, None)


def parse_rows(
    serialized: Serialized, features: AnyFeatures, draws: npt.NDArray[np.uint64] | None
) -> Batch:
    """Like `parse_example`, with a random number for the images of each record of a RecordBatch."""
    source = source_of(serialized)
    if type(features) is not dict and not isinstance(features, Mapping):
        features = settle(features, source.first)
    compiled = compile_once(features)
    try:
        if draws is None or not isinstance(serialized, FlatRecords):
            native = source.parsed_by(compiled.parser)
        else:
            flat = serialized.data, serialized.offsets, source.indices
            native = compiled.parser.parse_drawn(*flat, draws)
    except FeatureError as error:
        if error.record is None:
            raise
        raise explained(error, compiled, source.record(error.record)) from None
    if not compiled.names_checked:
        compiled.names_checked = True
        check_names(compiled, source.first)
    return compiled.batch(native, source.indices, source.valid, source.source_starts)


@explains_arguments
def parse_sequence_example(
    serialized: Serialized,
    context_features: Features | None = None,
    sequence_features: Features | None = None,
) -> tuple[Batch, Batch, dict[str, npt.NDArray[np.int64]]]:
    """Parses a batch of serialized SequenceExamples, like `tf.io.parse_sequence_example`.

    Returns the context columns, the sequence columns, and the number of steps in each row for each
    FixedLenSequence. A sequence feature is a FixedLenSequence (an array `(batch, longest, *shape)`)
    or a VarLen (`Ragged` of `Ragged` steps, which partitions may divide further, or
    three-dimensional `Sparse`). Raises FeatureError if a record does not fit.

        context, steps, lengths = tfr.parse_sequence_example(
            records,
            context_features={"label": tfr.FixedLen((), "int64")},
            sequence_features={"frame": tfr.FixedLenSequence((128,), "float32")},
        )
        steps["frame"]                       # float32 array (batch, longest, 128)
        lengths["frame"]                     # int64 array (batch,)
    """
    context = {} if context_features is None else context_features
    sequences = {} if sequence_features is None else sequence_features
    compiled = compile_sequences(context, sequences)
    source = source_of(serialized)
    native = source.parsed_by(compiled.parser)
    context_columns, sequence_columns, lengths = compiled.assemble(native)
    rows = (source.indices, source.valid, source.source_starts)
    return Batch(context_columns, *rows), Batch(sequence_columns, *rows), lengths


@explains_arguments
def infer_features(
    source: Iterable[bytes] | Paths, sample: int | None = RECORDS_TO_INFER
) -> Described:
    """Describes the features of the first `sample` records of `source`, as a dict to start from.

        features = tfr.infer_features("data/train-*", sample=None)
        loader = tfr.Loader("data/train-*", 256, features=features)

    `source` is a Reader, a list of records, or a path, glob or list of shards. With `sample=None`
    the description fits all records, which are read once.

    A feature that every record has, with the same number of values, is FixedLen. A feature of a
    single value that some records lack is FixedLen with zero or b"" as its default. Any other
    feature is VarLen. Features without values in any record are left out. Raises FeatureError if a
    record is not an Example, or if a feature has different types in different records.
    """
    if sample is not None:
        sample = integer("sample", sample, 0, UNLIMITED)
    one = isinstance(source, (str, os.PathLike))
    if one or (isinstance(source, list) and source and isinstance(source[0], (str, os.PathLike))):
        with Reader(source) as reader:
            return infer_features(reader, sample)
    if isinstance(source, Reader):
        if sample is None:
            return specs_of(survey_all(source._core))
        batch = source.read(range(min(sample, len(source))))
        return specs_of(survey_sample(Sample(batch.tolist(), batch.indices.tolist(), source._core)))
    records = list(itertools.islice(cast("Iterable[bytes]", source), sample))
    return specs_of(survey_sample(Sample(records, range(len(records)))))
