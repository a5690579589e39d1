"""Pairs the records of two data sets by hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["ENTRY", "IN_B", "WITHOUT_KEY", "Paired", "pair"]

#: A record: the hash of its key, or else of its content; the hashes of its content and of its
#: bytes; and its number, with the marks below.
ENTRY = np.dtype([("hash", "<u8"), ("content", "<u8"), ("bytes", "<u8"), ("number", "<u8")])
IN_B = 1 << 63
WITHOUT_KEY = 1 << 62
_NUMBER = np.uint64(WITHOUT_KEY - 1)

_Entries = npt.NDArray[Any]
_Numbers = npt.NDArray[np.int64]


class Paired(NamedTuple):
    same: int
    #: Of these, pairs with different bytes.
    rewritten: int
    #: The record in A and the record in B of each pair.
    changed: _Numbers
    only_a: _Numbers
    only_b: _Numbers
    #: Records whose key an earlier record of the same set has, in A and in B.
    duplicates: tuple[int, int]


def pair(entries: _Entries) -> Paired:
    """Pairs records of equal bytes first, then of equal content, then of equal keys.

    Entries are in order of their hash. Among equal hashes, those of A come first, and numbers
    ascend.
    """
    hashes, in_b = entries["hash"], _in_b(entries)
    repeats = (hashes[1:] == hashes[:-1]) & (in_b[1:] == in_b[:-1])
    repeats &= (entries["number"][1:] & np.uint64(WITHOUT_KEY)) == 0
    duplicates = int((repeats & ~in_b[1:]).sum()), int((repeats & in_b[1:]).sum())
    # Most records have an equal neighbour, and need no further sorting.
    equal = ~in_b[:-1] & in_b[1:]
    for field in ("hash", "content", "bytes"):
        equal &= entries[field][1:] == entries[field][:-1]
    same = int(equal.sum())
    is_left = np.ones(len(entries), np.bool_)
    is_left[1:] &= ~equal
    is_left[:-1] &= ~equal
    alike, _, left = _matched(entries[is_left], ("hash", "content", "bytes"))
    rewritten, _, left = _matched(left, ("hash", "content"))
    here, there, left = _matched(left, ("hash",))
    return Paired(
        same + len(alike) + len(rewritten),
        len(rewritten),
        np.stack([_numbers(here), _numbers(there)], axis=1),
        _numbers(left[~_in_b(left)]),
        _numbers(left[_in_b(left)]),
        duplicates,
    )


def _matched(entries: _Entries, fields: Sequence[str]) -> tuple[_Entries, _Entries, _Entries]:
    """Returns pairs of an entry of A and an entry of B with equal fields, and the other entries."""
    # Numbers come last, so those of A come first among equal fields.
    entries = entries[np.lexsort([entries[field] for field in ("number", *reversed(fields))])]
    if len(entries) == 0:
        return entries, entries, entries
    differs = np.zeros(len(entries) - 1, np.bool_)
    for field in fields:
        differs |= entries[field][1:] != entries[field][:-1]
    begins = np.concatenate([[0], np.flatnonzero(differs) + 1])
    sizes = np.diff(begins, append=len(entries))
    in_b = _in_b(entries)
    of_b = np.add.reduceat(in_b, begins, dtype=np.int64)
    place = np.arange(len(entries)) - np.repeat(begins, sizes)
    place[in_b] -= np.repeat(sizes - of_b, sizes)[in_b]
    is_matched = place < np.repeat(np.minimum(of_b, sizes - of_b), sizes)
    return entries[is_matched & ~in_b], entries[is_matched & in_b], entries[~is_matched]


def _in_b(entries: _Entries) -> npt.NDArray[np.bool_]:
    in_b: npt.NDArray[np.bool_] = entries["number"] >= np.uint64(IN_B)
    return in_b


def _numbers(entries: _Entries) -> _Numbers:
    numbers: _Numbers = (entries["number"] & _NUMBER).astype(np.int64)
    return numbers
