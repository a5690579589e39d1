"""Values of any kind as int64, float32 or byte strings, the only types of an Example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrfast.columns import Array, Bytes
from tfrfast.errors import FeatureError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["STRINGS", "flat_values", "is_nested", "join", "sequence_values", "unfit", "unmasked"]

STRINGS = (str, bytes, bytearray, memoryview)
_TOO_LARGE = "it has integers that do not fit int64, the only type of integers."


def sequence_values(name: str, items: Sequence[Any]) -> Array | Bytes:
    """Returns the values of a list, which may be nested."""
    if all(isinstance(item, STRINGS) for item in items) and len(items):
        return join(items)
    if any(isinstance(item, STRINGS) for item in items):
        raise unfit(name, "it mixes strings and other values.")  # NumPy would turn all into text
    if any(isinstance(item, (list, tuple, Bytes, np.ndarray)) for item in items):
        parts = [part for item in items if (part := _part(name, item)).size]
        if any(isinstance(part, Bytes) for part in parts):
            if not all(isinstance(part, Bytes) for part in parts):
                raise unfit(name, "it mixes strings and other values.")
            return join([string for part in parts for string in np.ravel(part).tolist()])
        return np.concatenate([np.asarray(part) for part in parts]) if parts else np.empty(0)
    try:
        array = np.asarray(items)
    except ValueError:
        array = np.concatenate([np.ravel(np.asarray(item)) for item in items])
    # NumPy makes floats of integers for which neither int64 nor uint64 is its common type.
    is_float = array.dtype.kind == "f" and array.size > 0
    if is_float and all(isinstance(item, (int, np.integer, np.bool_)) for item in items):
        array = np.asarray(items, object)
    return _whole(name, array) if array.dtype.kind == "O" else flat_values(name, array)


def _part(name: str, item: Any) -> Array | Bytes:
    """Returns the values of an item of a list."""
    if isinstance(item, Bytes):
        return item
    if isinstance(item, np.ndarray):
        return flat_values(name, unmasked(name, item))
    return sequence_values(name, item if isinstance(item, (list, tuple)) else [item])


def _whole(name: str, array: Array) -> Array:
    """Returns the integers of an array of Python objects."""
    items = array.reshape(-1).tolist()
    if not all(isinstance(item, (int, np.integer)) for item in items):
        raise unfit(name, f"values of type {_type_name(items)} are neither numbers nor strings.")
    try:
        return np.array(list(map(int, items)), np.int64)
    except OverflowError:
        raise unfit(name, _TOO_LARGE) from None


def flat_values(name: str, array: Array) -> Array | Bytes:
    """Returns all values of an array, in C order, as int64, float32 or Bytes."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if not flat.flags.aligned:
        flat = flat.copy()
    kind = flat.dtype.kind
    if kind in "bi":
        return flat.astype(np.int64, copy=False)
    if kind == "u":
        if flat.size and flat.dtype == np.uint64 and int(flat.max()) > np.iinfo(np.int64).max:
            raise unfit(name, f"{int(flat.max())} does not fit int64, the only type of integers.")
        return flat.astype(np.int64)
    if kind == "f" or (kind == "V" and "float" in flat.dtype.name):  # bfloat16 and the like
        with np.errstate(over="ignore"):
            return flat.astype(np.float32, copy=False)
    if kind in "SU":
        return join(flat.tolist())
    if kind in "OT":  # objects, and NumPy's strings of any length
        return sequence_values(name, flat.tolist())
    raise unfit(name, f"values of type {flat.dtype} are neither numbers nor strings.")


def unmasked(name: str, values: Any) -> Any:
    """Returns the values. Raises FeatureError if an array of NumPy masks some of them."""
    if np.ma.is_masked(values):
        raise unfit(name, "an Example holds no masked values: fill them, as by filled(0).")
    return values


def join(strings: Sequence[str | Buffer]) -> Bytes:
    encoded = [item.encode() if isinstance(item, str) else bytes(item) for item in strings]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(item) for item in encoded], out=offsets[1:])
    return Bytes(np.frombuffer(b"".join(encoded), np.uint8), offsets)


def is_nested(item: Any) -> bool:
    if isinstance(item, STRINGS):
        return False
    return isinstance(item, (list, tuple, Bytes)) or getattr(item, "ndim", 0) > 0


def _type_name(items: Sequence[Any]) -> str:
    odd = (item for item in items if not isinstance(item, (int, float)))
    return type(next(odd, items[0])).__name__


def unfit(name: str, what: str) -> FeatureError:
    return FeatureError(f"Feature {name!r} cannot be encoded: {what}")
