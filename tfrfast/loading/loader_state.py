"""A Loader's place, as a dict from which a later Loader continues.

A state may come from anywhere, so nothing in it is trusted.
"""

from __future__ import annotations

import reprlib
from typing import Any

from tfrfast.base.arguments import epoch_number, integer

__all__ = ["check_loader_state", "loader_state", "weights_of_state"]

_FORMAT = "tfrfast.Loader"
_VERSION = 1
_LARGEST = 2**63 - 1


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
    if not isinstance(state, dict):
        raise TypeError(f"A Loader's state is a dict, not {type(state).__name__}.")
    missing = [key for key in mine if key not in state]
    if missing:
        raise ValueError(f"Not a Loader state: missing {', '.join(map(repr, missing))}.")
    for key, value in mine.items():
        if isinstance(value, str) and not isinstance(state[key], str):
            raise ValueError(f"Not a Loader state: its {key} is {reprlib.repr(state[key])}.")
    try:
        integer("version", state["version"], 0, _LARGEST)
        epoch_number(state["epoch"])
        integer("position", state["position"], 0, _LARGEST)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Not a Loader state: {error}") from None
    if state["format"] != _FORMAT:
        raise ValueError(f"Not a Loader state: its format is {state['format']!r}.")
    if state["version"] != _VERSION:
        raise ValueError(
            f"The state has version {state['version']}, and this tfrfast reads version {_VERSION}."
        )
    if state["order"] != mine["order"]:
        raise ValueError(
            f"The state is of the order {state['order']!r}, but this loader's is "
            f"{mine['order']!r}. Make the loader with the same arguments."
        )
    if state["data"] != mine["data"]:
        raise ValueError(
            f"The state is of data with fingerprint {state['data']}, but this loader's have "
            f"{mine['data']}: shards were added, removed, renamed, reordered or rewritten."
        )


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
