"""Settles the lengths and the features of a batching for a Loader's records."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrfast.example.parsing import parse_example
from tfrfast.features import VarLen
from tfrfast.features.compiled import CompiledFeatures
from tfrfast.features.inference import RECORDS_TO_INFER
from tfrfast.features.specs import understand
from tfrfast.loading.lengths import counted
from tfrfast.loading.planned_features import planned_sample
from tfrfast.order import Batching, Order, Packed
from tfrfast.order.counted import CountedBatching
from tfrfast.reader import Reader

__all__ = ["packed_features", "settled_batching"]


def settled_batching(
    batching: Batching, reader: Reader, order: Order, compiled: CompiledFeatures | None
) -> Any:
    """Returns the batching with counted lengths and, of a Packed, with the features to pack."""
    if not isinstance(batching, Packed):
        names = batching._names_to_count() if isinstance(batching, CountedBatching) else ()
        if names and compiled is not None and compiled.is_of_message:
            raise ValueError(
                f"Lengths of {names[0]!r} are counted in Examples alone, and these features are of "
                "another message. Give the lengths as an array."
            )
        return counted(batching, reader)
    if compiled is None:
        raise TypeError("Packed puts decoded values into rows: give features=.")
    counted_names = batching._counted()
    for name in counted_names if batching._features is None else sum(batching._features, ()):
        _check_packs(name, compiled)
    settled = counted(batching, reader)
    settled._check(len(reader))
    if settled._features is None:
        settled = settled._copy(_features=(_found(settled, reader, order, compiled),))
    _check_keys(settled, compiled)
    return settled


def packed_features(compiled: CompiledFeatures, batching: Packed) -> CompiledFeatures:
    """Returns features of which some are packed, as a settled Packed says."""
    assert batching._features is not None
    return compiled.packed(batching._features, batching._budgets, batching.keys)


def _check_packs(name: str, compiled: CompiledFeatures) -> None:
    slot = compiled.slots.get(name)
    if slot is None or name not in compiled.specs:
        raise ValueError(f"Feature {name!r} is to be packed, but is not among the features.")
    if not _can_pack(name, compiled):
        raise ValueError(
            f"Feature {name!r} is to be packed, so ask for numbers as tfr.VarLen, and make no "
            "other column from it."
        )


def _check_keys(batching: Packed, compiled: CompiledFeatures) -> None:
    assert batching._features is not None
    taken = set(compiled.specs)
    for name in sum(batching._features, ()):
        for key in batching.keys:
            column = key.format(name)
            if column in taken:
                raise ValueError(
                    f"Two columns would have the name {column!r}, one of them the facts of packed "
                    f"feature {name!r}. Give other names by keys=."
                )
            taken.add(column)


def _can_pack(name: str, compiled: CompiledFeatures) -> bool:
    slot = compiled.slots.get(name)
    if slot is None or name not in compiled.specs:
        return False
    spec = understand(name, compiled.specs[name])
    if not isinstance(spec, VarLen) or spec.partitions or spec.key not in (None, name):
        return False
    alone = compiled.wanted[name] == 1
    return alone and slot.layout == "ragged" and slot.type not in ("bytes", "raw", "image")


def _found(
    batching: Packed, reader: Reader, order: Order, compiled: CompiledFeatures
) -> tuple[str, ...]:
    """Returns the features that have the counted length in each record of a sample."""
    known = batching._counted()
    able = [name for name in compiled.specs if _can_pack(name, compiled)]
    sample = planned_sample(reader, order, RECORDS_TO_INFER)
    if sample.records and set(able) - set(known):
        lengths = batching._tables[0].lengths()[sample.numbers]
        columns = parse_example(sample.records, {name: compiled.specs[name] for name in able})
        able = [
            name
            for name in able
            if name in known or np.array_equal(np.diff(columns[name].row_splits), lengths)
        ]
    if not able:
        raise ValueError(
            "No feature has the counted lengths. Give features=, with numbers as tfr.VarLen, and "
            'name the features that are packed, as in lengths=["ids"].'
        )
    return tuple(able)
