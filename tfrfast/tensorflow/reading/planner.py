"""Plans a finished dataset: which calls are read at once, and which stay TensorFlow's."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from tfrfast import _native
from tfrfast.tensorflow.history import OF_EACH, History, Refusal, Step, lifted_step
from tfrfast.tensorflow.integers import static_integer
from tfrfast.tensorflow.lifting.switch import lifts_parsing
from tfrfast.tensorflow.names import FileNames
from tfrfast.tensorflow.pipeline import Pipeline
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.reading.calls import call_of
from tfrfast.tensorflow.reading.chain import Chain
from tfrfast.tensorflow.reading.shuffles import seed_of
from tfrfast.tensorflow.reading.sources import Records
from tfrfast.tensorflow.recognition import features_of_map, features_of_parsing
from tfrfast.tensorflow.schemes import has_scheme
from tfrfast.tensorflow.sequence import EVERYTHING
from tfrfast.tensorflow.source import Source

#: Files of more bytes than this are not indexed unasked.
INDEXED_BYTES = 16 << 30
#: A batch of fewer rows costs more to plan than a plan saves.
MIN_ROWS = 8

_BATCHES = {"_BatchDataset", "_MapAndBatchDataset", "_ParallelBatchDataset"}
_MAPS = {"_MapDataset", "_ParallelMapDataset"}
# Calls that give the same before and after what reorders or repeats elements.
_ANYWHERE = {"_FilterDataset", "_OptionsDataset", "_PrefetchDataset", *_MAPS}
# Calls that handle single elements, which costs more than a plan saves.
_LOSING = {"_GroupByWindowDataset", "_WindowDataset"}
_BEFORE_A_SHUFFLE = {
    "CacheDataset",
    "_RepeatDataset",
    "_ShardDataset",
    "_SkipDataset",
    "_TakeDataset",
    *_ANYWHERE,
}


@dataclass(frozen=True)
class Plan:
    """What is read at once, and the calls that follow it in tf.data."""

    pipeline: Pipeline
    rest: tuple[Any, ...]
    history: History


def plan(chain: Chain) -> Plan | Refusal:
    """Opens files where an index is needed. Raises what opening raises."""
    return _Planner(chain).plan()


class _Planner:
    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._records = chain.records
        self._steps: list[Step] = []
        self._left = list(chain.calls)
        #: How often all is repeated, by calls that come before a shuffle.
        self._epochs = chain.records.names.epochs

    def plan(self) -> Plan | Refusal:
        why_not = _why_not_read(self._records) or self._why_no_order()
        if why_not is not None:
            return why_not
        pipeline = Pipeline(_source(self._records), EVERYTHING, lifts=lifts_parsing(None))
        if not self._comes_shuffle({"_RepeatDataset"}):
            repeated = self._repeated(pipeline)
            if isinstance(repeated, Refusal):
                return repeated
            pipeline = repeated
        refusal = Refusal("")
        while self._left:
            call = self._left[0]
            rule = _RULES.get(nodes.kind(call))
            if rule is None:
                refusal = Refusal("it is TensorFlow's")
                break
            made = rule(self, pipeline, call)
            if isinstance(made, Refusal):
                refusal = made
                break
            self._left.pop(0)
            pipeline = made
        return self._planned(pipeline, refusal)

    def _planned(self, pipeline: Pipeline, refusal: Refusal) -> Plan | Refusal:
        if not _gains(pipeline):
            return refusal if refusal.why else Refusal("nothing is gained without a batch()")
        if pipeline.batch is None and pipeline.shuffle is None and pipeline.source.takes_turns:
            return refusal
        for call in self._left:
            if not nodes.can_be_moved(call):
                return Refusal(f"{call_of(call)} cannot be put after what is planned")
        steps = self._steps
        if pipeline.lifted is not None:
            lifted = pipeline.lifted
            steps = [lifted_step(each, lifted.by_element, lifted.differing) for each in steps]
        for number, call in enumerate(self._left):
            why, instead = refusal if number == 0 else ("", "")
            steps.append(Step(call_of(call), False, why, instead, ends_plan=number == 0))
        history = History(pipeline.source.description, True, tuple(steps))
        return Plan(pipeline, tuple(self._left), history)

    def _why_no_order(self) -> Refusal | None:
        """Why records cannot come as TensorFlow gives them, where that is not left to chance."""
        records = self._records
        if self._comes_shuffle(_BEFORE_A_SHUFFLE):
            return None
        if records.names.shuffled:
            return Refusal("its files come in a random order", "shuffle() of the records")
        if records.turns is None or records.turns == 1:
            return None
        if self._epochs != 1:
            return Refusal("files that are repeated take turns", "repeat() after the records")
        return None

    def _comes_shuffle(self, passed: set[str]) -> bool:
        """Whether records are shuffled next, after calls of these kinds and of `_ANYWHERE`."""
        for call in self._left:
            kind = nodes.kind(call)
            if kind == "_ShuffleDataset":
                return True
            if kind not in passed and kind not in _ANYWHERE:
                return False
        return False

    def _say(self, call: Any, fused: bool = True, why: str = "") -> None:
        self._steps.append(Step(call_of(call), fused, why))

    def _repeated(self, pipeline: Pipeline) -> Pipeline | Refusal:
        epochs, self._epochs = self._epochs, 1
        if epochs == 1:
            return pipeline
        return pipeline.repeated(-1 if epochs is None else epochs)

    def repeat(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        count = static_integer(nodes.attribute(call, "count"))
        if count is None:
            return Refusal("how often it repeats is not known")
        following, self._left = self._left, self._left[1:]
        goes_first = self._comes_shuffle({"_RepeatDataset"})
        self._left = following
        if count == 1:
            self._say(call)
            return pipeline
        if goes_first and pipeline.batch is None and pipeline.shuffle is None:
            endless = count < 0 or self._epochs is None
            self._epochs = None if endless else (self._epochs or 0) * count
            self._say(call, why="each epoch has each record once")
            return pipeline
        return self._fused(call, pipeline.repeated(count))

    def shuffle(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        if pipeline.shuffle is not None and pipeline.batch is None:
            self._say(call, why="the order before it is exact")
            return pipeline
        if pipeline.batch is None and pipeline.source.plan is None:
            size = _bytes_of(self._records)
            if size > INDEXED_BYTES:
                return Refusal(f"{size:,} bytes are more than is indexed unasked", "tfrfast index")
        seed, seeded = seed_of(call)
        reshuffles = nodes.attribute(call, "reshuffle_each_iteration") is not False
        shuffled = pipeline.shuffled(seed, reshuffles, None)
        if isinstance(shuffled, Refusal):
            return shuffled
        assert shuffled.sequence is not None
        assert shuffled.sequence.shuffle is not None
        sequence = replace(
            shuffled.sequence, shuffle=replace(shuffled.sequence.shuffle, seed=seed, seeded=seeded)
        )
        source_plan = shuffled.source.plan
        assert source_plan is not None
        if (
            self._records.opening.compression
            and source_plan.stream_bytes > _native.inflated_bytes()
        ):
            return Refusal("records of compressed files that do not fit into memory are shuffled")
        self._say(call, why="an exact order of all records that are left")
        return self._repeated(replace(shuffled, sequence=sequence))

    def narrow(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        kind = nodes.kind(call)
        if kind == "_ShardDataset":
            arguments = nodes.attribute(call, "num_shards"), nodes.attribute(call, "index")
            return self._fused(call, pipeline.narrowed("shard", *arguments))
        count = nodes.attribute(call, "count")
        if kind == "_TakeDataset":
            return self._fused(call, pipeline.narrowed("take", count))
        return self._fused(call, pipeline.narrowed("skip", count))

    def batch(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        return self._fused(call, self._batched(pipeline, call))

    def map_and_batch(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        mapped = nodes.map_of(call)
        made = pipeline.with_map(_again(mapped), mapped)
        if not isinstance(made, Refusal):
            made = self._batched(made, call)
        if not isinstance(made, Refusal):
            self._say(call, fused=False, why=OF_EACH)  # until it is known what is lifted
        return made

    def _batched(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        rows, drop = _rows_of(call)
        if rows is not None and rows < MIN_ROWS:
            return Refusal(f"a batch of fewer than {MIN_ROWS} rows gains nothing")
        if (
            pipeline.source.takes_turns
            and pipeline.shuffle is None
            and _bytes_of(self._records) > INDEXED_BYTES
        ):
            return Refusal(
                "files that take turns are too large to be indexed unasked", "tfrfast index"
            )
        return pipeline.batched(rows, drop)

    def parse_example(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        features = features_of_parsing(call)
        if features is None:
            return Refusal("its features are more than columns")
        return self._fused(call, pipeline.parsed(features))

    def map(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        if pipeline.batch is None:
            self._say(call, fused=False, why=OF_EACH)
            return pipeline.with_map(_again(call), call)
        features = features_of_map(call)
        if features is None:
            return Refusal("it is given batches")
        parsed = pipeline.parsed(features)
        return self._fused(
            call, parsed, "as parse_example(): records are decoded where they are read"
        )

    def filter(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        made = pipeline.with_filter(_again(call))
        if not isinstance(made, Refusal):
            self._say(call, fused=False, why=OF_EACH)
        return made

    def prefetch(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        return self._fused(call, pipeline.with_prefetch(nodes.attribute(call, "buffer_size")))

    def options(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        return self._fused(call, pipeline.with_options(call.options()))

    def cache(self, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
        name = tf.get_static_value(nodes.attribute(call, "filename"))
        known = None if name is None else os.fsdecode(np.asarray(name).item())
        return self._fused(call, pipeline.in_memory(known))

    def _fused(self, call: Any, made: Pipeline | Refusal, why: str = "") -> Pipeline | Refusal:
        if not isinstance(made, Refusal):
            self._say(call, why=why)
        return made


_RULES: dict[str, Callable[[_Planner, Pipeline, Any], Pipeline | Refusal]] = {
    "CacheDataset": _Planner.cache,
    "_BatchDataset": _Planner.batch,
    "_FilterDataset": _Planner.filter,
    "_MapAndBatchDataset": _Planner.map_and_batch,
    "_MapDataset": _Planner.map,
    "_OptionsDataset": _Planner.options,
    "_ParallelBatchDataset": _Planner.batch,
    "_ParallelMapDataset": _Planner.map,
    "_ParseExampleDataset": _Planner.parse_example,
    "_PrefetchDataset": _Planner.prefetch,
    "_RepeatDataset": _Planner.repeat,
    "_ShardDataset": _Planner.narrow,
    "_ShuffleDataset": _Planner.shuffle,
    "_SkipDataset": _Planner.narrow,
    "_TakeDataset": _Planner.narrow,
}


def _again(call: Any) -> Callable[[Any], Any]:
    return lambda dataset: nodes.moved(call, [dataset])


def _why_not_read(records: Records) -> Refusal | None:
    """Why files are TensorFlow's to read. Nothing is opened."""
    names = records.names.files
    if not names:
        return Refusal("there are no files")
    if any(map(has_scheme, names)) or any(b"://" in name for name in names):
        return Refusal("names with a scheme are read by TensorFlow", "tfr.TFRecordDataset")
    return None


def _source(records: Records) -> Source:
    names = list(records.names.files)
    tensor = tf.constant(names, tf.string)
    dataset = tf.data.Dataset.from_tensor_slices(tensor)
    turns = records.turns if records.has_order else 1
    return Source(
        FileNames(dataset, tensor, names),
        skip_damage=records.opening.skip_damage,
        zero_copy=records.opening.zero_copy,
        compression=records.opening.compression,
        num_parallel_reads=None if turns == 1 else turns,
        turns=turns,
        block_records=records.block,
    )


def _bytes_of(records: Records) -> int:
    """Raises tf.errors.OpError if a file is missing, as TensorFlow says it when its turn comes."""
    return sum(tf.io.gfile.stat(os.fsdecode(name)).length for name in records.names.files)


def _rows_of(call: Any) -> tuple[int | None, Any]:
    """How many rows a batch has, and whether the last one must be full; None if not known."""
    suffix = "_t" if nodes.kind(call) == "_MapAndBatchDataset" else ""
    drop = tf.get_static_value(nodes.attribute(call, f"drop_remainder{suffix}"))
    return static_integer(nodes.attribute(call, f"batch_size{suffix}")), drop


def _gains(pipeline: Pipeline) -> bool:
    return pipeline.batch is not None or pipeline.shuffle is not None


def why_no_gain(chain: Chain) -> Refusal | None:
    """Why the calls gain nothing, whatever the files hold. Nothing is opened."""
    kinds = [nodes.kind(call) for call in chain.calls]
    for kind, call in zip(kinds, chain.calls, strict=True):
        if kind in _LOSING:
            return Refusal(f"{call_of(call)} takes elements one by one")
        if kind in _BATCHES:
            rows, _ = _rows_of(call)
            if rows is not None and rows >= MIN_ROWS:
                return None
            return Refusal(f"a batch of fewer than {MIN_ROWS} rows gains nothing")
    if "_ShuffleDataset" in kinds:
        return None
    return Refusal("elements come one by one", "batch()")
