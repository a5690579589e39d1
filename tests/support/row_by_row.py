"""Runs functions on rows, once row by row and once vectorised, and compares the two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfrfast.tensorflow.build.functions import serial_map
from tfrfast.tensorflow.lift.copying import imported
from tfrfast.tensorflow.lift.vectorising import Whole, vectorised
from tfrfast.tensorflow.reasons import RefusedError

Function = Callable[..., Any]
Columns = list[Any]


def graph_of(function: Function, columns: Columns) -> Any:
    """Returns the graph of the function of a row."""
    specs = [tf.TensorSpec(column.shape[1:], column.dtype) for column in columns]
    return tf.function(function).get_concrete_function(*specs).graph


def plan(function: Function, columns: Columns) -> Whole:
    """Vectorises a function as lifting would, if the parse had given these columns."""
    graph = graph_of(function, columns)
    specs = [tf.TensorSpec([None, *column.shape[1:]], column.dtype) for column in columns]
    names = [each.name for each in graph.inputs[: len(columns)]]
    return vectorised(graph, specs, lambda *given: dict(zip(names, given, strict=True)))


def not_whole(function: Function, *columns: Any) -> str:
    """Returns the ops with which the part begins that runs row by row, or why none may."""
    try:
        made = plan(function, list(map(tf.constant, columns)))
    except RefusedError as refused:
        return str(refused)
    return " ".join(made.kinds)


def by_row(function: Function, columns: Columns) -> list[Any]:
    """Returns each output for all rows, from the function as written: tf.data does not rewrite it."""
    rows = as_written(tf.data.Dataset.from_tensor_slices(tuple(columns)), function)
    return [output.numpy() for output in next(iter(rows.batch(len(columns[0]))))]


def as_written(rows: Any, function: Function) -> Any:
    """Returns a map() whose function is not rewritten."""
    return serial_map(rows, lambda *row: tuple(tf.nest.flatten(function(*row))))


def by_batch(run: Whole, *batches: Columns) -> list[tuple[list[Any], bool]]:
    """Returns the outputs of the vectorised function for each batch, and whether they are valid."""

    def body(*batch: Any) -> Any:
        outputs = imported(run.graph, batch)
        return (*outputs, *([] if run.checked else [tf.constant(True)]))

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
