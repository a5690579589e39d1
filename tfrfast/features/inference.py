"""Infers feature descriptions from records."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tfrfast import _native
from tfrfast.base.job_threads import JobThreads
from tfrfast.errors import FeatureError
from tfrfast.features import AnyFeatures, Features, FixedLen, VarLen
from tfrfast.features.names import not_found
from tfrfast.features.sources import Look, Sample

__all__ = [
    "NO_VALUES",
    "RECORDS_TO_INFER",
    "Described",
    "settle",
    "specs_of",
    "survey_all",
    "survey_sample",
]

#: Specs that were inferred from some records.
Described = dict[str, FixedLen | VarLen]

NO_VALUES = {"int64": 0, "float32": 0.0, "bytes": b""}
RECORDS_TO_INFER = 1000
_PARTS_PER_THREAD = 8


def survey_sample(sample: Sample, *, examples_alone: bool = True) -> _native.Survey:
    """Raises FeatureError if a record is not an Example, or a feature has different types. Without
    `examples_alone`, the context of a SequenceExample counts as an Example.
    """
    survey = _native.Survey(sample.reader, examples_alone=examples_alone)
    survey.add(sample.records, sample.numbers)
    return survey


def survey_all(reader: _native.Reader, threads: int | None = None) -> _native.Survey:
    """Like `survey_sample`, for all records of a reader."""
    threads = threads or _native.usable_processors()
    count = len(reader)
    size = max(1, -(-count // (_PARTS_PER_THREAD * threads)))

    def survey_from(begin: int) -> _native.Survey:
        part = _native.Survey(reader)
        part.read(begin, min(begin + size, count))
        return part

    all_records = _native.Survey(reader)
    with JobThreads(threads) as pool:
        for part in pool.map(survey_from, range(0, count, size)):
            all_records.add_later(part)
    return all_records


def specs_of(survey: _native.Survey) -> Described:
    """Returns specs for the features of all records of a survey."""
    features: Described = {}
    for name, kind, present, min_values, max_values in survey.features():
        if present == 0:
            continue
        try:
            text = name.decode()
        except UnicodeDecodeError:
            raise FeatureError(
                f"The records have a feature {name!r}, whose name is not UTF-8. Give a dict of "
                "specs for the other features."
            ) from None
        dtype = {"string": "bytes", "float": "float32"}.get(kind, kind)
        is_everywhere = present == survey.num_records
        if min_values != max_values or max_values == 0 or (max_values > 1 and not is_everywhere):
            features[text] = VarLen(dtype, inferred=True)
        else:
            shape = () if max_values == 1 else (max_values,)
            default = None if is_everywhere else NO_VALUES[dtype]
            features[text] = FixedLen(shape, dtype, default, inferred=True)
    return features


def settle(
    features: AnyFeatures, look: Look, survey: Callable[[], _native.Survey] | None = None
) -> Features:
    """Returns a dict of specs for features in any form. Those that it has to infer fit the records
    of `survey`, by default some of the records that `look` returns.
    """
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
    examined = survey_sample(look(RECORDS_TO_INFER)) if survey is None else survey()
    count = examined.num_records
    if not count:
        raise ValueError("Features cannot be inferred: there are no records. Give a dict of specs.")
    found = specs_of(examined)
    if names is None:
        if not found:
            raise FeatureError(f"None of the {count} examined records has features.")
        return found
    if missing := [name for name in names if name not in found]:
        raise FeatureError(not_found(missing, found, names, count))
    return {name: found[name] for name in names}
