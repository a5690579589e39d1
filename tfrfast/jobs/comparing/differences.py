"""What differs between two data sets, and its text."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfrfast._native import printable
from tfrfast.base.arguments import Int64Array
from tfrfast.base.sizes import counted
from tfrfast.base.tables import format_table, shortened, summary
from tfrfast.reader import Skipped

__all__ = ["ChangedFeature", "Differences"]

_FEATURES_SHOWN = 20
_RECORDS_SHOWN = 5


class ChangedFeature(NamedTuple):
    """A feature that differs, with the first changed record as an example."""

    name: str
    #: Changed records in which the feature differs.
    num_records: int
    record_a: int
    record_b: int
    #: The values in these records. None for a missing feature and for a feature list.
    values_a: list[Any] | None
    values_b: list[Any] | None


class Differences(NamedTuple):
    """The result of `tfr.diff`. `print` shows a summary."""

    #: The feature whose values pair records; None if records have no keys.
    key: str | None
    #: The numbers of records.
    num_a: int
    num_b: int
    #: Records of A with an equal record in B.
    same: int
    #: Of these, Examples that are written differently.
    rewritten: int
    #: The numbers of records with equal keys and other features: a row for each, in A and in B.
    changed: Int64Array
    #: The numbers of records that only one set has.
    only_a: Int64Array
    only_b: Int64Array
    #: The features that differ in `changed`, the most frequent first.
    features: list[ChangedFeature]
    #: Records of A and of B whose key an earlier record of the same set has.
    duplicates: tuple[int, int]
    #: Records of A and of B without the key, which are paired by content.
    without_key: tuple[int, int]
    #: The skipped damage in A and in B.
    skipped: tuple[list[Skipped], list[Skipped]]

    @property
    def is_same(self) -> bool:
        """True if each record has an equal record in the other set."""
        return len(self.changed) + len(self.only_a) + len(self.only_b) == 0

    def __repr__(self) -> str:
        return summary(self)

    def __str__(self) -> str:
        rewritten = f", {self.rewritten:,} of them written differently" if self.rewritten else ""
        lines = [
            f"records         {self.num_a:,} in A, {self.num_b:,} in B",
            f"the same        {self.same:,}{rewritten}",
            f"only in A       {_listed(self.only_a)}",
            f"only in B       {_listed(self.only_b)}",
        ]
        if self.key is not None:
            lines.insert(2, f"changed         {_listed(self.changed[:, 0])}")
            repeated, absent = self.duplicates, self.without_key
            if any(repeated):
                lines.append(f"duplicate keys  {repeated[0]:,} in A, {repeated[1]:,} in B")
            if any(absent):
                lines.append(f"without a key   {absent[0]:,} in A, {absent[1]:,} in B")
        elif len(self.only_a) and len(self.only_b):
            lines.append('With a key, changed records are told from new records: key="..."')
        if self.features:
            lines += ["", *format_table(_HEADER, map(_row, self.features[:_FEATURES_SHOWN]))]
            if (more := len(self.features) - _FEATURES_SHOWN) > 0:
                lines.append(f"and {counted(more, 'features')} more")
        return "\n".join(lines)


_HEADER = ("feature", "changed", "for example", "in A", "in B")


def _row(each: ChangedFeature) -> tuple[object, ...]:
    where = f"A's record {each.record_a}, B's {each.record_b}"
    return each.name, each.num_records, where, _shown(each.values_a), _shown(each.values_b)


def _shown(values: list[Any] | None) -> str:
    if values is None:
        return "-"
    return shortened(values[0] if len(values) == 1 else values)


def _listed(numbers: Int64Array) -> str:
    some = ", ".join(map(str, np.asarray(numbers[:_RECORDS_SHOWN]).tolist()))
    more = ", ..." if len(numbers) > _RECORDS_SHOWN else ""
    return printable(f"{len(numbers):,}" + (f" (records {some}{more})" if some else ""))
