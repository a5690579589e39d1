"""The arguments of a function of one row, for each row of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.cutting import GivenAs
from tfrfast.tensorflow.lifting.variable import ParsedPart


@dataclass(frozen=True)
class RowArguments:
    """Rows of the same shape are passed one by one.

    If rows have different lengths, each call gets the values of all rows, and the bounds of
    its own row.
    """

    tensors: tuple[Any, ...]
    #: Descriptions of the tensors whose rows have different lengths.
    parts: Mapping[str, ParsedPart]

    def of_each_row(self, values: Mapping[str, Any]) -> list[Any]:
        """Returns the arguments with a row for each call."""
        columns = [values[each.name] for each in self.tensors if each.name not in self.parts]
        for name in self._examples.values():
            splits = values[name].splits
            columns += [splits[:-1], splits[1:]]
        return columns

    def of_all_rows(self, values: Mapping[str, Any]) -> list[Any]:
        """Returns the arguments of all calls."""
        return [values[each.name].values for each in self._flat]

    def given_as(self) -> GivenAs | None:
        """Returns the conversion of arguments into the tensors of a row; None: no conversion."""
        if not self._examples:
            return None
        of_rows = [each for each in self.tensors if each.name not in self.parts]
        specs = [tf.TensorSpec(each.shape, each.dtype) for each in of_rows]
        specs += [tf.TensorSpec([], tf.int64)] * (2 * len(self._examples))
        for each in self._flat:
            specs.append(tf.TensorSpec([None, *self.parts[each.name].of_value], each.dtype))

        def make(*arguments: Any) -> list[Any]:
            left = iter(arguments)
            made = {each.name: next(left) for each in of_rows}
            bounds = {rows: (next(left), next(left)) for rows in self._examples}
            for each in self._flat:
                begin, end = bounds[self.parts[each.name].rows]
                made[each.name] = next(left)[begin:end]
            for name, part in self.parts.items():
                if part.kind == "indices":
                    begin, end = bounds.get(part.rows, (0, 0))
                    made[name] = tf.range(end - begin, dtype=tf.int64)[:, tf.newaxis]
            return [made[each.name] for each in self.tensors]

        return GivenAs(specs, make)

    @property
    def _flat(self) -> list[Any]:
        return [
            each
            for each in self.tensors
            if each.name in self.parts and self.parts[each.name].kind == "values"
        ]

    @property
    def _examples(self) -> dict[tuple[str, str], str]:
        """Returns the kinds of lengths of such rows, and the name of a tensor for each."""
        names = [each.name for each in self.tensors if each.name in self.parts]
        return {self.parts[name].rows: name for name in names}


def row_arguments(tensors: Sequence[Any], parts: Mapping[str, ParsedPart]) -> RowArguments:
    names = {each.name for each in tensors}
    return RowArguments(
        tuple(tensors), {name: part for name, part in parts.items() if name in names}
    )
