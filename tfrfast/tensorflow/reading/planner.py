"""Plans a finished dataset: divides its calls between tfrfast and TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from tfrfast import _native
from tfrfast.storage.paths import reach
from tfrfast.storage.remote.options import Storage
from tfrfast.tensorflow.history import History, Refusal, Step
from tfrfast.tensorflow.lifting.switch import lifts_parsing
from tfrfast.tensorflow.names import FileNames
from tfrfast.tensorflow.pipeline import Pipeline
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.reading.calls import call_of
from tfrfast.tensorflow.reading.chain import Chain
from tfrfast.tensorflow.reading.grammar import (
    LEAVES_OUT,
    THEIRS,
    cuts_rows_again,
    history_of,
    rows_of,
    taken,
)
from tfrfast.tensorflow.reading.shuffles import is_kept, order_of
from tfrfast.tensorflow.reading.sources import FilePart, Records
from tfrfast.tensorflow.recognition import parses_examples
from tfrfast.tensorflow.schemes import is_ours
from tfrfast.tensorflow.sequence import EVERYTHING, Progression, SeededOrder
from tfrfast.tensorflow.source import Source

#: Larger data sets are not indexed without request.
INDEXED_BYTES = 16 << 30
#: For smaller batches, planning costs more than a plan saves.
MIN_ROWS = 8
_INDEX = "tfrfast index"

_BATCHES = {
    "_BatchDataset",
    "_MapAndBatchDataset",
    "_PaddedBatchDataset",
    "_ParallelBatchDataset",
}
_MAPS = {"_DenseToRaggedDataset", "_MapDataset", "_ParallelMapDataset"}
# Calls that commute with calls that reorder or repeat elements.
_ANYWHERE = {"_FilterDataset", "_OptionsDataset", "_PrefetchDataset", *_MAPS}
# Calls that handle single elements, which costs more than a plan of their order saves.
_LOSING = {"_GroupByWindowDataset", "_PaddedBatchDataset", "_WindowDataset"}
_BEFORE_A_SHUFFLE = {
    "CacheDataset",
    "_AssertCardinalityDataset",
    "_RepeatDataset",
    "_ShardDataset",
    "_SkipDataset",
    "_TakeDataset",
    *_ANYWHERE,
}


# After these calls, each epoch cuts the same batches of a cache()'s elements.
_BETWEEN_CACHE_AND_BATCH = {
    "_OptionsDataset",
    "_PrefetchDataset",
    "_ShardDataset",
    "_SkipDataset",
    "_TakeDataset",
    *_BATCHES,
    *_MAPS,
}
_KEPT = Refusal("cache() keeps what map() made", "cache() before map(), or after batch()")
# After these calls, a shuffle still covers all records.
_ALL_BEFORE_A_SHUFFLE = {"CacheDataset", "_AssertCardinalityDataset", "_RepeatDataset"}


@dataclass(frozen=True)
class Plan:
    """The pipeline that tfrfast runs, and the calls that follow in tf.data."""

    pipeline: Pipeline
    rest: tuple[Any, ...]
    history: History


def plan(chain: Chain) -> Plan | Refusal:
    """Plans a chain, or says why not. Opens files if an index is needed. Raises the errors of
    opening.
    """
    return _Planner(chain).plan()


class _Planner:
    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._records = chain.records
        self._steps: list[Step] = []
        self._left = list(chain.calls)
        self._ended: Refusal | None = None  # the reason why the next call is not planned
        #: A cache() of mapped elements, which keeps batches instead.
        self._cache: Any = None
        #: True if the order of records is known without a shuffle.
        self._in_order = chain.records.has_order
        #: The order of the files, if files are shuffled and records are not. An order that all
        #: iterations keep stays TensorFlow's, because TensorFlow may read another dataset in the
        #: same order.
        self._file_shuffle: SeededOrder | None = None
        of_names = chain.records.names.shuffle
        of_all = chain.records.names.shuffled
        if of_names is not None and not is_kept(of_names) and not self._comes_shuffle(of_all):
            self._file_shuffle = order_of(of_names)
            self._in_order = self._file_shuffle is not None
            why = "each iteration has another order of the files"
            self._steps.append(Step(f"{call_of(of_names)} of the file names", True, why))

    def plan(self) -> Plan | Refusal:
        why_not = _why_not_read(self._records) or self._why_no_order()
        if why_not is not None:
            return why_not
        source = _source(self._records, self._file_shuffle)
        once = Pipeline(source, EVERYTHING, lifts=lifts_parsing(None))
        whole = once if self._records.parts is None else self._of_parts(once)
        epochs = self._records.names.epochs
        pipeline = whole if isinstance(whole, Refusal) or epochs == 1 else whole.repeated(epochs)
        if self._has_urls() and not isinstance(pipeline, Refusal):
            pipeline = self._counted(pipeline)
        if isinstance(pipeline, Refusal):
            return pipeline
        refusal = Refusal("")
        while self._left and not (self._cache is not None and pipeline.batch is not None):
            call = self._left[0]
            if self._cache is not None and nodes.kind(call) not in _BETWEEN_CACHE_AND_BATCH:
                refusal = _KEPT
                break
            made = _CONDITIONS.get(nodes.kind(call), _Planner._taken)(self, pipeline, call)
            if isinstance(made, Refusal):
                refusal = made
                break
            self._left.pop(0)
            pipeline = made
            if self._ended is not None:
                refusal = self._ended
                break
        return self._planned(pipeline, refusal)

    def _of_blocks(self, pipeline: Pipeline) -> Pipeline | Refusal:
        """Returns the pipeline with single elements, read in blocks, if it has no batch()."""
        if pipeline.batch is not None or not pipeline.elementwise:
            return Refusal("nothing is made of single elements")
        if self._ignores_batches():
            return Refusal(LEAVES_OUT)
        if pipeline.shuffle is None and not self._in_order:
            return Refusal("no order of its elements is known")
        needs_indexes = pipeline.source.takes_turns and pipeline.shuffle is None
        counted = self._counted(pipeline) if needs_indexes else pipeline
        return counted if isinstance(counted, Refusal) else counted.of_blocks()

    def _of_parts(self, pipeline: Pipeline) -> Pipeline | Refusal:
        """Returns the records of partly read files, if they are consecutive. May build indexes."""
        parts = self._records.parts
        assert parts is not None
        if len(parts) == 1:
            left = pipeline.narrowed("skip", parts[0].skip)
            return left if isinstance(left, Refusal) else left.narrowed("take", parts[0].take)
        if pipeline.source.takes_turns and not self._comes_shuffle(of_all=True):
            return Refusal("interleaved files are read in part", "shuffle() of the records")
        self._in_order = not pipeline.source.takes_turns
        counted = self._counted(pipeline)
        if isinstance(counted, Refusal):
            return counted
        source = replace(counted.source, turns=1, num_parallel_reads=None).planned(True)
        if source is None or source.plan is None or source.plan.damage:
            return Refusal("files that are read in part are missing or damaged")
        records = _on_end(parts, source.plan.file_records(len(parts)))
        if records is None:
            return Refusal("records between those that are read are left out")
        return replace(pipeline, source=source, sequence=replace(EVERYTHING, records=records))

    def _planned(self, pipeline: Pipeline, refusal: Refusal) -> Plan | Refusal:
        blocks = self._of_blocks(pipeline)
        pipeline = pipeline if isinstance(blocks, Refusal) else blocks
        if pipeline.batch is None or pipeline.in_blocks:
            pipeline = replace(pipeline, saves_positions=False)
        if self._cache is not None:
            if pipeline.single is None and not _makes_the_same(pipeline):
                return refusal if refusal.why else _KEPT
            self._left.insert(0, self._cache)
        why_not = why_no_gain(self._left, pipeline)
        if why_not is not None:
            if refusal is THEIRS and isinstance(blocks, Refusal):
                return Refusal(f"{call_of(self._left[0])} takes single elements: {blocks.why}")
            return refusal if refusal.why else why_not
        for call in self._left:
            if not nodes.can_be_moved(call):
                return Refusal(f"{call_of(call)} cannot be put after what is planned")
        history = history_of(pipeline, tuple(self._steps))
        shown = [call for call in self._left if not nodes.is_helper(call)]
        for number, call in enumerate(shown):
            why, instead = refusal if number == 0 else ("", "")
            if number and cuts_rows_again(shown[number - 1], call):
                why = "as rebatch(): rows are not taken apart"
            step = Step(call_of(call), False, why, instead, ends_plan=number == 0)
            history = history.then(step)
        return Plan(pipeline, tuple(self._left), history)

    def _why_no_order(self) -> Refusal | None:
        """Returns the reason why records cannot come in an order that TensorFlow could give."""
        records, names = self._records, self._records.names
        if self._comes_shuffle(of_all=names.shuffled):
            return None
        if names.shuffled and (self._file_shuffle is None or records.parts is not None):
            return Refusal("its files come in a random order", "shuffle() of the records")
        if names.epochs != 1 and records.keeps_turns and records.turns != 1:
            return Refusal("repeated files are interleaved", "repeat() after the records")
        return None

    def _comes_shuffle(self, of_all: bool) -> bool:
        """True if a shuffle of records follows; with `of_all`, of all records in each iteration."""
        passed = _ALL_BEFORE_A_SHUFFLE if of_all else _BEFORE_A_SHUFFLE
        for call in self._left:
            kind = nodes.kind(call)
            if kind == "_ShuffleDataset":
                return True
            if kind not in passed and kind not in _ANYWHERE and not nodes.takes_all(call):
                return False
        return False

    def _ignores_batches(self) -> bool:
        """True if ignore_errors() leaves out whole batches. Then the elements that are lost with a
        bad element depend on tf.data's own batches: its optimiser joins a map() with the batch().
        """
        kinds = list(map(nodes.kind, self._left))
        if "_IgnoreErrorsDataset" not in kinds:
            return False
        return not _BATCHES.isdisjoint(kinds[: kinds.index("_IgnoreErrorsDataset")])

    def _say(self, call: Any, fused: bool = True, why: str = "") -> None:
        self._steps.append(Step(call_of(call), fused, why))

    def shuffle(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        if pipeline.shuffle is not None and pipeline.batch is None:
            if not pipeline.shuffle.reshuffles and not is_kept(call):
                return Refusal("the shuffle() before it has one order in all iterations")
            self._say(call, why="the order before it is exact")
            return pipeline
        counted = pipeline if pipeline.batch is not None else self._counted(pipeline)
        made = counted if isinstance(counted, Refusal) else taken(counted, call)
        if isinstance(made, Refusal):
            return made
        source_plan, remote = made.pipeline.source.plan, made.pipeline.source.remote_records
        assert source_plan is not None
        if remote is not None and remote.cost("tfr.TFRecordDataset", "dataset") is not None:
            return Refusal("small records on a network would be asked for one by one")
        if (
            self._records.opening.compression
            and source_plan.stream_bytes > _native.inflated_bytes()
        ):
            return Refusal("records of compressed files that do not fit into memory are shuffled")
        self._say(call, why=made.why)
        return made.pipeline

    def count(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        counted = self._counted(pipeline)
        return counted if isinstance(counted, Refusal) else self._taken(counted, call)

    def cache(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        """Keeps whole batches in place of elements, if each epoch cuts the same batches."""
        sequence = pipeline.sequence
        if not pipeline.elementwise or not nodes.is_memory_cache(call) or sequence is None:
            return self._taken(pipeline, call)
        if sequence.shuffle is not None or sequence.repeated or sequence.batch is not None:
            return self._taken(pipeline, call)
        self._cache = call
        return pipeline

    def batch(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        rows, _ = rows_of(call)
        if rows is not None and rows < MIN_ROWS:
            return Refusal(f"a batch of fewer than {MIN_ROWS} rows gains nothing")
        is_mapped = pipeline.elementwise or nodes.kind(call) == "_MapAndBatchDataset"
        if is_mapped and self._ignores_batches():
            return Refusal(LEAVES_OUT)
        needs_indexes = pipeline.source.takes_turns and pipeline.shuffle is None
        counted = self._counted(pipeline) if needs_indexes else pipeline
        return counted if isinstance(counted, Refusal) else self._taken(counted, call)

    def _counted(self, pipeline: Pipeline) -> Pipeline | Refusal:
        """Returns the pipeline with counted records, or with records that may be counted without
        request.

        Records of large or remote files are counted only by indexes that every process sees.
        """
        if pipeline.source.plan is not None:
            return pipeline
        size = None if self._has_urls() else _bytes_of(self._records)
        if size is not None and size <= INDEXED_BYTES:
            return pipeline
        source = pipeline.source.planned(build_indexes=False, beside=True)
        if source is not None:
            return replace(pipeline, source=source)
        what = "files on a network" if size is None else f"{size:,} bytes"
        return Refusal(f"{what} are not indexed unasked, and have no index beside them", _INDEX)

    def _has_urls(self) -> bool:
        return any(map(is_ours, self._records.names.files))

    def _taken(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        made = taken(pipeline, call)
        if isinstance(made, Refusal):
            return made
        if made.rest is not None:
            self._left[1:1] = [made.rest]
            self._ended = Refusal(made.why)
            return made.pipeline
        self._say(call, made.fused, made.why)
        return made.pipeline


#: Calls that are planned only under conditions, because the user has not asked for tfrfast by name.
_CONDITIONS: dict[str, Callable[[_Planner, Pipeline, Any], Pipeline | Refusal]] = {
    "CacheDataset": _Planner.cache,
    "_AssertCardinalityDataset": _Planner.count,
    "_BatchDataset": _Planner.batch,
    "_MapAndBatchDataset": _Planner.batch,
    "_PaddedBatchDataset": _Planner.batch,
    "_ParallelBatchDataset": _Planner.batch,
    "_RebatchDataset": _Planner.batch,
    "_ShuffleDataset": _Planner.shuffle,
}


def _why_not_read(records: Records) -> Refusal | None:
    """Returns the reason why TensorFlow reads the files. Opens nothing."""
    names = records.names.files
    if not names:
        return Refusal("there are no files")
    if any(b"://" in name and not _is_reached(name) for name in names):
        return Refusal("names with such a scheme are read by TensorFlow")
    return None


def _is_reached(name: bytes) -> bool:
    try:
        return is_ours(name)
    except ModuleNotFoundError:  # TensorFlow reports the error of the name
        return False


def _source(records: Records, file_shuffle: SeededOrder | None) -> Source:
    names = list(records.names.files)
    tensor = tf.constant(names, tf.string)
    dataset = tf.data.Dataset.from_tensor_slices(tensor)
    turns = records.turns if records.has_order or file_shuffle is not None else 1
    storage = Storage(None)
    if urls := [os.fsdecode(each) for each in names if is_ours(each)]:
        reach(urls, storage)
    return Source(
        FileNames(dataset, tensor, names, shuffle=file_shuffle),
        skip_damage=records.opening.skip_damage,
        zero_copy=records.opening.zero_copy,
        compression=records.opening.compression,
        storage=storage,
        num_parallel_reads=None if turns == 1 else turns,
        turns=turns,
        block_records=records.block,
    )


def _bytes_of(records: Records) -> int:
    """Returns the bytes of all files. Raises tf.errors.OpError if a file is missing. TensorFlow
    then reports the file when it reads the file.
    """
    return sum(tf.io.gfile.stat(os.fsdecode(name)).length for name in records.names.files)


def _on_end(parts: Sequence[FilePart], file_records: Sequence[int]) -> Progression | None:
    """Returns the range of read records among all; None if they are not consecutive."""
    first = count = file_first = 0
    for (skip, take), records in zip(parts, file_records, strict=True):
        skipped = records if skip < 0 else min(skip, records)
        taken = records - skipped if take < 0 else min(take, records - skipped)
        if count == 0:
            first = file_first + skipped
        if taken and first + count != file_first + skipped:
            return None
        count += taken
        file_first += records
    return Progression(first, 1, count)


def _makes_the_same(pipeline: Pipeline) -> bool:
    """True if maps make the same element of a record in each epoch, and run on whole batches."""
    lifted = pipeline.lifted
    if lifted is None or lifted.by_element:
        return False
    return not any(
        _captures_state(function) or any(map(_is_stateful, function.graph.get_operations()))
        for function in lifted.functions
    )


def _captures_state(function: Any) -> bool:
    """True if the function uses variables or tables, which may change."""
    return any(each.dtype in (tf.resource, tf.variant) for each in function.captured_inputs)


def _is_stateful(operation: Any) -> bool:
    return operation.op_def is None or operation.op_def.is_stateful


def why_no_gain(calls: Sequence[Any], planned: Pipeline | None = None) -> Refusal | None:
    """Returns the reason why the calls gain nothing for any files. Opens nothing.

    `planned` is the pipeline before the calls, if any. This pipeline alone gains nothing.
    """
    if planned is not None and planned.batch is not None:
        return None
    kinds = [nodes.kind(call) for call in calls]
    gains = "_ShuffleDataset" in kinds if planned is None else planned.shuffle is not None
    for kind, call in zip(kinds, calls, strict=True):
        if planned is None and parses_examples(
            call
        ):  # blocks of records are parsed before any call
            return None
        if kind in _LOSING and (planned is not None or kind not in _BATCHES):
            return Refusal(f"{call_of(call)} takes elements one by one")
        if kind in _BATCHES:
            rows, _ = rows_of(call)
            if planned is None and (rows is None or rows < MIN_ROWS):
                return Refusal(f"a batch of fewer than {MIN_ROWS} rows gains nothing")
            gains = gains or planned is None
            break
    return None if gains else Refusal("elements come one by one", "batch()")
