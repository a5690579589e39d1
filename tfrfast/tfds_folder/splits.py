"""Turns a split such as "train[:10%]+test" into ranges of records of whole splits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["RecordRange", "parts_of"]

_TERM = re.compile(r"(?P<name>[\w-]+)(?:\[(?P<slice>[^\[\]]*)\])?")
_BOUNDARY = re.compile(r"(?P<number>-?\d[\d_.]*)(?P<unit>%|shard)?")
_FORMS = '"train", "train[:10%]", "train[100:200]", "train[2shard]", or several joined by "+"'


class RecordRange(NamedTuple):
    """Consecutive records of a split."""

    name: str
    begin: int
    end: int


def parts_of(split: str, shard_lengths: Mapping[str, Sequence[int]]) -> list[RecordRange]:
    """Returns the parts that `split` names, in its order. `shard_lengths` holds the lengths of each
    split's shards.
    """
    parts = []
    for term in split.split("+"):
        match = _TERM.fullmatch(term.strip())
        if match is None:
            raise ValueError(f"split={split!r} is not understood. Write {_FORMS}.")
        name, selection = match["name"], match["slice"]
        if name == "all" and name not in shard_lengths:
            if selection is not None:
                raise ValueError(f"split={split!r}: all splits together cannot be sliced.")
            parts += [RecordRange(each, 0, sum(sizes)) for each, sizes in shard_lengths.items()]
        elif name not in shard_lengths:
            known = ", ".join(map(repr, shard_lengths))
            raise ValueError(f"split={split!r}: there is no split {name!r}, only {known}.")
        else:
            begin, end = _range_of(split, selection, shard_lengths[name])
            parts.append(RecordRange(name, begin, end))
    return parts


def _range_of(split: str, selection: str | None, sizes: Sequence[int]) -> tuple[int, int]:
    if selection is None:
        return 0, sum(sizes)
    texts = [text.strip() for text in selection.split(":")]
    matches = [_BOUNDARY.fullmatch(text) for text in texts]
    wrong = any(text and match is None for text, match in zip(texts, matches, strict=True))
    units = {match["unit"] or "" for match in matches if match}
    single = len(texts) == 1
    if wrong or not units or len(texts) > 2 or (single and units != {"shard"}):
        raise ValueError(f"split={split!r} is not understood. Write {_FORMS}.")
    if len(units) > 1:
        raise ValueError(f"split={split!r}: both ends of a slice must have the same unit.")
    unit = units.pop()
    numbers = [_number(split, match["number"], unit) if match else None for match in matches]
    if single:
        shard = numbers[0]
        assert isinstance(shard, int)
        count = len(sizes)
        if not -count <= shard < count:
            raise ValueError(f"split={split!r}: there are {count} shards.")
        return sum(sizes[: shard % count]), sum(sizes[: shard % count + 1])
    first, last = numbers
    begin = 0 if first is None else _position(split, first, unit, sizes)
    end = sum(sizes) if last is None else _position(split, last, unit, sizes)
    if end < begin:
        raise ValueError(f"split={split!r} ends before it begins: it is [{begin}:{end}].")
    return begin, end


def _number(split: str, text: str, unit: str) -> int | float:
    try:
        return float(text) if unit == "%" else int(text)
    except ValueError:
        raise ValueError(
            f"split={split!r}: {text!r} is not a number of {unit or 'records'}."
        ) from None


def _position(split: str, number: int | float, unit: str, sizes: Sequence[int]) -> int:
    """Returns the record number of a boundary. Negative numbers count from the end."""
    total = sum(sizes)
    whole = {"%": 100, "shard": len(sizes), "": total}[unit]
    if abs(number) > whole:
        what = {"%": "100%", "shard": f"{whole} shards", "": f"{whole} records"}[unit]
        raise ValueError(f"split={split!r}: {number}{unit} is outside the {what} of the split.")
    if unit == "shard":
        shard = int(number)
        return sum(sizes[: shard if shard >= 0 else len(sizes) + shard])
    # Halves round to the even number, as in TensorFlow Datasets.
    position = round(number * total / 100.0) if unit == "%" else int(number)
    return position + total if number < 0 else position
