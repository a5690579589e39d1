"""Batches and columns as pytrees, for `jax.tree.map` and `jax.jit`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from jax import tree_util

from tfrfast.columns import Batch, Bytes, Pictures, Ragged, Sparse

__all__ = ["register"]


def _batch_parts(batch: Batch) -> tuple[Iterable[tuple[Any, Any]], Any]:
    if batch._packed is not None:
        raise TypeError(
            "A batch of a Packed is no pytree, which would lose its segments and positions: take "
            "batch.as_dict(), or the dicts of tfrfast.jax.Loader."
        )
    columns = [(tree_util.DictKey(name), column) for name, column in batch.items()]
    names = ("indices", "valid", "crops")
    rows = [(tree_util.GetAttrKey(name), getattr(batch, name)) for name in names]
    return [*columns, *rows], (tuple(batch), tuple(batch.source_starts.tolist()))


def _batch_of(fixed: tuple[tuple[str, ...], tuple[int, ...]], parts: Iterable[Any]) -> Batch:
    names, starts = fixed
    *columns, indices, valid, crops = parts
    named = dict(zip(names, columns, strict=True))
    batch = Batch(named, indices, valid, np.array(starts, np.int64))
    batch.crops = crops  # JAX may fill trees with any objects
    return batch


def _register(kind: type, attributes: tuple[str, ...], fixed: tuple[str, ...] = ()) -> None:
    def parts(column: Any) -> tuple[Iterable[tuple[Any, Any]], Any]:
        children = [(tree_util.GetAttrKey(name), getattr(column, name)) for name in attributes]
        return children, tuple(getattr(column, name) for name in fixed)

    def column_of(values: Any, children: Iterable[Any]) -> Any:
        # Skips the class's checks, because JAX also fills trees with objects that are not arrays.
        column: Any = object.__new__(kind)
        for name, value in zip((*attributes, *fixed), (*children, *values), strict=True):
            setattr(column, name, value)
        return column

    tree_util.register_pytree_with_keys(kind, parts, column_of)


def register() -> None:
    """Registers the classes as pytrees. JAX allows one registration in a process."""
    tree_util.register_pytree_with_keys(Batch, _batch_parts, _batch_of)
    _register(Ragged, ("values", "row_splits"))
    _register(Pictures, ("values", "row_splits", "shapes"))
    _register(Sparse, ("indices", "values", "dense_shape"))
    _register(Bytes, ("data", "offsets"), ("shape",))
