"""Features of data sets whose records are episodes, such as RLDS, from features.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tfrfast.features import Features, FixedLen, VarLen
from tfrfast.steps.later import Later
from tfrfast.steps.one_of import OneOf
from tfrfast.steps.window import Window
from tfrfast.tfds_folder.features import Spec, specs_of

__all__ = ["along_of", "specs_of_steps", "steps_feature"]

_ROWS = "/ragged_row_lengths_0"


def steps_feature(described: dict[str, Any] | None) -> str:
    """Returns the name of the feature that holds the steps."""
    features = ((described or {}).get("featuresDict") or {}).get("features") or {}
    found = [
        name
        for name, feature in features.items()
        if "sequence" in feature
        and str(feature.get("pythonClassName", "")).endswith("dataset_feature.Dataset")
    ]
    if len(found) > 1 and "steps" in found:
        return "steps"
    if len(found) != 1:
        raise ValueError(
            "features.json describes no feature of steps, or several: use tfr.Steps(split.reader, "
            "along=...)."
        )
    return str(found[0])


def _inner(described: dict[str, Any], name: str) -> dict[str, Spec]:
    """Returns the specs of one step's features."""
    feature = described["featuresDict"]["features"][name]["sequence"]["feature"]
    return specs_of({"featuresDict": {"features": {name: feature}}})


def along_of(described: dict[str, Any], name: str) -> dict[str, int | None]:
    """Returns the number of values that one step has of each feature; None if the number varies or
    is unknown.
    """
    along: dict[str, int | None] = {}
    for key, spec in specs_of(described).items():
        if not key.startswith(name + "/") and key != name:
            continue
        inner = _inner(described, name)[key]
        if isinstance(spec, VarLen) and spec.key is not None:
            along[spec.key] = None
            along |= {str(part[1]): None for part in spec.partitions if part[0] == "row_lengths"}
        elif isinstance(inner, FixedLen):
            along[key] = 1 if inner.raw else math.prod(_shape(inner))
        else:
            along[key] = None
    return along


def specs_of_steps(
    described: dict[str, Any], name: str, windows: Mapping[str, Window | Later | OneOf]
) -> Features:
    """Returns the specs of a step's Example, for `parse_example`."""
    specs: dict[str, Any] = dict(specs_of(described))
    for key, inner in _inner(described, name).items():
        outer, window = specs[key], windows.get(key)
        is_ragged = isinstance(outer, VarLen) and outer.key is not None
        for later, goal in windows.items():
            if isinstance(goal, Later) and goal.of == key:
                specs |= {later: inner, f"{later}/valid": FixedLen((), "int64")}
        if not isinstance(window, Window):
            specs[key] = _without_rows(outer) if is_ragged else inner
            continue
        count = window.before + window.after + 1
        specs[f"{key}/valid"] = FixedLen((count,), "int64")
        if isinstance(inner, FixedLen) and not inner.raw:
            specs[key] = FixedLen((count, *_shape(inner)), inner.dtype)
        elif not is_ragged:
            specs[key] = VarLen("bytes" if isinstance(inner, FixedLen) else inner.dtype)
    for chosen, one_of in windows.items():
        if isinstance(one_of, OneOf):
            for part in ("", "/valid"):
                kinds = [specs.pop(each + part, None) for each in one_of.names]
                if kinds[0] is not None:
                    specs[chosen + part] = kinds[0]
    return specs


def _shape(spec: FixedLen) -> tuple[int, ...]:
    return (spec.shape,) if isinstance(spec.shape, int) else tuple(spec.shape)


def _without_rows(outer: VarLen) -> VarLen:
    """Returns the spec of one step, without the dimension of rows."""
    return replace(
        outer,
        partitions=tuple(part for part in outer.partitions if not str(part[1]).endswith(_ROWS)),
    )
