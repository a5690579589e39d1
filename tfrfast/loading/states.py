"""A place, as a dict from which a later Loader, dataset or sampler continues.

A state may come from anywhere, so nothing in it is trusted.
"""

from __future__ import annotations

import re
import reprlib
from typing import Any, Literal, TypeAlias

import numpy as np

from tfrfast.base.arguments import epoch_number, integer
from tfrfast.order import Plan
from tfrfast.reader import Reader

__all__ = [
    "Appended",
    "before_append",
    "check_loader_state",
    "check_state",
    "loader_state",
    "weights_of_state",
]

#: What to do with shards that were appended after those of a state.
Appended: TypeAlias = Literal["refuse", "leave", "next epoch"]

_FORMAT = "tfrfast.Loader"
_VERSION = 1
_LARGEST = 2**63 - 1
_RECORDS = re.compile(r"(?<= records=)\d{1,18}")


def loader_state(fingerprint: int, order: str, epoch: int, position: int) -> dict[str, Any]:
    """Returns the state of a loader of the data with that fingerprint."""
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "data": f"{fingerprint:016x}",
        "order": order,
        "epoch": epoch,
        "position": position,
    }


def check_loader_state(state: dict[str, Any], mine: dict[str, Any]) -> None:
    """Raises ValueError, with the reason, if a loader with state `mine` cannot continue from
    `state`.
    """
    _check_form("Not a Loader state", state, mine)
    if state["format"] != _FORMAT:
        raise ValueError(f"Not a Loader state: its format is {state['format']!r}.")
    if state["version"] != _VERSION:
        raise ValueError(
            f"The state has version {state['version']}, and this tfrfast reads version {_VERSION}."
        )
    if state["order"] != mine["order"]:
        if said := _said_of_records(state["order"], mine["order"]):
            raise ValueError(
                f"{said}The old shards are not the first ones now, so the epoch of the state "
                "cannot go on."
            )
        raise ValueError(
            f"The state is of the order {state['order']!r}, but this loader's is "
            f"{mine['order']!r}. Make the loader with the same arguments."
        )
    if state["data"] != mine["data"]:
        raise ValueError(
            f"The state is of data with fingerprint {state['data']}, but this loader's have "
            f"{mine['data']}: shards were added, removed, renamed, reordered or rewritten."
        )


def before_append(state: dict[str, Any], reader: Reader, plan: Plan) -> tuple[Reader, Plan] | None:
    """Returns the reader and the plan of the first shards, if these are what the state is of."""
    data, order = map(state.get, ("data", "order")) if isinstance(state, dict) else (None, None)
    had = _records_of(order)
    plain = isinstance(plan.batching, int) and reader._parts is None and not reader._makes_records
    if had is None or not isinstance(data, str) or not plain or not 0 < had <= len(reader):
        return None
    if data == f"{reader._fingerprint:016x}":
        return None
    ends = np.cumsum([shard.num_records for shard in reader.shards[:-1]])
    for shard in np.flatnonzero(ends == had).tolist():
        options = {**reader._options, "progress": False}
        first = Reader(reader._absolute_paths()[: shard + 1], **options)
        if f"{first._fingerprint:016x}" == data:
            try:
                shorter = Plan(plan.order, plan.batching, num_records=len(first), **plan._share())
            except (ValueError, IndexError):  # chosen records, or weights, of all
                return None
            return (first, shorter) if shorter.order_text == order else None
    return None


def weights_of_state(state: dict[str, Any]) -> list[tuple[int, int, list[int]]]:
    """Returns the weights of a Mixture, each with its first epoch and position."""
    weights = state["weights"]
    try:
        segments = [
            (
                epoch_number(epoch),
                integer("position", position, 0, _LARGEST),
                [integer("weight", each, 0, _LARGEST) for each in each_source],
            )
            for epoch, position, each_source in weights
        ]
    except (TypeError, ValueError):
        segments = []
    if not segments:
        raise ValueError(f"Not a Loader state: its weights are {reprlib.repr(weights)}.")
    return segments


def check_state(what: str, state: dict[str, Any], mine: dict[str, Any], fixed: list[str]) -> None:
    """Raises ValueError unless `state` is like `mine`, with equal values of `fixed` keys."""
    _check_form(f"Not a state of {what}", state, mine)
    for key in ("format", "version", *fixed):
        if state[key] != mine[key]:
            said = _said_of_records(state.get("order"), mine.get("order"))
            raise ValueError(
                f"{said}The state does not fit this {what}: its {key} is {state[key]!r}, not "
                f"{mine[key]!r}. Make the {what} with the same arguments, and the same shards."
            )


def _check_form(what: str, state: dict[str, Any], mine: dict[str, Any]) -> None:
    """Raises unless `state` has the keys of `mine`, with texts and numbers that can be."""
    if not isinstance(state, dict):
        raise TypeError(f"{what}: it is no dict, but {type(state).__name__}.")
    missing = [key for key in mine if key not in state]
    if missing:
        raise ValueError(f"{what}: missing {', '.join(map(repr, missing))}.")
    for key, value in mine.items():
        if isinstance(value, str) and not isinstance(state[key], str):
            raise ValueError(f"{what}: its {key} is {reprlib.repr(state[key])}.")
    try:
        epoch_number(state["epoch"])
        for key in ("version", "position", "step"):
            if key in mine:
                integer(key, state[key], 0, _LARGEST)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what}: {error}") from None


def _records_of(order: object) -> int | None:
    """Returns the number of records in a plan's `order_text`."""
    found = _RECORDS.search(order) if isinstance(order, str) else None
    return None if found is None else int(found[0])


def _said_of_records(order: object, mine: object) -> str:
    """Returns a sentence if two orders differ only in the number of records, and "" otherwise."""
    had, has = _records_of(order), _records_of(mine)
    if had is None or has is None or had == has:
        return ""
    if _RECORDS.sub(str(had), str(mine)) != order:
        return ""
    return (
        f"The set had {had:,} records, and has {has:,}: shards were added, removed or rewritten. "
    )
