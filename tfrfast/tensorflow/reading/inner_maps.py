"""Turns each map() in a function that opens a file into a map() of all files' records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.lift.copying import NotCopiedError, inlined
from tfrfast.tensorflow.reading.opening import InnerMap

_NOT_COPIED = Refusal("the map() in its function cannot be made one of all records")


def calls_of(maps: Sequence[InnerMap], element_spec: Any, calls: Any) -> tuple[Any, ...] | Refusal:
    """Returns the same maps as calls on records.

    `element_spec` is the spec of the last map's elements. `calls` is the `num_parallel_calls` of
    each map.
    """
    dataset, made = internals.TheirTFRecordDataset([]), []
    for number, each in enumerate(maps):
        is_last = number == len(maps) - 1
        mapped = _call_of(dataset, each, element_spec if is_last else None, calls)
        if mapped is None:
            return _NOT_COPIED
        made.append(mapped)
        dataset = mapped
    return tuple(made)


def _call_of(dataset: Any, inner: InnerMap, element_spec: Any, calls: Any) -> Any:
    """Makes a map() of a dataset; None if impossible. Without a spec, it makes flat tuples."""
    results = inner.graph.outputs
    leaves = results if element_spec is None else tf.nest.flatten(element_spec)
    tensors_alone = element_spec is None or all(isinstance(e, tf.TensorSpec) for e in leaves)
    if len(leaves) != len(results) or not tensors_alone:
        return None
    if any(each.dtype == tf.variant for each in (*results, *inner.graph.inputs)):
        return None

    def run(*tensors: Any) -> Any:
        made = inlined(inner.graph, (*tensors, *inner.captured))
        structure = tuple(made) if len(made) > 1 else 0
        return tf.nest.pack_sequence_as(structure if element_spec is None else element_spec, made)

    run.__name__ = _name_of(inner.graph)
    try:
        return dataset.map(tf.autograph.experimental.do_not_convert(run), calls)
    except (NotCopiedError, NotImplementedError, TypeError, ValueError):
        return None


def _name_of(graph: Any) -> str:
    """Returns the name of the Python function, which is part of the traced function's name."""
    found = re.search("Dataset_map_(.+?)(_[0-9]+)?$", graph.name)
    name = found[1] if found else "..."
    return "<lambda>" if name == "lambda" else name
