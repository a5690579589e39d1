"""Infers feature descriptions from records."""

from __future__ import annotations

from collections.abc import Mapping

from tfrfast._native import survey_examples
from tfrfast.errors import FeatureError
from tfrfast.features import AnyFeatures, Features, FixedLen, VarLen
from tfrfast.features.names import not_found
from tfrfast.features.samples import Look, Sample

__all__ = ["describe", "settle"]

_RECORDS_TO_INFER = 1000
_NO_VALUES = {"int64": 0, "float32": 0.0, "bytes": b""}


def describe(sample: Sample) -> dict[str, FixedLen | VarLen]:
    """Returns specs for the records' features. Raises FeatureError if a feature has different
    types.
    """
    features: dict[str, FixedLen | VarLen] = {}
    for name, kind, present, min_values, max_values in _survey(sample):
        if present == 0:
            continue
        dtype = {"string": "bytes", "float": "float32"}.get(kind, kind)
        if min_values != max_values or max_values == 0:
            features[name.decode()] = VarLen(dtype)
        elif present == len(sample.records):
            features[name.decode()] = FixedLen(() if max_values == 1 else (max_values,), dtype)
        elif max_values == 1:
            features[name.decode()] = FixedLen((), dtype, default=_NO_VALUES[dtype])
        else:
            features[name.decode()] = VarLen(dtype)
    return features


def _survey(sample: Sample) -> list[tuple[bytes, str, int, int, int]]:
    try:
        return survey_examples(sample.records)
    except FeatureError as error:
        if error.record is None or error.record == sample.numbers[error.record]:
            raise
        number = sample.numbers[error.record]
        message = str(error).replace(f" Record {error.record}.", f" Record {number}.")
        raise FeatureError(message, record=number) from None


def settle(features: AnyFeatures, look: Look) -> Features:
    """Returns a dict of specs for features in any form."""
    if isinstance(features, Mapping):
        return features
    if isinstance(features, str) and features != "infer":
        raise TypeError(
            f'features={features!r} is neither a dict of specs, nor a list of names, nor "infer". '
            f"A single name goes into a list: features=[{features!r}]."
        )
    names = None if isinstance(features, str) else list(features)
    for name in names or ():
        if not isinstance(name, str):
            raise TypeError(f"Feature names are str, not {type(name).__name__}.")
    sample = look(_RECORDS_TO_INFER)
    if not sample.records:
        raise ValueError("Features cannot be inferred: there are no records. Give a dict of specs.")
    found = describe(sample)
    if names is None:
        return found
    if missing := [name for name in names if name not in found]:
        raise FeatureError(not_found(missing, found, names, len(sample.records)))
    return {name: found[name] for name in names}
