"""Plans a chain: divides its calls between tfrfast and TensorFlow."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from tfrfast.storage.paths import reach
from tfrfast.storage.remote.options import Storage
from tfrfast.tensorflow.asked import AskedRecords
from tfrfast.tensorflow.history import OF_EACH, Refusal, Step, lifted_step
from tfrfast.tensorflow.lifting.switch import why_unlifted as environment
from tfrfast.tensorflow.names import FileNames
from tfrfast.tensorflow.pipeline import Pipeline
from tfrfast.tensorflow.purity import is_constant
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.reading.calls import call_of
from tfrfast.tensorflow.reading.chain import Chain
from tfrfast.tensorflow.reading.shuffles import is_kept, noted_order, order_of
from tfrfast.tensorflow.reading.sources import FilePart, Records
from tfrfast.tensorflow.recognition import parses_examples
from tfrfast.tensorflow.rules import (
    BATCHES,
    KEPT,
    LEAVES_OUT,
    MAPS,
    MIN_ROWS,
    Planning,
    cuts_rows_again,
    has_rule,
    rows_of,
    taken,
)
from tfrfast.tensorflow.saving import bears
from tfrfast.tensorflow.schemes import is_ours
from tfrfast.tensorflow.sequence import EVERYTHING, Progression, SeededOrder
from tfrfast.tensorflow.slow_paths import warn_once
from tfrfast.tensorflow.source import Source

# Calls that commute with calls that reorder or repeat elements.
_ANYWHERE = {"filter", "with_options", "prefetch", *MAPS}
# The shapes of elements tell TensorFlow how many elements such a call makes.
_COUNTED_BY_SHAPE = {"rebatch", "unbatch"}
# Calls that handle single elements, which costs more than a plan of their order saves.
_LOSING = {"group_by_window", "padded_batch", "window"}
# After these calls, a shuffle still covers all records.
_ALL_BEFORE_A_SHUFFLE = {"cache", "assert_cardinality", "repeat"}
_BEFORE_A_SHUFFLE = {
    "shard",
    "skip",
    "take",
    *_ALL_BEFORE_A_SHUFFLE,
    *_ANYWHERE,
}


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
        if any(nodes.kind(call) in _COUNTED_BY_SHAPE for call in self.rest):
            return None
        numbered = tf.data.Dataset.range(self.counted.length)
        try:
            for call in self.rest:
                if nodes.kind(call) != "parse_example":  # which takes strings
                    numbered = nodes.moved(call, [numbered])
            length = int(numbered.cardinality())
        except tf.errors.OpError:  # TensorFlow asks what such elements are
            return None
        return length if length >= 0 else None


def plan(chain: Chain, why_unlifted: str = "") -> ChainPlan | Refusal:
    """Plans a chain, or says why not, which only happens to records that nobody asked for by name.

    Opens files if an index is needed. Raises the errors of opening. With `why_unlifted`, no
    function is lifted.
    """
    planner = _ByName if isinstance(chain.records, AskedRecords) else _Unasked
    return planner(chain, why_unlifted).plan()


class _Planner:
    def __init__(self, chain: Chain, why_unlifted: str) -> None:
        self._records: Any = chain.records
        self._steps: list[Step] = []
        self._left = list(chain.calls)
        self._planning = Planning(self._asked, self._left, bytes_of_files=self._bytes_of_files)
        self._why_unlifted = why_unlifted or environment()

    _asked = False

    def _begin(self) -> Pipeline | Refusal:
        """Returns the pipeline of all records, in their order."""
        raise NotImplementedError

    def _bytes_of_files(self) -> int | None:
        return None

    def plan(self) -> ChainPlan | Refusal:
        begun = self._begin()
        if isinstance(begun, Refusal):
            return begun
        pipeline, refusal, planning = begun, Refusal(""), self._planning
        while self._left and not (planning.cache is not None and pipeline.batch is not None):
            call = self._left[0]
            made = taken(planning, pipeline, call)
            if isinstance(made, Refusal):
                refusal = made
                break
            self._left.pop(0)
            pipeline = made.pipeline
            if made.rest is not None:
                self._left.insert(0, made.rest)
                refusal = Refusal(made.why)
                break
            if made.told:
                self._steps.append(Step(call_of(call), made.fused, made.why))
        return self._finished(pipeline, refusal)

    def _finished(self, pipeline: Pipeline, refusal: Refusal) -> ChainPlan | Refusal:
        raise NotImplementedError

    def _saved_whole(self, pipeline: Pipeline) -> Pipeline:
        """Returns the pipeline, with checkpoints that hold all elements that are read ahead if a
        later call cannot save positions.
        """
        if pipeline.lifted is None or not pipeline.lifted.raises or all(map(bears, self._left)):
            return pipeline
        return pipeline.saved_whole()

    def _plan(self, pipeline: Pipeline, refusal: Refusal) -> ChainPlan:
        steps = list(_told(pipeline, self._steps))
        shown = [call for call in self._left if not nodes.is_helper(call)]
        for number, call in enumerate(shown):
            why, instead = refusal if number == 0 else ("", "")
            if number and cuts_rows_again(shown[number - 1], call):
                why = "as rebatch(): rows are not taken apart"
            steps.append(Step(call_of(call), False, why, instead, ends_plan=number == 0))
        return ChainPlan(self._saved_whole(pipeline), tuple(self._left), tuple(steps))


class _ByName(_Planner):
    """Plans records that the user asked tfrfast for by name: always."""

    _asked = True

    def _begin(self) -> Pipeline:
        source = self._records.source
        sequence = EVERYTHING if source.has_known_order else None
        return Pipeline(source, sequence, unlifted=self._why_unlifted)

    def _finished(self, pipeline: Pipeline, refusal: Refusal) -> ChainPlan:
        self._warn(pipeline, refusal)
        return self._plan(pipeline, refusal)

    def _warn(self, pipeline: Pipeline, refusal: Refusal) -> None:
        """Warns of calls that are slower, or mix less, than necessary."""
        check_buffers(self._left, None if pipeline.shuffle else refusal)
        first = nodes.kind(self._left[0]) if self._left else ""
        if first in BATCHES and pipeline.parses_needlessly and not pipeline.unlifted:
            text = call_of(self._left[0])
            warn_once("parse", f"Records are parsed one by one before {text}", refusal)


def check_buffers(calls: Sequence[Any], why: Refusal | None) -> None:
    """Raises an error if a call that TensorFlow makes is a shuffle that only a plan can make.

    Warns of any other shuffle, unless records are shuffled already. `why` is the reason why the
    first call is TensorFlow's.
    """
    for number, call in enumerate(calls):
        if nodes.kind(call) != "shuffle":
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
            what = f"{call_of(call)} shuffles through a buffer"
            warn_once("shuffle", what, why if number == 0 else _follows(call_of(calls[0])))


def _follows(call: str) -> Refusal:
    """Returns the reason why no call after `call` is planned."""
    method = call.partition("(")[0]
    return Refusal(f"it follows {call}, which is not in the plan", f"shuffle before {method}")


class _Unasked(_Planner):
    """Plans a finished dataset that anybody made: only what gains."""

    def __init__(self, chain: Chain, why_unlifted: str) -> None:
        super().__init__(chain, why_unlifted)
        #: True if the order of records is known without a shuffle.
        self._in_order = self._records.has_order
        #: The order of the files, if files are shuffled and records are not. An order that all
        #: iterations keep stays TensorFlow's, because TensorFlow may read another dataset in the
        #: same order.
        self._file_shuffle: SeededOrder | None = None
        of_names = self._records.names.shuffle
        of_all = self._records.names.shuffled
        if of_names is not None and not is_kept(of_names) and not self._comes_shuffle(of_all):
            self._file_shuffle = order_of(of_names)
            self._in_order = self._file_shuffle is not None
            why = "each iteration has another order of the files"
            self._steps.append(Step(f"{call_of(of_names)} of the file names", True, why))

    def _begin(self) -> Pipeline | Refusal:
        why_not = _why_not_read(self._records) or self._why_no_order()
        if why_not is not None:
            return why_not
        source = _source(self._records, self._file_shuffle)
        once = Pipeline(source, EVERYTHING, unlifted=self._why_unlifted)
        whole = once if self._records.parts is None else self._of_parts(once)
        epochs = self._records.names.epochs
        pipeline = whole if isinstance(whole, Refusal) or epochs == 1 else whole.repeated(epochs)
        if self._has_urls() and not isinstance(pipeline, Refusal):
            return self._planning.counted(pipeline)
        return pipeline

    def _of_blocks(self, pipeline: Pipeline) -> Pipeline | Refusal:
        """Returns the pipeline with single elements, read in blocks, if it has no batch()."""
        if pipeline.batch is not None or not pipeline.elementwise:
            return Refusal("nothing is made of single elements")
        if self._planning.ignores_batches():
            return Refusal(LEAVES_OUT)
        if pipeline.shuffle is None and not self._in_order:
            return Refusal("no order of its elements is known")
        needs_indexes = pipeline.source.takes_turns and pipeline.shuffle is None
        counted = self._planning.counted(pipeline) if needs_indexes else pipeline
        return counted if isinstance(counted, Refusal) else counted.of_blocks()

    def _of_parts(self, pipeline: Pipeline) -> Pipeline | Refusal:
        """Returns the records of partly read files, if they are consecutive. May build indexes."""
        parts = self._records.parts
        if len(parts) == 1:
            left = pipeline.narrowed("skip", parts[0].skip)
            return left if isinstance(left, Refusal) else left.narrowed("take", parts[0].take)
        if pipeline.source.takes_turns and not self._comes_shuffle(of_all=True):
            return Refusal("interleaved files are read in part", "shuffle() of the records")
        self._in_order = not pipeline.source.takes_turns
        counted = self._planning.counted(pipeline)
        if isinstance(counted, Refusal):
            return counted
        source = replace(counted.source, turns=1, num_parallel_reads=None).planned(True)
        if source is None or source.plan is None or source.plan.damage:
            return Refusal("files that are read in part are missing or damaged")
        records = _on_end(parts, source.plan.file_records(len(parts)))
        if records is None:
            return Refusal("records between those that are read are left out")
        return replace(pipeline, source=source, sequence=replace(EVERYTHING, records=records))

    def _finished(self, pipeline: Pipeline, refusal: Refusal) -> ChainPlan | Refusal:
        blocks = self._of_blocks(pipeline)
        pipeline = pipeline if isinstance(blocks, Refusal) else blocks
        if pipeline.batch is None or pipeline.in_blocks:
            pipeline = replace(pipeline, saves_positions=False)
        if self._planning.cache is not None:
            if pipeline.single is None and not _makes_the_same(pipeline):
                return refusal if refusal.why else KEPT
            self._left.insert(0, self._planning.cache)
        why_not = why_no_gain(self._left, pipeline)
        if why_not is not None:
            if self._left and not has_rule(self._left[0]) and isinstance(blocks, Refusal):
                return Refusal(f"{call_of(self._left[0])} takes single elements: {blocks.why}")
            return refusal if refusal.why else why_not
        for call in self._left:
            if not nodes.can_be_moved(call):
                return Refusal(f"{call_of(call)} cannot be put after what is planned")
        return self._plan(pipeline, refusal)

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
            if kind == "shuffle":
                return True
            if kind not in passed and kind not in _ANYWHERE and not nodes.takes_all(call):
                return False
        return False

    def _bytes_of_files(self) -> int | None:
        return None if self._has_urls() else _bytes_of(self._records)

    def _has_urls(self) -> bool:
        return any(map(is_ours, self._records.names.files))


def _told(pipeline: Pipeline, steps: Sequence[Step]) -> tuple[Step, ...]:
    """Returns the treatment of the pipeline's calls, with that of lifted maps."""
    lifted, single = pipeline.lifted, pipeline.single
    if lifted is None:
        return tuple(steps)
    of, after = "blocks" if pipeline.in_blocks else "batches", 0
    if single is not None:
        after = len(single.calls)
    of_each = [number for number, step in enumerate(steps) if step.why == OF_EACH]
    changed = of_each[: len(of_each) - after]
    return tuple(
        lifted_step(step, lifted.by_element, lifted.differing, of) if n in changed else step
        for n, step in enumerate(steps)
    )


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
    return lifted is not None and not lifted.by_element and all(map(is_constant, lifted.functions))


def why_no_gain(calls: Sequence[Any], planned: Pipeline | None = None) -> Refusal | None:
    """Returns the reason why the calls gain nothing for any files. Opens nothing.

    `planned` is the pipeline before the calls, if any. This pipeline alone gains nothing.
    """
    if planned is not None and planned.batch is not None:
        return None
    kinds = [nodes.kind(call) for call in calls]
    gains = "shuffle" in kinds if planned is None else planned.shuffle is not None
    for kind, call in zip(kinds, calls, strict=True):
        if planned is None and parses_examples(
            call
        ):  # blocks of records are parsed before any call
            return None
        if kind in _LOSING and (planned is not None or kind not in BATCHES):
            return Refusal(f"{call_of(call)} takes elements one by one")
        if kind in BATCHES:
            rows, _ = rows_of(call)
            if planned is None and (rows is None or rows < MIN_ROWS):
                return Refusal(f"a batch of fewer than {MIN_ROWS} rows gains nothing")
            gains = gains or planned is None
            break
    return None if gains else Refusal("elements come one by one", "batch()")
