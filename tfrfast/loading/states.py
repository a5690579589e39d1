"""Checks that a state fits the object that loads the state."""

from __future__ import annotations

from typing import Any

__all__ = ["check_state"]


def check_state(what: str, state: dict[str, Any], mine: dict[str, Any], fixed: list[str]) -> None:
    """Raises ValueError unless `state` has all keys of `mine`, and equal values of `fixed` keys."""
    missing = [key for key in mine if key not in state]
    if missing:
        raise ValueError(f"Not a state of {what}: missing {', '.join(map(repr, missing))}.")
    for key in ("format", "version", *fixed):
        if state[key] != mine[key]:
            raise ValueError(
                f"The state does not fit this {what}: its {key} is {state[key]!r}, not "
                f"{mine[key]!r}. Make the {what} with the same arguments."
            )
