"""Runs functions on rows, once row by row and once vectorised, and compares the two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfrfast.tensorflow.functions import serial_map
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.lifting.remainder import Remainder
from tfrfast.tensorflow.lifting.vectorised import Vectorised
from tfrfast.tensorflow.lifting.vectorising import vectorised

Function = Callable[..., Any]
Columns = list[Any]


def rest_of(function: Function, columns: Columns) -> Remainder:
    """Returns the remainder that lifting would hand on if the parse had given these columns."""
    specs = [tf.TensorSpec(column.shape[1:], column.dtype) for column in columns]
    graph = tf.function(function).get_concrete_function(*specs).graph
    captures = tuple((inner, outer) for outer, inner in graph.captures)
    must_run = tuple(graph.control_outputs)
    inputs = tuple(graph.inputs[: len(columns)])
    return Remainder(graph, inputs, captures, tuple(graph.outputs), must_run)


def plan(function: Function, columns: Columns) -> Vectorised | Refusal:
    return vectorised(rest_of(function, columns))


def not_whole(function: Function, *columns: Any) -> str:
    """Returns the ops with which the part begins that runs row by row, or why none may."""
    made = plan(function, list(map(tf.constant, columns)))
    if isinstance(made, Refusal):
        return made.why
    return "" if made.by_element is None else " ".join(made.by_element.kinds)


def by_row(function: Function, columns: Columns) -> list[Any]:
    """Returns each output for all rows, from the function as written: tf.data does not rewrite it."""
    rows = as_written(tf.data.Dataset.from_tensor_slices(tuple(columns)), function)
    return [output.numpy() for output in next(iter(rows.batch(len(columns[0]))))]


def as_written(rows: Any, function: Function) -> Any:
    """Returns a map() whose function is not rewritten."""
    return serial_map(rows, lambda *row: tuple(tf.nest.flatten(function(*row))))


def by_batch(run: Vectorised, *batches: Columns) -> list[tuple[list[Any], bool]]:
    """Returns the outputs of the vectorised function for each batch, and whether they are valid."""

    def body(*batch: Any) -> Any:
        outputs, holds = run(list(batch))
        for output, traced in zip(outputs, run.rest.outputs, strict=True):
            assert output.shape.rank == traced.shape.rank + 1
            assert output.shape[1:].is_compatible_with(traced.shape)
        return (*outputs, tf.constant(True) if holds is None else holds)

    given = None
    for batch in batches:
        one = tf.data.Dataset.from_tensors(tuple(batch))
        given = one if given is None else given.concatenate(one)
    made = serial_map(given, body)
    return [([output.numpy() for output in outputs], bool(holds)) for *outputs, holds in made]


def same_bits(one: Any, other: Any) -> Any:
    """Returns True for each value that is the same in both. Any NaN is the same as any other."""
    if one.dtype == object or one.dtype.kind in "biu":
        return one == other
    bits = f"V{one.dtype.itemsize}"
    equal = np.ascontiguousarray(one).view(bits) == np.ascontiguousarray(other).view(bits)
    return equal | ((one != one) & (other != other))
