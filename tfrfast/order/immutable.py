"""Objects that are compared by what they were made of, and cannot be changed."""

from __future__ import annotations

from typing import Any

__all__ = ["Immutable"]


class Immutable:
    """The base of orders, batchings and plans. `_settle` sets the attributes."""

    def _settle(self, **attributes: Any) -> None:
        vars(self).update(attributes)

    def _key(self) -> tuple[Any, ...]:
        """Returns what makes two objects of one class equal."""
        raise NotImplementedError

    def __setattr__(self, name: str, value: object) -> None:
        kind = type(self).__name__
        raise AttributeError(f"A {kind} cannot be changed; make another one with {name}={value!r}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"A {type(self).__name__} cannot be changed.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Immutable) or type(other) is not type(self):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())
