"""Plans the batches of a pipeline, and the blocks in which single elements are made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tensorflow as tf

from tfrfast import _native
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.lift.lifted import Lifted, Mapped, lift
from tfrfast.tensorflow.lift.padding import Padding
from tfrfast.tensorflow.plan.pipeline import Pipeline, Single
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.user_functions import has_state
from tfrfast.tensorflow.reasons import Refusal
from tfrfast.tensorflow.sequence import Batched, below
from tfrfast.tensorflow.source import Source

_LEAVE_IT_OUT = "no num_parallel_reads, or shuffle() first"
_ON_BATCHES = "batch() first, and then map() on batches"
_TOO_LARGE = Refusal("its batches are too large to be made whole", "smaller batches")
_TOO_SHORT = Refusal('a record that on_corruption="skip" leaves out makes a batch too short')
# Single elements are made in blocks of so many rows and bytes: a call costs little beside a block.
_BLOCK_ROWS = 256
_BLOCK_BYTES = 4 << 20
# Smaller blocks gain nothing.
_MIN_BLOCK_ROWS = 8
# Two batches are made at once, at least. All their values take no more memory.
_MAX_BYTES = 256 << 20
# The fewest rows for which a batch is made whole: see docs/vectorising.md.
_MIN_ROWS_OF_LISTS, _MIN_ROWS_OF_SPARSE, _MIN_LARGE_ROWS, _MIN_ROWS_ONE_BY_ONE = 16, 4, 2, 8


def why_streamed(source: Source) -> Refusal:
    """Returns the reason why a source is not planned."""
    if source.names.known is None:
        return Refusal(
            source.names.why_unknown, "tfr.TFRecordDataset of a list of names or a pattern"
        )
    if source.num_parallel_reads is not None:
        return Refusal("num_parallel_reads is known only in the graph", "give a Python integer")
    return Refusal("it is not given batches of records", "batch() before it")


def batched(
    pipeline: Pipeline,
    batch: Batched,
    why_unlifted: str,
    padding: Padding | None = None,
    in_blocks: bool = False,
) -> Pipeline | Refusal:
    """Reads batches. May build indexes.

    With `in_blocks`, single elements may be made in blocks, which suits small batches better.
    """
    is_first = pipeline.batch is None
    if is_first and pipeline.filtered and padding is None:
        return _selected(pipeline, batch, why_unlifted)
    lifted = None
    if is_first and pipeline.elementwise:
        if pipeline.filtered:
            return Refusal("filter() before it makes single elements", _ON_BATCHES)
        found = _lifted(pipeline.elementwise, why_unlifted, padding)
        if isinstance(found, Refusal):
            return _unlifted(pipeline, found)
        lifted = found
    made = _cut(pipeline, batch, lifted)
    if lifted is None or isinstance(made, Refusal):
        return made
    if 2 * batch.rows * _row_bytes(pipeline, lifted) > _MAX_BYTES and batch.rows > 1:
        return _unlifted(pipeline, _TOO_LARGE)
    if in_blocks and batch.rows < (fewest := _fewest_rows(pipeline, lifted, batch)):
        return Refusal(f"fewer than {fewest} rows of this kind cost less one by one")
    return replace(made, together=_together(pipeline, batch, lifted))


def _together(pipeline: Pipeline, batch: Batched, lifted: Lifted) -> int:
    """Returns the number of batches that are cut from a block, which costs less than one by one."""
    has_empty = any(map(_is_empty, tf.nest.flatten(lifted.batch_spec(batch.rows))))
    if lifted.by_element or has_empty or not _has_rows_of_one_shape(lifted, batch):
        return 1
    if pipeline.source.record_bytes is None:  # a block of them might be of any size
        return 1
    return max(1, _block_rows(pipeline, lifted) // batch.rows)


def _fewest_rows(pipeline: Pipeline, lifted: Lifted, batch: Batched) -> int:
    """Returns the fewest rows for which a batch costs less than single elements of blocks."""
    specs = tf.nest.flatten(lifted.calls[-1].spec)
    if lifted.by_element:
        return _MIN_ROWS_ONE_BY_ONE
    if _has_rows_of_one_shape(lifted, batch):
        return 1
    if _block_rows(pipeline, lifted) < _MIN_BLOCK_ROWS:
        return _MIN_LARGE_ROWS
    if any(isinstance(each, tf.SparseTensorSpec) for each in specs):
        return _MIN_ROWS_OF_SPARSE
    are_lists = all(each.shape.is_fully_defined() or _is_list(each.shape) for each in specs)
    return _MIN_ROWS_OF_LISTS if are_lists else _MIN_ROWS_ONE_BY_ONE


def _has_rows_of_one_shape(lifted: Lifted, batch: Batched) -> bool:
    return all(map(_has_one_shape, tf.nest.flatten(lifted.batch_spec(batch.rows))))


def rebatched(pipeline: Pipeline, batch: Batched) -> Pipeline | Refusal:
    """Reads other batches in place of the pipeline's."""
    if pipeline.sequence is None or pipeline.batch is None or pipeline.decodes:
        return Refusal("it follows no batch() of strings in the plan")
    if pipeline.batch.drop_remainder:
        return Refusal("drop_remainder=True before it leaves records out")
    if pipeline.source.skip_damage:
        return _TOO_SHORT
    return replace(pipeline, sequence=replace(pipeline.sequence, batch=batch))


def of_single_elements(pipeline: Pipeline, why_unlifted: str) -> Pipeline | Refusal:
    """Reads single elements, parsed in whole blocks. May build indexes."""
    calls = pipeline.elementwise
    made: Pipeline | Refusal = Refusal("it handles elements one by one")
    if pipeline.batch is not None or pipeline.decodes_media:
        return made
    for count in range(len(calls), 0, -1):
        if any(map(_is_empty, tf.nest.flatten(calls[count - 1].element_spec))):
            made = Refusal("its elements have components without values")
            continue
        made = _blocks(pipeline, calls[:count], why_unlifted)
        if isinstance(made, Pipeline):
            single = Single(calls[count - 1].element_spec, calls[count:])
            return replace(made, single=single, prefetched=pipeline.prefetched)
    return made


def _cut(pipeline: Pipeline, batch: Batched, lifted: Lifted | None) -> Pipeline | Refusal:
    source, sequence = pipeline.source, pipeline.sequence
    if sequence is None:
        return why_streamed(source)
    if batch.rows < 1:
        return Refusal("it has no rows")
    if sequence.batch is not None:
        return Refusal("there is a batch() before it")
    if batch.drop_remainder and source.skip_damage and sequence.shuffle is not None:
        return _TOO_SHORT
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


def _of_shuffled_files(pipeline: Pipeline) -> Pipeline | Refusal:
    """Returns the pipeline in an order of the files that differs by iteration."""
    if pipeline.source.skip_damage:
        return Refusal('on_corruption="skip" changes whose turn it is', _LEAVE_IT_OUT)
    try:
        source = pipeline.source.planned(build_indexes=True)
    except tf.errors.OpError:
        source = None  # the error comes in the file's turn
    if source is None or source.plan is None or source.plan.damage:
        return Refusal("interleaved files are missing or damaged", _LEAVE_IT_OUT)
    names, sequence = source.names, pipeline.sequence
    assert sequence is not None
    assert names.known is not None
    assert names.shuffle is not None
    assert source.turns is not None
    file_records = source.plan.file_records(len(names.known))
    turns = _native.InterleavedOrder(file_records, source.turns, source.block_records, True)
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


def _is_list(shape: Any) -> bool:
    """True for a component with any number of values of one shape in each row."""
    return shape.rank and shape[0] is None and shape[1:].is_fully_defined()


def _blocks(pipeline: Pipeline, calls: tuple[Any, ...], why_unlifted: str) -> Pipeline | Refusal:
    """Reads blocks of the results of maps and filters."""
    lifted = _lifted(_with_ragged(calls), why_unlifted)
    if isinstance(lifted, Refusal):
        return _unlifted(pipeline, lifted)
    made = _cut(pipeline, Batched(_BLOCK_ROWS), lifted)
    if isinstance(made, Refusal):
        return made
    if made.sequence is None or lifted.by_element:
        return Refusal("its elements are made row by row")
    rows = _block_rows(pipeline, lifted)
    if rows < _MIN_BLOCK_ROWS:
        return Refusal("its elements are too large for blocks")
    return replace(made, sequence=replace(made.sequence, batch=Batched(rows)))


def _block_rows(pipeline: Pipeline, lifted: Lifted) -> int:
    return min(_BLOCK_ROWS, _BLOCK_BYTES // _row_bytes(pipeline, lifted))


def _row_bytes(pipeline: Pipeline, lifted: Lifted) -> int:
    """Returns the approximate bytes of all values of a row."""
    record_bytes = pipeline.source.record_bytes or _BLOCK_BYTES // _BLOCK_ROWS
    return max(1, record_bytes, lifted.row_bytes(record_bytes))


def _lifted(
    calls: tuple[Any, ...], why_unlifted: str, padding: Padding | None = None
) -> Lifted | Refusal:
    if why_unlifted:
        return Refusal(why_unlifted)
    mapped = [Mapped(nodes.function_of(e), e.element_spec, nodes.is_filter(e)) for e in calls]
    return lift(mapped, padding)


def _selected(pipeline: Pipeline, batch: Batched, why_unlifted: str) -> Pipeline | Refusal:
    """Reads batches of the rows that pass the filters. May build indexes."""
    made = _blocks(pipeline, pipeline.elementwise, why_unlifted)
    if isinstance(made, Refusal):
        return Refusal(f"filter() before it makes single elements: {made.why}", _ON_BATCHES)
    if batch.rows < 1:
        return Refusal("it has no rows")
    if not all(map(_has_one_shape, tf.nest.flatten(pipeline.elementwise[-1].element_spec))):
        return Refusal("filter() before it selects rows of different shapes")
    return replace(made, selected=batch, prefetched=_batches_ahead(pipeline.prefetched, batch.rows))


def _has_state(lifted: Lifted | None) -> bool:
    """True if lifted functions draw random numbers, for example."""
    by_row = None if lifted is None else lifted.whole.by_row
    return by_row is not None and has_state(by_row.function)


def _has_one_shape(spec: Any) -> bool:
    return isinstance(spec, tf.TensorSpec) and spec.shape.is_fully_defined()


def _unlifted(pipeline: Pipeline, why: Refusal) -> Refusal:
    instead = why.instead or _ON_BATCHES
    if pipeline.parses_needlessly and not why.instead:
        instead = ".batch(n).parse_example(features), or tf.io.parse_example on batches"
    return Refusal(f"map() before it makes single elements: {why.why}", instead)
