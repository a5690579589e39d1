"""Functions of datasets, each traced once in a process, because tracing takes longest."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

# Rewriting by AutoGraph would take most of the time that a graph takes to build.
as_it_stands = tf.autograph.experimental.do_not_convert


def flat_map(dataset: Any, body: Callable[..., Any], *others: Any) -> Any:
    """dataset.flat_map(lambda *element: body(*element, *others)).

    What was traced is found again by `body`, so all tensors that it needs are arguments.
    """
    captured = [tf.convert_to_tensor(other) for other in others]
    function, spec = _traced(
        body,
        *tf.nest.flatten(dataset.element_spec),
        *(tf.TensorSpec(other.shape, other.dtype) for other in captured),
    )
    parts = tf.nest.flatten(spec)
    variant = tf.raw_ops.FlatMapDataset(
        input_dataset=dataset._variant_tensor,
        other_arguments=captured,
        f=function,
        output_types=[part.dtype for part in parts],
        output_shapes=[part.shape for part in parts],
    )
    return tf.data.experimental.from_variant(variant, spec)


@functools.cache
def _traced(body: Callable[..., Any], *specs: Any) -> tuple[Any, Any]:
    """The function, and the element spec of the datasets that it returns."""
    element_spec = None

    def run(*arguments: Any) -> Any:
        nonlocal element_spec
        made = body(*arguments)
        element_spec = made.element_spec
        return made._variant_tensor

    with tf.init_scope():
        function = tf.function(run, specs, autograph=False).get_concrete_function()
    return function, element_spec


def show_a_reader() -> None:
    """Puts an op that reads files into the function that is being traced.

    TensorFlow looks for one when it shards by file.
    """
    tf.raw_ops.TFRecordDatasetV2(  # never run, as nothing needs it
        filenames=tf.constant([], tf.string),
        compression_type="",
        buffer_size=tf.constant(0, tf.int64),
        byte_offsets=tf.constant([], tf.int64),
    )
