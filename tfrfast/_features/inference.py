"""Infers feature descriptions from records, and finds names that no record has."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfrfast._features.schema import CompiledFeatures, compile_features
from tfrfast._native import survey_examples
from tfrfast.errors import FeatureError, RecordError
from tfrfast.features import AnyFeatures, Features, FixedLen, VarLen

if TYPE_CHECKING:
    from tfrfast.plan import Plan
    from tfrfast.reader import Reader

__all__ = ["Look", "Sample", "check_names", "describe", "explained", "planned_features", "settle"]

RECORDS_TO_INFER = 1000
_RECORDS_TO_CHECK = 32
_PLACES = 8  # in the data set, from which the sample is taken
_MAX_SAMPLE_BYTES = 64 << 20
_NAMES_SHOWN = 10
_NAMES_COMPARED = 20  # each with all others, which is slow where there are thousands
_NO_VALUES = {"int64": 0, "float32": 0.0, "bytes": b""}


class Sample(NamedTuple):
    """Some records, and their numbers for error messages."""

    records: Sequence[bytes]
    numbers: Sequence[int]


# Returns about as many records as it is asked for.
Look = Callable[[int], Sample]


def describe(sample: Sample) -> dict[str, FixedLen | VarLen]:
    """Specs for what the records hold. FeatureError if a feature has different types in them."""
    features: dict[str, FixedLen | VarLen] = {}
    for name, kind, present, fewest, most in _survey(sample):
        if present == 0:
            continue
        dtype = {"string": "bytes", "float": "float32"}.get(kind, kind)
        if fewest != most or most == 0:
            features[name.decode()] = VarLen(dtype)
        elif present == len(sample.records):
            features[name.decode()] = FixedLen(() if most == 1 else (most,), dtype)
        elif most == 1:
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
    """A dict of specs, in whichever form the features were given."""
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
            raise TypeError(f"feature names are str, not {type(name).__name__}")
    sample = look(RECORDS_TO_INFER)
    if not sample.records:
        raise ValueError("Features cannot be inferred: there are no records. Give a dict of specs.")
    found = describe(sample)
    if names is None:
        return found
    if missing := [name for name in names if name not in found]:
        raise FeatureError(_not_found(missing, found, names, len(sample.records)))
    return {name: found[name] for name in names}


def check_names(compiled: CompiledFeatures, look: Look, *, stacklevel: int) -> None:
    """Raises FeatureError for a required feature that no record has, and warns of other features
    that may be misspelled. Examines one record, and more only if that one lacks a feature.
    """
    sample = look(1)
    missing = compiled.slots.keys() - _names_in(sample.records)
    if not missing or not sample.records:
        return
    sample = look(_RECORDS_TO_CHECK)
    seen = _names_in(sample.records)
    if not seen:
        return  # not readable as Examples, which is an error where they are read
    missing -= seen
    asked = compiled.slots.keys()
    if required := sorted(name for name in missing if compiled.requires(name)):
        raise FeatureError(_not_found(required, seen, asked, len(sample.records)))
    for name in sorted(missing)[:_NAMES_COMPARED]:
        if near := _nearest(name, seen - asked, 0.75):
            warnings.warn(
                f"None of the {len(sample.records)} records that were looked at has the feature "
                f"{name!r}, so its rows would be empty, or its default. Did you mean "
                f"{_listed(near, ' or ')}?",
                stacklevel=stacklevel,
            )


def explained(error: FeatureError, compiled: CompiledFeatures, record: bytes) -> FeatureError:
    """The same error. If the record lacks a required feature, it adds the most similar names."""
    names = _names_in([record])
    missing = [name for name in compiled.slots.keys() - names if compiled.requires(name)]
    if "is required but could not be found" not in str(error) or not missing:
        return error
    near = [each for name in missing for each in _nearest(name, names - compiled.slots.keys(), 0.6)]
    advice = f" Did you mean {_listed(near, ' or ')}?" if near else ""
    message = f"{error}{advice} It has {_listed(sorted(names), ', ') or 'no features'}."
    return FeatureError(message, path=error.path, record=error.record, offset=error.offset)


def planned_features(features: AnyFeatures | None, reader: Reader, plan: Plan) -> Features | None:
    """What a Loader decodes, as a dict that fits a sample of its plan's records. It is the same on
    every rank.
    """
    if features is None:
        return None

    def look(count: int) -> Sample:
        return _planned_sample(reader, plan, count)

    settled = settle(features, look)
    if isinstance(features, Mapping):
        check_names(compile_features(settled), look, stacklevel=4)
    return settled


def _planned_sample(reader: Reader, plan: Plan, count: int) -> Sample:
    """Readable records of the plan, from a few places only, so that they cost few seeks."""
    if count > _PLACES:
        first = _read(reader, _planned_numbers(plan, _PLACES))
        mean = sum(map(len, first.records)) // max(len(first.records), 1)
        count = max(_PLACES, min(count, _MAX_SAMPLE_BYTES // max(mean, 1)))
    return _read(reader, _planned_numbers(plan, count))


def _planned_numbers(plan: Plan, count: int) -> list[int]:
    positions = np.arange(plan.positions) if plan.positions <= count else None
    if positions is None:
        places = min(_PLACES, count)
        run = count // places
        starts = np.linspace(0, plan.positions - run, places).astype(np.int64)
        positions = (starts[:, None] + np.arange(run)).reshape(-1)
    numbers: list[int] = (positions if plan._chosen is None else plan._chosen[positions]).tolist()
    return numbers


def _read(reader: Reader, numbers: list[int]) -> Sample:
    """The readable records. A damaged one is an error at its place in the epoch, not here."""
    try:
        batch = reader.read(numbers)
        return Sample(batch.tolist(), batch.indices.tolist())
    except (RecordError, OSError):
        records, readable = [], []
        for number in numbers:
            with contextlib.suppress(RecordError, OSError):
                records.append(reader[number])
                readable.append(number)
        return Sample(records, readable)


def _names_in(records: Iterable[bytes]) -> set[str]:
    names: set[str] = set()
    for record in records:
        with contextlib.suppress(FeatureError):
            names.update(name.decode(errors="replace") for name, *_ in survey_examples([record]))
    return names


def _not_found(
    missing: Collection[str], known: Collection[str], asked: Collection[str], looked_at: int
) -> str:
    parts = []
    for name in missing:
        near = _nearest(name, set(known) - set(asked), 0.6)
        advice = f" Did you mean {_listed(near, ' or ')}?" if near else ""
        parts.append(
            f"Feature {name!r} is required, but none of the {looked_at} records that were looked "
            f"at has it.{advice}"
        )
    return f"{' '.join(parts)} They have {_listed(sorted(known), ', ') or 'no features'}."


def _nearest(name: str, known: Collection[str], likeness: float) -> list[str]:
    """Names that `name` may stand for: similar as a whole, or in the part after a slash or dot."""
    import difflib

    wholes: dict[str, list[str]] = {}
    ends: dict[str, list[str]] = {}
    for each in sorted(known):
        wholes.setdefault(each.lower(), []).append(each)
        ends.setdefault(_end_of(each), []).append(each)
    near = difflib.get_close_matches(name.lower(), wholes, 3, likeness)
    near_ends = difflib.get_close_matches(_end_of(name), ends, 3, likeness)
    found = [each for form in near for each in wholes[form]]
    found += [each for form in near_ends for each in ends[form]]
    return list(dict.fromkeys(found))[:3]


def _end_of(name: str) -> str:
    return re.split(r"[/.]", name.lower())[-1]


def _listed(names: Sequence[str], separator: str) -> str:
    shown = separator.join(map(repr, names[:_NAMES_SHOWN]))
    more = len(names) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
