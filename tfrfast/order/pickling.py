"""Pickles of orders, which only the same version of the order may open."""

from __future__ import annotations

from typing import Any

from tfrfast import _native


def rebuild(
    version: int, kind: type[Any], arguments: tuple[object, ...], options: dict[str, object]
) -> object:
    if version != _native.ORDER_VERSION:
        raise ValueError(
            f"This {kind.__name__} was pickled with version {version} of the order, and this "
            f"tfrfast has version {_native.ORDER_VERSION}: it would give other records. Use the "
            "tfrfast that made it."
        )
    return kind(*arguments, **options)
