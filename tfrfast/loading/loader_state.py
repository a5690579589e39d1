"""A Loader's place, as a dict from which a later Loader continues."""

from __future__ import annotations

from typing import Any

__all__ = ["check_loader_state", "loader_state"]

_FORMAT = "tfrfast.Loader"
_VERSION = 1


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
    missing = [key for key in mine if key not in state]
    if missing:
        raise ValueError(f"Not a Loader state: missing {', '.join(map(repr, missing))}.")
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
