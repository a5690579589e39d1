"""Plans the batches of a pipeline, and the blocks in which single elements are made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tensorflow as tf

from tfrfast import _native
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.lift.lifted import Lifted, Mapped, lift
from tfrfast.tensorflow.lift.variable import Padding
from tfrfast.tensorflow.plan.pipeline import Elements, Pipeline
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.user_functions import has_state
from tfrfast.tensorflow.reasons import Refusal, RefusedError
from tfrfast.tensorflow.sequence import Batched, below
from tfrfast.tensorflow.source import Source

_LEAVE_IT_OUT = "no num_parallel_reads, or shuffle() first"
_ON_BATCHES = "batch() first, and then map() on batches"
_TOO_LARGE = Refusal("its batches are too large to be made whole", "smaller batches")
_TOO_SHORT = Refusal('a record that on_corruption="skip" leaves out makes a batch too short')
# Single elements are made in blocks of so many rows and bytes: a call costs little beside a block.
_BLOCK_ROWS = 256
_BLOCK_BYTES = 4 << 20
# Smaller blocks gain nothing: of what a cache() keeps, only the first epoch is read in blocks.
_MIN_BLOCK_ROWS, _MIN_KEPT_BLOCK_ROWS = 8, 64
# Two batches are made at once, at least. All their values take no more memory.
_MAX_BYTES = 256 << 20
# The fewest rows for which a batch is made whole, and the most for which batches are cut from a
# block: see docs/vectorising.md.
_MIN_ROWS_OF_LISTS, _MIN_ROWS_OF_SPARSE, _MIN_LARGE_ROWS, _MIN_ROWS_ONE_BY_ONE = 16, 4, 2, 8
_MAX_ROWS_TOGETHER = 32


def why_streamed(source: Source) -> RefusedError:
    """Returns the reason why a source is not planned."""
    if source.names.known is None:
        return RefusedError(
            source.names.why_unknown, "tfr.TFRecordDataset of a list of names or a pattern"
        )
    return RefusedError("num_parallel_reads is known only in the graph", "give a Python integer")


def batched(
    pipeline: Pipeline,
    batch: Batched,
    why_unlifted: str,
    padding: Padding | None = None,
    in_blocks: bool = False,
) -> Pipeline:
    """Reads batches. May build indexes.

    With `in_blocks`, single elements may be made in blocks, which suits small batches better.
    """
    is_first = pipeline.batch is None
    if is_first and pipeline.filtered and padding is None:
        return _of_filtered(pipeline, batch, why_unlifted)
    lifted = None
    if is_first and pipeline.record_calls:
        if pipeline.filtered:
            raise RefusedError("tfrfast does not pad what filter() lets through", _ON_BATCHES)
        lifted = _lifted(pipeline, pipeline.record_calls, why_unlifted, padding)
    made = _cut(pipeline, batch, lifted)
    if lifted is None:
        return made
    if 2 * batch.rows * _row_bytes(pipeline, lifted) > _MAX_BYTES and batch.rows > 1:
        raise _unlifted(pipeline, _TOO_LARGE)
    if in_blocks and batch.rows < (fewest := _fewest_rows(pipeline, lifted, batch)):
        raise RefusedError(f"fewer than {fewest} rows of this kind cost less one by one")
    return replace(made, batches_in_block=_batches_in_block(pipeline, batch, lifted))


def _batches_in_block(pipeline: Pipeline, batch: Batched, lifted: Lifted) -> int:
    """Returns the number of batches that are cut from a block, which costs less than one by one."""
    has_empty = any(map(_is_empty, tf.nest.flatten(lifted.batch_spec(batch.rows))))
    if lifted.by_element or has_empty or not nodes.has_one_shape(lifted.batch_spec(batch.rows)):
        return 1
    if batch.rows > _MAX_ROWS_TOGETHER:
        return 1
    if pipeline.source.record_bytes is None:  # a block of them might be of any size
        return 1
    return max(1, _block_rows(pipeline, lifted) // batch.rows)


def _fewest_rows(pipeline: Pipeline, lifted: Lifted, batch: Batched) -> int:
    """Returns the fewest rows for which a batch costs less than single elements of blocks."""
    specs = tf.nest.flatten(lifted.calls[-1].spec)
    if lifted.by_element:
        return _MIN_ROWS_ONE_BY_ONE
    if nodes.has_one_shape(lifted.batch_spec(batch.rows)):
        return 1
    if _block_rows(pipeline, lifted) < _MIN_BLOCK_ROWS:
        return _MIN_LARGE_ROWS
    if any(isinstance(each, tf.SparseTensorSpec) for each in specs):
        return _MIN_ROWS_OF_SPARSE
    are_lists = all(each.shape.is_fully_defined() or _is_list(each.shape) for each in specs)
    return _MIN_ROWS_OF_LISTS if are_lists else _MIN_ROWS_ONE_BY_ONE


def rebatched(pipeline: Pipeline, batch: Batched) -> Pipeline:
    """Reads other batches in place of the pipeline's."""
    if pipeline.sequence is None or pipeline.batch is None or pipeline.decodes:
        raise RefusedError("tfrfast does not plan it without a batch() of strings before it")
    if pipeline.batch.drop_remainder:
        raise RefusedError("drop_remainder=True before it leaves records out")
    if pipeline.source.skip_damage:
        raise RefusedError(_TOO_SHORT)
    return replace(pipeline, sequence=replace(pipeline.sequence, batch=batch))


def of_single_elements(pipeline: Pipeline, why_unlifted: str, are_kept: bool) -> Pipeline:
    """Reads single elements, parsed in whole blocks. May build indexes.

    With `are_kept`, a cache() keeps them.
    """
    calls = pipeline.record_calls
    why = Refusal("it handles elements one by one")
    if pipeline.batch is not None or pipeline.decodes_media:
        raise RefusedError(why)
    for count in range(len(calls), 0, -1):
        spec = calls[count - 1].element_spec
        try:
            if any(map(_may_be_empty, tf.nest.flatten(spec))):
                raise RefusedError(
                    "tfrfast does not make blocks of components without values, or of any shape"
                )
            fewest = _MIN_KEPT_BLOCK_ROWS if are_kept else _MIN_BLOCK_ROWS
            made = _blocks(pipeline, calls[:count], why_unlifted, fewest)
        except RefusedError as refused:
            why = refused.refusal
        else:
            elements = Elements(spec, calls[count:])
            return replace(made, elements=elements, prefetched=pipeline.prefetched)
    raise RefusedError(why)


def _cut(pipeline: Pipeline, batch: Batched, lifted: Lifted | None) -> Pipeline:
    source, sequence = pipeline.source, pipeline.sequence
    if sequence is None:
        raise why_streamed(source)
    if batch.rows < 1:
        raise RefusedError("it has no rows")
    if sequence.batch is not None:
        raise RefusedError("tfrfast does not plan a batch() of batches")
    if batch.drop_remainder and source.skip_damage and sequence.shuffle is not None:
        raise RefusedError(_TOO_SHORT)
    made = replace(
        pipeline,
        sequence=replace(sequence, batch=batch),
        lifted=lifted,
        saves_positions=pipeline.saves_positions and not _has_state(lifted),
        prefetched=_batches_ahead(pipeline.prefetched, batch.rows),
        cached=False,
    )
    return _of_shuffled_files(made) if source.shuffles_files and not sequence.shuffle else made


def _batches_ahead(elements: int | None, rows: int) -> int | None:
    return elements if elements is None or elements <= 0 else -(-elements // rows)


def _of_shuffled_files(pipeline: Pipeline) -> Pipeline:
    """Returns the pipeline in an order of the files that differs by iteration."""
    if pipeline.source.skip_damage:
        raise RefusedError('on_corruption="skip" changes whose turn it is', _LEAVE_IT_OUT)
    try:
        source = pipeline.source.planned(build_indexes=True)
    except tf.errors.OpError:
        source = None  # the error comes in the file's turn
    if source is None or source.plan is None or source.plan.damage:
        raise RefusedError("interleaved files are missing or damaged", _LEAVE_IT_OUT)
    names, sequence = source.names, pipeline.sequence
    assert sequence is not None
    assert names.shuffle is not None
    assert source.turns is not None
    file_records = source.plan.file_records
    turns = _native.InterleavedOrder(file_records, source.turns, source.block_records)
    in_turns = replace(
        sequence,
        records=range(sum(file_records)),
        shuffle=replace(names.shuffle, turns=turns),
        positions=below(sequence.records, sum(file_records)),
    )
    return replace(pipeline, source=source, sequence=in_turns)


def _with_ragged(maps: tuple[Any, ...]) -> tuple[Any, ...]:
    """Adds a map after the maps, with which elements of different lengths fit into one block."""
    specs = tf.nest.flatten(maps[-1].element_spec)
    if not any(isinstance(each, tf.TensorSpec) and _is_list(each.shape) for each in specs):
        return maps
    return (*maps, internals.DenseToRagged(maps[-1], tf.int64))


def _is_empty(spec: Any) -> bool:
    """True for tensors without values, of which TensorFlow's unbatch() ends the process."""
    return isinstance(spec, tf.TensorSpec) and spec.shape.num_elements() == 0


def _may_be_empty(spec: Any) -> bool:
    is_known = not isinstance(spec, tf.TensorSpec) or spec.shape.is_fully_defined()
    return _is_empty(spec) or not (is_known or _is_list(spec.shape))


def _is_list(shape: Any) -> bool:
    """True for a component with any number of values of one shape in each row."""
    return shape.rank and shape[0] is None and shape[1:].is_fully_defined()


def _blocks(
    pipeline: Pipeline, calls: tuple[Any, ...], why_unlifted: str, fewest: int = _MIN_BLOCK_ROWS
) -> Pipeline:
    """Reads blocks of the results of maps and filters."""
    lifted = _lifted(pipeline, _with_ragged(calls), why_unlifted)
    made = _cut(pipeline, Batched(_BLOCK_ROWS), lifted)
    if made.sequence is None or lifted.by_element:
        raise RefusedError("its elements are made row by row")
    rows = _block_rows(pipeline, lifted)
    if rows < fewest:
        raise RefusedError("its elements are too large for blocks")
    return replace(made, sequence=replace(made.sequence, batch=Batched(rows)))


def _block_rows(pipeline: Pipeline, lifted: Lifted) -> int:
    return min(_BLOCK_ROWS, _BLOCK_BYTES // _row_bytes(pipeline, lifted))


def _row_bytes(pipeline: Pipeline, lifted: Lifted) -> int:
    """Returns the approximate bytes of all values of a row."""
    record_bytes = pipeline.source.record_bytes or _BLOCK_BYTES // _BLOCK_ROWS
    return max(1, record_bytes, lifted.row_bytes(record_bytes))


def _lifted(
    pipeline: Pipeline, calls: tuple[Any, ...], why_unlifted: str, padding: Padding | None = None
) -> Lifted:
    if why_unlifted:
        raise _unlifted(pipeline, Refusal(why_unlifted))
    mapped = [Mapped(nodes.function_of(e), e.element_spec, nodes.is_filter(e)) for e in calls]
    try:
        return lift(mapped, padding, lambda: pipeline.source.first_records)
    except RefusedError as refused:
        raise _unlifted(pipeline, refused.refusal) from None


def _of_filtered(pipeline: Pipeline, batch: Batched, why_unlifted: str) -> Pipeline:
    """Reads batches of the rows that pass the filters. May build indexes."""
    try:
        made = _blocks(pipeline, pipeline.record_calls, why_unlifted)
    except RefusedError as refused:
        raise RefusedError(
            f"filter() before it makes single elements: {refused}", _ON_BATCHES
        ) from None
    if batch.rows < 1:
        raise RefusedError("it has no rows")
    if not nodes.has_one_shape(pipeline.record_calls[-1].element_spec):
        raise RefusedError(
            "tfrfast does not batch rows of different shapes that filter() lets through"
        )
    return replace(
        made, filtered_batch=batch, prefetched=_batches_ahead(pipeline.prefetched, batch.rows)
    )


def _has_state(lifted: Lifted | None) -> bool:
    """True if lifted functions draw random numbers, for example."""
    by_row = None if lifted is None else lifted.whole.by_row
    return by_row is not None and has_state(by_row)


def _unlifted(pipeline: Pipeline, why: Refusal) -> RefusedError:
    instead = why.instead or _ON_BATCHES
    if pipeline.parses_needlessly and not why.instead:
        instead = ".batch(n).parse_example(features), or tf.io.parse_example on batches"
    return RefusedError(f"map() before it makes single elements: {why.why}", instead)
