"""Finds names that no record has, and the names that were probably meant."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Sequence

from tfrfast._native import Survey
from tfrfast.base.warning import warn
from tfrfast.errors import FeatureError
from tfrfast.features.compiled import CompiledFeatures
from tfrfast.features.sources import Look

__all__ = ["check_names", "explained", "names_in", "not_found", "what_was_meant"]

_RECORDS_TO_CHECK = 32
_NAMES_SHOWN = 10
_NAMES_COMPARED = 20  # each is compared with all others, which is slow for thousands


def check_names(compiled: CompiledFeatures, look: Look) -> None:
    """Raises FeatureError for a required feature that no record has, and warns of other features
    that may be misspelled. Examines one record, and more only if the first record lacks a feature.
    """
    if compiled.is_of_message:
        return  # the descriptor has all names
    sample = look(1)
    missing = compiled.slots.keys() - names_in(sample.records)
    if not missing or not sample.records:
        return
    sample = look(_RECORDS_TO_CHECK)
    seen = names_in(sample.records)
    if not seen:
        return  # not readable as Examples, which is an error at the read
    missing -= seen
    asked = compiled.slots.keys()
    if required := sorted(name for name in missing if compiled.requires(name)):
        raise FeatureError(not_found(required, seen, asked, len(sample.records)))
    for name in sorted(missing)[:_NAMES_COMPARED]:
        if near := _nearest(name, seen - asked, 0.75):
            warn(
                f"None of the {len(sample.records)} examined records has the feature "
                f"{name!r}, so its rows would be empty, or its default.{_meant(near)}"
            )


def explained(error: FeatureError, compiled: CompiledFeatures, record: bytes) -> FeatureError:
    """Returns the same error. If a required feature is missing, adds the most similar names."""
    names = names_in([record])
    missing = [name for name in compiled.slots.keys() - names if compiled.requires(name)]
    if "is required but could not be found" not in str(error) or not missing:
        return error
    near = [each for name in missing for each in _nearest(name, names - compiled.slots.keys(), 0.6)]
    message = f"{error}{_meant(near)} It has {_listed(sorted(names), ', ') or 'no features'}."
    return FeatureError(message, path=error.path, record=error.record, offset=error.offset)


def names_in(records: Iterable[bytes]) -> set[str]:
    """Returns the features of some Examples."""
    names: set[str] = set()
    for record in records:
        with contextlib.suppress(FeatureError):
            survey = Survey(examples_alone=False)
            survey.add([record], [0])
            names.update(name.decode(errors="replace") for name, *_ in survey.features())
    return names


def what_was_meant(name: str, known: Collection[str], whose: str) -> str:
    """Returns the end of an error: the most similar names, and all names."""
    near, names = _nearest(name, known, 0.6), _listed(sorted(known), ", ")
    return f"{_meant(near)} {whose} have {names or 'no features'}."


def not_found(
    missing: Collection[str], known: Collection[str], asked: Collection[str], looked_at: int
) -> str:
    parts = []
    for name in missing:
        near = _nearest(name, set(known) - set(asked), 0.6)
        parts.append(
            f"Feature {name!r} is required, but none of the {looked_at} examined records has it."
            f"{_meant(near)}"
        )
    return f"{' '.join(parts)} They have {_listed(sorted(known), ', ') or 'no features'}."


def _meant(near: Sequence[str]) -> str:
    return f" Did you mean {_listed(near, ' or ')}?" if near else ""


def _nearest(name: str, known: Collection[str], likeness: float) -> list[str]:
    """Returns names that `name` may stand for: similar as a whole, or in the part after a slash or
    dot.
    """
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
