"""The shapes of values in a row, including shapes that tracing has not found."""

from __future__ import annotations

from typing import Any

import numpy as np


class NotVectorisedError(Exception):
    """The reason why an op cannot run on a batch, in words that follow the op's name."""


class Shapes:
    """The shapes of a row's tensors."""

    def __init__(self) -> None:
        self._found: dict[str, list[int]] = {}

    def known(self, tensor: Any) -> list[int]:
        shape = tensor.shape
        if shape.is_fully_defined():
            sizes: list[int] = shape.as_list()
            return sizes
        found = self._found.get(tensor.name)
        if found is None:
            raise NotVectorisedError("has a shape that is known only when it runs")
        return found

    def find_out(self, op: Any) -> None:
        """Completes the shapes of an op's outputs, if inputs or later ops fix them."""
        output = op.outputs[0] if len(op.outputs) == 1 else None
        if output is None or output.shape.is_fully_defined():
            return
        if op.type == "DecodeRaw":
            found = self._decoded(output, op.inputs[0].shape)
        elif op.type in SAME_SHAPE:
            found = self._broadcast(op)
        else:
            return
        if found is not None:
            self._found[output.name] = found

    def _decoded(self, decoded: Any, texts: Any) -> list[int] | None:
        """Returns the shape of decoded strings, if a later op fixes a shape."""
        if not texts.is_fully_defined():
            return None
        count, strings = _count_after(decoded), int(np.prod(texts.as_list(), dtype=np.int64))
        if count is None or not strings or count % strings:
            return None
        return [*texts.as_list(), count // strings]

    def _broadcast(self, op: Any) -> list[int] | None:
        try:
            shapes = [self.known(each) for each in op.inputs]
            return list(np.broadcast_shapes(*map(tuple, shapes)))
        except (NotVectorisedError, ValueError):
            return None


#: Ops that keep the number of values if all other inputs are single values.
SAME_SHAPE = frozenset(["AddV2", "Cast", "Identity", "Maximum", "Minimum", "Mul", "RealDiv", "Sub"])


def _count_after(tensor: Any) -> int | None:
    """Returns the number of values that the next shape-fixing op requires of a tensor."""
    for op in tensor.consumers():
        shape = op.outputs[0].shape if op.outputs else None
        if shape is None:
            continue
        if op.type in ("Reshape", "EnsureShape") and shape.is_fully_defined():
            return int(np.prod(shape.as_list(), dtype=np.int64))
        others = [each for each in op.inputs if each is not tensor]
        if op.type in SAME_SHAPE and all(each.shape.rank == 0 for each in others):
            count = _count_after(op.outputs[0])
            if count is not None:
                return count
    return None
