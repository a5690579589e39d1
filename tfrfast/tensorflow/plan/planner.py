"""Plans a chain: divides its calls between tfrfast and TensorFlow."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from tfrfast.storage.remote.options import Storage
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.lift.lifted import why_unlifted as environment
from tfrfast.tensorflow.plan.batching import of_single_elements
from tfrfast.tensorflow.plan.call_rules import (
    BATCHES,
    KEPT,
    MAPS,
    MIN_ROWS,
    Planning,
    batch_of,
    has_rule,
    taken,
)
from tfrfast.tensorflow.plan.pipeline import Pipeline
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.chain import Chain, call_text
from tfrfast.tensorflow.read.file_names import FileNames, is_ours, reach_urls
from tfrfast.tensorflow.read.shuffles import is_kept, noted_order, order_of
from tfrfast.tensorflow.read.sources import AskedRecords, FilePart, Records
from tfrfast.tensorflow.read.user_functions import is_constant, parses_examples
from tfrfast.tensorflow.reasons import Refusal, RefusedError, Step, warn_once
from tfrfast.tensorflow.saving import bears
from tfrfast.tensorflow.sequence import EVERYTHING, SeededOrder
from tfrfast.tensorflow.source import Source

# The shapes of elements tell TensorFlow how many elements such a call makes.
_COUNTED_BY_SHAPE = {"rebatch", "unbatch"}
# Calls that handle single elements, which costs more than a plan of their order saves.
_LOSING = {"group_by_window", "padded_batch", "window"}
# An open file takes memory, and each turn of a file opens it.
_MOST_TURNS = 16

# After these calls, a shuffle still covers all records.
_ALL_BEFORE_A_SHUFFLE = {
    *("assert_cardinality", "cache", "filter", "prefetch", "repeat", "with_options"),
    *MAPS,
}
_BEFORE_A_SHUFFLE = {"shard", "skip", "take", *_ALL_BEFORE_A_SHUFFLE}


@dataclass(frozen=True)
class ChainPlan:
    """The pipeline that tfrfast runs, the calls that follow in tf.data, and why."""

    pipeline: Pipeline
    rest: tuple[Any, ...]
    steps: tuple[Step, ...]

    @functools.cached_property
    def counted(self) -> Pipeline:
        """The pipeline with counted records, if indexes are there."""
        pipeline = self.pipeline
        found = pipeline.source.planned(build_indexes=False) if pipeline.sequence else None
        return pipeline if found is None else replace(pipeline, source=found)

    @property
    def length(self) -> int | None:
        """The number of elements; None if unknown here, or infinite."""
        if self.counted.length is None or not self.rest:
            return self.counted.length
        if any(nodes.method_of(call) in _COUNTED_BY_SHAPE for call in self.rest):
            return None
        numbered = tf.data.Dataset.range(self.counted.length)
        try:
            for call in self.rest:
                if nodes.method_of(call) != "parse_example":  # which takes strings
                    numbered = nodes.moved(call, [numbered])
            length = int(numbered.cardinality())
        except tf.errors.OpError:  # TensorFlow asks what such elements are
            return None
        return length if length >= 0 else None


def plan(chain: Chain, why_unlifted: str = "") -> ChainPlan:
    """Plans a chain. Raises RefusedError, but not for records that were asked for by name.

    Opens files if an index is needed. Raises the errors of opening. With `why_unlifted`, no
    function is lifted.
    """
    planning = Planning(chain.asked, list(chain.calls), why_unlifted or environment())
    begun = _begun(planning, chain.records)
    # A copy, because the user may still change the options.
    options = tf.data.Options().merge(internals.options_of(chain.dataset))
    pipeline = begun if options == tf.data.Options() else replace(begun, options=options)
    pipeline, refusal = _with_calls(planning, pipeline)
    if chain.asked:
        _warn(planning, pipeline, refusal)
        return _planned(planning, pipeline, refusal)
    return _if_it_gains(planning, pipeline, refusal)


def _with_calls(planning: Planning, pipeline: Pipeline) -> tuple[Pipeline, Refusal]:
    """Returns the pipeline with as many calls as the rules allow, and why the next is refused."""
    left = planning.left
    while left and not (planning.cache is not None and pipeline.batch is not None):
        try:
            made = taken(planning, pipeline, left[0])
        except RefusedError as refused:
            return pipeline, refused.refusal
        call, pipeline = left.pop(0), made.pipeline
        if made.rest is not None:
            left.insert(0, made.rest)
            return pipeline, Refusal(made.why)
        if made.told:
            planning.told.append((call, made))
    return pipeline, Refusal("")


def _planned(planning: Planning, pipeline: Pipeline, refusal: Refusal) -> ChainPlan:
    left, steps = planning.left, _told(planning, pipeline)
    for number, call in enumerate(call for call in left if not nodes.is_helper(call)):
        why, instead = ("", "") if number else refusal
        steps.append(Step(call_text(call), False, why, instead, ends_plan=number == 0))
    lifted = pipeline.lifted
    if lifted is not None and lifted.raises and not all(map(bears, left)):
        pipeline = pipeline.saved_whole()  # a later call cannot save positions
    return ChainPlan(pipeline, tuple(left), tuple(steps))


def _told(planning: Planning, pipeline: Pipeline) -> list[Step]:
    """Returns the treatment of the pipeline's calls."""
    steps = [*planning.of_names]
    for call, made in planning.told:
        text, lifted = call_text(call), pipeline.lifted
        if lifted is None or call not in pipeline.lifted_calls:
            steps.append(Step(text, made.fused, made.why))
        elif nodes.is_filter(call):
            steps.append(Step(text, fused=True, why="selects rows of whole blocks"))
        else:
            steps.append(lifted.step(text, "blocks" if pipeline.in_blocks else "batches"))
    return steps


def _warn(planning: Planning, pipeline: Pipeline, refusal: Refusal) -> None:
    """Warns of calls that are slower, or mix less, than necessary."""
    check_buffers(planning.left, None if pipeline.shuffle else refusal)
    first = planning.left[0] if planning.left else None
    is_batch = first is not None and nodes.method_of(first) in BATCHES
    if is_batch and pipeline.parses_needlessly and not planning.unlifted:
        warn_once("parse", f"Records are parsed one by one before {call_text(first)}", refusal)


def check_buffers(calls: Sequence[Any], why: Refusal | None) -> None:
    """Raises an error if a call that TensorFlow makes is a shuffle that only a plan can make.

    Warns of any other shuffle, unless records are shuffled already. `why` is the reason why the
    first call is TensorFlow's.
    """
    for number, call in enumerate(calls):
        if nodes.method_of(call) != "shuffle":
            continue
        order = noted_order(call)
        if order is not None and order.blocks is not None:
            raise ValueError(
                "shuffle(order=...) needs file names that are known when the dataset is made, and "
                "only take, skip, shard and map before it."
            )
        if order is not None and order.whole:
            raise TypeError("shuffle() of this dataset needs a buffer_size.")
        if why is not None:
            first = call_text(calls[0])
            follows = f"it follows {first}, which is not in the plan"
            before = Refusal(follows, f"shuffle before {first.partition('(')[0]}")
            what = f"{call_text(call)} shuffles through a buffer"
            warn_once("shuffle", what, before if number else why)


def _if_it_gains(planning: Planning, pipeline: Pipeline, refusal: Refusal) -> ChainPlan:
    left, why_no_blocks = planning.left, ""
    try:
        pipeline = _of_blocks(planning, pipeline)
    except RefusedError as refused:
        why_no_blocks = str(refused)
    if pipeline.batch is None or pipeline.in_blocks:
        pipeline = replace(pipeline, saves_positions=False)
    if planning.cache is not None:
        if pipeline.elements is None and not _makes_the_same(pipeline):
            raise RefusedError(refusal if refusal.why else KEPT)
        left.insert(0, planning.cache)
    why_not = why_no_gain(left, pipeline)
    if why_not is not None:
        if left and not has_rule(left[0]) and why_no_blocks:
            raise RefusedError(f"{call_text(left[0])} takes single elements: {why_no_blocks}")
        raise RefusedError(refusal if refusal.why else why_not)
    for call in left:
        if not nodes.can_be_moved(call):
            raise RefusedError(f"{call_text(call)} cannot be put after what is planned")
    return _planned(planning, pipeline, refusal)


def _of_blocks(planning: Planning, pipeline: Pipeline) -> Pipeline:
    """Returns the pipeline with single elements, read in blocks, if it has no batch()."""
    if pipeline.batch is not None or not pipeline.record_calls:
        raise RefusedError("nothing is made of single elements")
    before = planning.before_batches(pipeline)
    if pipeline.shuffle is None and not planning.in_order:
        raise RefusedError("no order of its elements is known")
    return of_single_elements(before, planning.unlifted, planning.cache is not None)


def _makes_the_same(pipeline: Pipeline) -> bool:
    """True if maps make the same element of a record in each epoch, and run on whole batches."""
    lifted = pipeline.lifted
    return lifted is not None and not lifted.by_element and all(map(is_constant, lifted.functions))


def why_no_gain(calls: Sequence[Any], planned: Pipeline | None = None) -> Refusal | None:
    """Returns the reason why the calls gain nothing for any files. Opens nothing.

    `planned` is the pipeline before the calls, if any. This pipeline alone gains nothing.
    """
    if planned is not None and planned.batch is not None:
        return None
    methods = list(map(nodes.method_of, calls))
    gains = "shuffle" in methods if planned is None else planned.shuffle is not None
    for method, call in zip(methods, calls, strict=True):
        if planned is None and parses_examples(call):  # blocks are parsed before any call
            return None
        if method in _LOSING and (planned is not None or method not in BATCHES):
            return Refusal(f"{call_text(call)} takes elements one by one")
        if method in BATCHES:
            batch = batch_of(call)
            if planned is None and (batch is None or batch.rows < MIN_ROWS):
                return Refusal(f"a batch of fewer than {MIN_ROWS} rows gains nothing")
            gains = gains or planned is None
            break
    return None if gains else Refusal("elements come one by one", "batch()")


def _begun(planning: Planning, records: Records | AskedRecords) -> Pipeline:
    """Returns the pipeline of all records, in their order. May build indexes."""
    if isinstance(records, AskedRecords):
        asked = records.source
        assert asked is not None
        return Pipeline(asked, EVERYTHING if asked.has_known_order else None)
    names = records.names
    if not names.files:
        raise RefusedError("there are no files")
    if any(b"://" in name and not _is_reached(name) for name in names.files):
        raise RefusedError("only TensorFlow can read names with such a scheme")
    if names.epochs != 1 and records.has_order and records.turns != 1 and records.parts is None:
        # A file may still be read when its next turn begins, so each turn opens it.
        repeated = None if records.opening.compression else names.repeated
        if repeated is not None and len(repeated) <= _MOST_TURNS * len(names.files):
            names = names._replace(files=tuple(repeated), epochs=1)
            records = records._replace(names=names)
    order_of_files = None
    # Without an order of turns, file after file is an order that TensorFlow could have given.
    planning.in_order = not names.shuffled
    if not _comes_shuffle(planning, of_all=names.shuffled):
        # An order that all iterations keep stays TensorFlow's, because TensorFlow may read another
        # dataset in the same order.
        if names.shuffle is not None and not is_kept(names.shuffle):
            order_of_files = order_of(names.shuffle)
            planning.in_order = order_of_files is not None
            why = "each iteration has another order of the files"
            planning.of_names.append(
                Step(f"{call_text(names.shuffle)} of the file names", True, why)
            )
        if names.shuffled and (order_of_files is None or records.parts is not None):
            raise RefusedError("its files come in a random order", "shuffle() of the records")
        if names.epochs != 1 and records.keeps_turns and records.turns != 1:
            raise RefusedError(
                "tfrfast does not interleave so many repeated files", "repeat() after the records"
            )
    pipeline = Pipeline(_source(records, order_of_files), EVERYTHING)
    if records.parts is not None:
        pipeline = _of_parts(planning, pipeline, records.parts)
    if names.epochs != 1:
        assert pipeline.sequence is not None
        pipeline = replace(pipeline, sequence=pipeline.sequence.repeat(names.epochs))
    return planning.counted(pipeline) if any(map(is_ours, names.files)) else pipeline


def _is_reached(name: bytes) -> bool:
    try:
        return is_ours(name)
    except ModuleNotFoundError:  # TensorFlow reports the error of the name
        return False


def _comes_shuffle(planning: Planning, of_all: bool) -> bool:
    """True if a shuffle of records follows; with `of_all`, of all records in each iteration."""
    passed = _ALL_BEFORE_A_SHUFFLE if of_all else _BEFORE_A_SHUFFLE
    for call in planning.left:
        method = nodes.method_of(call)
        if method == "shuffle":
            return True
        if method not in passed and not nodes.takes_all(call):
            return False
    return False


def _source(records: Records, order_of_files: SeededOrder | None) -> Source:
    names = list(records.names.files)
    tensor = tf.constant(names, tf.string)
    dataset = tf.data.Dataset.from_tensor_slices(tensor)
    turns = records.turns if records.has_order or order_of_files is not None else 1
    storage = Storage(None)
    reach_urls(names, storage)
    return Source(
        FileNames(dataset, tensor, names, shuffle=order_of_files),
        skip_damage=records.opening.skip_damage,
        compression=records.opening.compression,
        storage=storage,
        num_parallel_reads=None if turns == 1 else turns,
        turns=turns,
        block_records=records.block,
    )


def _of_parts(planning: Planning, pipeline: Pipeline, parts: Sequence[FilePart]) -> Pipeline:
    """Returns the records of partly read files, if they are consecutive. May build indexes."""
    if len(parts) == 1:
        wanted = EVERYTHING.narrowed("skip", parts[0].skip).narrowed("take", parts[0].take)
        return replace(pipeline, sequence=wanted)
    takes_turns = pipeline.source.takes_turns
    if takes_turns and not _comes_shuffle(planning, of_all=True):
        raise RefusedError("tfrfast does not interleave parts of files", "shuffle() of the records")
    planning.in_order = not takes_turns
    counted = planning.counted(pipeline)
    source = replace(counted.source, turns=1, num_parallel_reads=None).planned(True)
    if source is None or source.plan is None or source.plan.damage:
        raise RefusedError("files that are read in part are missing or damaged")
    wanted_records = _in_a_row(parts, source.plan.file_records)
    if wanted_records is None:
        raise RefusedError("tfrfast does not plan parts of files with records between them")
    return replace(pipeline, source=source, sequence=replace(EVERYTHING, records=wanted_records))


def _in_a_row(parts: Sequence[FilePart], file_records: Sequence[int]) -> range | None:
    """Returns the range of read records among all; None if they are not consecutive."""
    wanted, file_first = range(0), 0
    for part, count in zip(parts, file_records, strict=True):
        of_file = EVERYTHING.over(count).narrowed("skip", part.skip).narrowed("take", part.take)
        first, taken = file_first + of_file.records.start, len(of_file.records)
        if taken and wanted and first != wanted.stop:
            return None
        if taken:
            wanted = range(wanted.start if wanted else first, first + taken)
        file_first += count
    return wanted
