"""A batch of tensors in the memory of the decoded columns."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, NamedTuple

import numpy as np
import torch

from tfrfast.columns import Array, Bytes, Column, Pictures, Sparse
from tfrfast.columns import Batch as Columns
from tfrfast.columns import Ragged as RaggedColumn

__all__ = ["Batch", "Ragged", "as_tensors", "on_tensors", "pinned", "tensors_of"]

_PACKING = ("segments", "positions", "starts", "pieces")


class Ragged(NamedTuple):
    """Rows of any length: row `i` is `values[offsets[i]:offsets[i + 1]]`.

    `values` is a tensor, a list of byte strings, or Ragged if rows hold rows.
    `torch.nn.functional.embedding_bag(..., include_last_offset=True)` takes this form, and
    `torch.nested.nested_tensor_from_jagged(*column)` makes a nested tensor without a copy.
    """

    values: Any
    offsets: torch.Tensor


class Batch(dict[str, Any]):
    """The columns of a batch by name, as tensors.

    Three tensors describe the rows: `indices` holds the record numbers, `valid` is False for rows
    of padding, and `sources` holds the number of each row's source in a Mixture. All three are None
    in a batch that a framework has put together from columns alone. `crops` says by feature how
    each `Image` was cut: a dict of int32 tensors, the fields of `tfr.Batch.crops`. `packing` holds
    the `segments`, `positions`, `starts` and `pieces` of a batch of a `Packed`, and is empty
    otherwise; the first two are attributes, too.
    """

    def __init__(
        self,
        columns: Any = (),
        indices: torch.Tensor | None = None,
        valid: torch.Tensor | None = None,
        sources: torch.Tensor | None = None,
        crops: dict[str, dict[str, torch.Tensor]] | None = None,
        packing: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(columns)
        self.indices = indices
        self.valid = valid
        self.sources = sources
        self.crops = {} if crops is None else crops
        self.packing = {} if packing is None else packing

    @property
    def segments(self) -> Any:
        """The number of each token's record in its row, from 1 on; 0 where nothing is."""
        return self.packing.get("segments")

    @property
    def positions(self) -> Any:
        """The number of each token in its record, from 0 on."""
        return self.packing.get("positions")

    def to(self, *device: Any, **options: Any) -> Batch:
        """Returns the batch with every tensor moved to a device, as by `torch.Tensor.to`."""
        moved: Batch = on_tensors(lambda tensor: tensor.to(*device, **options), self)
        return moved

    def pin_memory(self) -> Batch:
        """Returns the batch in page-locked memory, for asynchronous copies to a GPU."""
        batch: Batch = pinned(self)
        return batch


def tensors_of(batch: Any) -> Any:
    """Returns the tensors of a batch of columns. Other objects stay as they are."""
    return as_tensors(batch) if isinstance(batch, Columns) else batch


def as_tensors(batch: Columns) -> Batch:
    """Numbers share the columns' memory. Byte strings become lists of bytes, and pictures of any
    size lists of tensors.
    """
    columns = {name: _converted(name, column) for name, column in batch.items()}
    rows = [_tensor(each) for each in (batch.indices, batch.valid, batch.sources)]
    crops = {
        name: {field: _tensor(values) for field, values in each.items()}
        for name, each in batch.crops.items()
    }
    packing = {}
    if batch.segments is not None:
        facts = {name: getattr(batch, name) for name in _PACKING}
        packing = {
            name: {each: _tensor(values) for each, values in fact.items()}
            if isinstance(fact, dict)
            else _tensor(np.ascontiguousarray(fact))
            for name, fact in facts.items()
        }
    return Batch(columns, rows[0], rows[1], rows[2], crops, packing)


def _converted(name: str, column: Column) -> Any:
    if isinstance(column, Bytes):
        return column.tolist()
    if isinstance(column, Pictures):
        return [
            list(map(_tensor, row)) if isinstance(row, list) else _tensor(row) for row in column
        ]
    if isinstance(column, RaggedColumn):
        return Ragged(_converted(name, column.values), _tensor(column.row_splits))
    if isinstance(column, Sparse):
        if isinstance(column.values, Bytes):
            raise TypeError(
                f"Feature {name!r}: PyTorch has no sparse tensors of byte strings. Ask for it as "
                "tfr.VarLen."
            )
        places, values = _tensor(column.indices).T, _tensor(np.asarray(column.values))
        shape = column.dense_shape.tolist()
        return torch.sparse_coo_tensor(places, values, shape, check_invariants=True)
    return _tensor(column)


def _tensor(array: Array) -> torch.Tensor:
    # A tensor of a read-only array would make the array writable.
    array = array if array.flags.writeable else array.copy()
    if array.dtype.name == "bfloat16":  # which NumPy knows by another library
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def pinned(value: Any) -> Any:
    """Returns `value` with its dense tensors in page-locked memory, except tensors on another
    device.
    """
    return on_tensors(lambda tensor: tensor.pin_memory() if _pinnable(tensor) else tensor, value)


def _pinnable(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.device.type == "cpu"


def on_tensors(function: Callable[[torch.Tensor], Any], value: Any) -> Any:
    """Returns `value` with `function` applied to every tensor in its mappings, tuples and lists.

    Other objects stay as they are.
    """
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, Mapping):
        items = {key: on_tensors(function, each) for key, each in value.items()}
        if isinstance(value, Batch):
            rows = (value.indices, value.valid, value.sources, value.crops, value.packing)
            return Batch(items, *(on_tensors(function, each) for each in rows))
        if type(value) is dict or not isinstance(value, MutableMapping):
            return items
        same_kind = copy.copy(value)
        same_kind.update(items)
        return same_kind
    if isinstance(value, tuple):
        parts = [on_tensors(function, each) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list) and not (value and isinstance(value[0], bytes)):
        return [on_tensors(function, each) for each in value]
    return value
