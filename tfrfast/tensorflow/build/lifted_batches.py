"""Batches of lifted maps, decoded whole or made record by record, and their single elements."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.build.batches import Batches, batches_at_once, in_parts
from tfrfast.tensorflow.build.functions import (
    chosen,
    filter_as_traced,
    flat_map,
    map_as_traced,
    of_optional,
    serial_map,
    unbatched,
    values_of,
    with_spec,
)
from tfrfast.tensorflow.lift.lifted import Lifted
from tfrfast.tensorflow.lift.variable import unpacked
from tfrfast.tensorflow.sequence import Batched


def lifted_batches(
    batches: Batches, batch: Batched | None, lifted: Lifted, symbolic: bool, together: int
) -> Any:
    """Returns batches of the maps' results.

    With `symbolic`, checkpoints hold only positions. From each of `batches`, `together` batches are
    cut. Without `batch`, later stages unbatch the batches: an invalid one comes as batches of one
    row, up to the row that fails.
    """
    calls = batches_at_once(batches.size * lifted.row_bytes(batches.record_bytes))
    # Reading a full batch fails if a record is bad, and leaves no part of the batch.
    if batches.rows is not None and not (lifted.whole.checked or lifted.raises):
        return batches.finished(_sound(batches, lifted, calls))
    return batches.finished(_checked(batches, batch, lifted, calls, symbolic, together))


def _decoded(batches: Batches, batch: tuple[Any, ...], lifted: Lifted) -> tuple[list[Any], Any]:
    """Returns the components of a batch of elements, and a boolean that is false for an invalid
    batch.
    """
    features, rows = lifted.features, batches.rows
    read = batches.read(features, *batch)
    for column, shape in zip(read.columns, features.shapes(rows), strict=True):
        column.set_shape(shape)  # an op that checks the shape would take time to trace and run
    read.is_sound.set_shape([])
    components, holds = lifted.run(features.assemble(read.columns), rows)
    return components, read.is_sound if holds is None else tf.logical_and(read.is_sound, holds)


def _sound(batches: Batches, lifted: Lifted, calls: int) -> Any:
    def decode(*batch: Any) -> Any:
        return tuple(_decoded(batches, batch, lifted)[0])

    made = batches.mapped(decode, calls=calls)
    return with_spec(made, lifted.batch_spec(batches.rows))


def _checked(
    batches: Batches,
    wanted: Batched | None,
    lifted: Lifted,
    calls: int,
    symbolic: bool,
    together: int,
) -> Any:
    """Lets TensorFlow make an invalid batch from records, by the original functions.

    So each error is TensorFlow's, and follows the good batches before it.

    A batch is passed on as one tensor, because tracing and calls take longer for many tensors.
    """

    def decode(*batch: Any) -> Any:
        components, holds = _decoded(batches, batch, lifted)
        return tf.raw_ops.OptionalFromValue(components=components), holds, *batch

    is_full = wanted is not None and wanted.drop_remainder
    spec = lifted.batch_spec(wanted.rows if wanted is not None and is_full else None)

    def alone(*parts: Any) -> tuple[Any, ...]:
        """Returns a batch of one row. Where an element has no values although its shape says so,
        TensorFlow's unbatch() would end the process.
        """
        shapes = internals.flat_shapes(lifted.calls[-1].spec)
        checked = map(tf.ensure_shape, parts, shapes)
        return tuple(tf.stack([each]) for each in checked)  # expand_dims() takes no variants

    def one_by_one(*batch: Any) -> Any:
        elements = unbatched(in_parts(*batches.block(*batch)))
        for function, element_spec, is_filter in lifted.calls:
            if is_filter:
                elements = filter_as_traced(elements, function)
            else:
                elements = map_as_traced(elements, function, element_spec)
        if wanted is None:
            return serial_map(elements, alone)
        rows, padding = wanted.rows, lifted.padding
        if padding is None:
            return elements.batch(rows, is_full)
        return elements.padded_batch(rows, *padding.arguments(elements.element_spec), is_full)

    def emit(packed: Any, holds: Any, *batch: Any) -> Any:
        def made() -> Any:
            if wanted is None or together == 1:
                return of_optional(packed, spec)
            return _cut(values_of(packed, lifted.batch_spec(None)), wanted, spec)

        return chosen(holds, made, lambda: one_by_one(*batch))

    def decode_or_not(*batch: Any) -> Any:
        """Returns a dataset of the decoded batch or, if decoding fails, of an invalid batch."""
        made = serial_map(tf.data.Dataset.from_tensors(batch), decode, on_one_thread=False)
        nothing = (tf.raw_ops.OptionalNone(), tf.constant(False), *batch)
        return made.ignore_errors().concatenate(tf.data.Dataset.from_tensors(nothing)).take(1)

    if not lifted.raises:
        made = batches.mapped(decode, calls=calls)
    elif symbolic:  # symbolic checkpoints cannot hold ignore_errors() in mapped_each()
        made = batches.mapped(
            lambda *batch: decode_or_not(*batch).get_single_element(),
            calls=calls,
            on_one_thread=False,
        )
    else:  # other checkpoints cannot hold get_single_element()
        made = batches.mapped_each(decode_or_not, calls=calls)
    return flat_map(made, emit)


def _cut(columns: list[Any], batch: Batched, spec: Any) -> Any:
    """Returns the batches, like `spec`, of the rows of columns."""
    rows = tf.size(columns[0], tf.int64) // columns[0].shape[1:].num_elements()
    whole = rows // batch.rows * batch.rows
    shapes = internals.flat_shapes(spec)
    zero, end, one = tf.constant([0], tf.int64), tf.reshape(whole, [1]), tf.constant([1], tf.int64)

    # Slices by Python's syntax take ten times as long to trace.
    def of(each: Any) -> Any:
        first = tf.raw_ops.StridedSlice(input=each, begin=zero, end=end, strides=one)
        return tf.reshape(first, [-1, batch.rows, *each.shape[1:]])

    variant = tf.raw_ops.TensorSliceDataset(components=list(map(of, columns)), output_shapes=shapes)
    batches = tf.data.experimental.from_variant(variant, spec)
    if batch.drop_remainder:
        return batches
    rest = [
        tf.raw_ops.StridedSlice(input=each, begin=end, end=zero, strides=one, end_mask=1)
        for each in columns
    ]
    variant = tf.raw_ops.TensorDataset(components=rest, output_shapes=shapes)
    last = tf.data.experimental.from_variant(variant, spec)
    return batches.concatenate(last.take(tf.minimum(rows - whole, 1)))


def elements_of(blocks: Any, spec: Any) -> Any:
    """Returns the elements, like `spec`, of blocks of their maps' results."""
    elements = blocks.unbatch()
    specs = tf.nest.flatten(spec)
    if elements.element_spec == spec and not any(map(_is_sparse, specs)):
        return elements

    def as_elements(*parts: Any) -> tuple[Any, ...]:
        return tuple(map(_as_element, parts, specs))

    return with_spec(serial_map(elements, as_elements), spec)


def _as_element(part: Any, spec: Any) -> Any:
    """Returns a component of an element in tf.data's form."""
    if _is_sparse(spec):  # the tensor states the length of the block's longest row
        indices, values, _ = tf.raw_ops.DeserializeSparse(serialized_sparse=part, dtype=spec.dtype)
        return tf.raw_ops.SerializeSparse(
            sparse_indices=indices,
            sparse_values=values,
            sparse_shape=tf.shape(values, tf.int64),
            out_type=tf.variant,
        )
    if isinstance(spec, tf.TensorSpec) and part.dtype != spec.dtype:
        values = unpacked(part, spec.dtype)
        values.set_shape(spec.shape)  # concatenate() compares the shapes
        return values
    return part


def _is_sparse(spec: Any) -> bool:
    return isinstance(spec, tf.SparseTensorSpec)
