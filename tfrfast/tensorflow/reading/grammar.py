"""The grammar: a rule for each call of tf.data, which adds the call to a planned pipeline.

A call is a dataset object of TensorFlow. `tfr.TFRecordDataset` applies the grammar to each call as
it is made, `tfr.accelerate` to all calls of a finished dataset.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.tensorflow.history import OF_EACH, History, Refusal, Step, lifted_step
from tfrfast.tensorflow.integers import static_integer
from tfrfast.tensorflow.lifting.of_batches import Divided, divided
from tfrfast.tensorflow.lifting.padding import Padding
from tfrfast.tensorflow.pipeline import Pipeline
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.reading.shuffles import order_of
from tfrfast.tensorflow.recognition import features_of_map, features_of_parsing, parses_examples

_PARSED = "as parse_example(): records are decoded where they are read"
_NAMES_OF_ROWS = {
    "_MapAndBatchDataset": ("batch_size_t", "drop_remainder_t"),
    "_RebatchDataset": ("batch_sizes", "drop_remainder"),
}
#: Why batches before ignore_errors() are made of single elements.
LEAVES_OUT = "ignore_errors() after it leaves out single elements"
_COUNTED = "the indexes count the records"
#: The refusal of a call without a rule.
THEIRS = Refusal("it is TensorFlow's")
_EXACT = "an exact order of all records that are left"


class Taken(NamedTuple):
    """The pipeline after one more call."""

    pipeline: Pipeline
    #: True if the pipeline does the work of the call. Otherwise tf.data makes the call after the
    #: pipeline.
    fused: bool = True
    why: str = ""
    #: The call that tf.data makes instead, after the pipeline.
    rest: Any = None


def taken(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    """Returns the pipeline after the call. A shuffle or interleaved files may build indexes."""
    rule = _RULES.get(nodes.kind(call))
    return THEIRS if rule is None else rule(pipeline, call)


def history_of(pipeline: Pipeline, steps: tuple[Step, ...]) -> History:
    """Returns the treatment of the pipeline's calls."""
    lifted, single = pipeline.lifted, pipeline.single
    if lifted is not None:
        of, after = "blocks" if pipeline.in_blocks else "batches", 0
        if single is not None:
            after = len(single.calls)
        of_each = [number for number, step in enumerate(steps) if step.why == OF_EACH]
        changed = of_each[: len(of_each) - after]
        steps = tuple(
            lifted_step(step, lifted.by_element, lifted.differing, of) if n in changed else step
            for n, step in enumerate(steps)
        )
    is_planned = pipeline.sequence is not None
    return History(
        pipeline.source.description, is_planned, steps, is_ordered=pipeline.shuffle is not None
    )


def _taken(made: Pipeline | Refusal, fused: bool = True, why: str = "") -> Taken | Refusal:
    return made if isinstance(made, Refusal) else Taken(made, fused, why)


def _take(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    return _taken(pipeline.narrowed("take", nodes.attribute(call, "count")))


def _skip(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    return _taken(pipeline.narrowed("skip", nodes.attribute(call, "count")))


def _shard(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    arguments = nodes.attribute(call, "num_shards"), nodes.attribute(call, "index")
    return _taken(pipeline.narrowed("shard", *arguments))


def _repeat(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    return _taken(pipeline.repeated(nodes.attribute(call, "count")))


def _shuffle(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    order = order_of(call)
    if order is None:
        return Refusal("the seed is known only in the graph", "give a Python integer")
    why = _EXACT
    if pipeline.sequence is not None and pipeline.sequence.repeated:
        why += ", each once an epoch"
    if pipeline.cached:
        why += "; cache() is left out, as the system keeps the files in memory"
    return _taken(pipeline.shuffled(order), why=why)


def _batch(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    in_parallel = nodes.kind(call) == "_ParallelBatchDataset"
    return _taken(replace(pipeline, parallel_batch=in_parallel).batched(*rows_of(call)))


def _map_and_batch(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    mapped = pipeline.with_map(nodes.map_of(call))
    made = mapped if isinstance(mapped, Refusal) else mapped.batched(*rows_of(call))
    return _taken(made, why=OF_EACH)  # until the lifted parse is known


def _padded_batch(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    if not pipeline.elementwise:  # strings need no padding
        return _batch(pipeline, call)
    flat = [nodes.flattened(call, name) for name in ("padded_shapes", "padding_values")]
    shapes = [tf.get_static_value(each) for each in flat[0]]
    if any(shape is None for shape in shapes):
        return Refusal("a padded shape is known only in the graph", "give Python integers")
    padding = Padding(tuple(tuple(map(int, shape)) for shape in shapes), tuple(flat[1]))
    return _taken(pipeline.batched(*rows_of(call), padding))


def _rebatch(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    return _taken(pipeline.rebatched(*rows_of(call)))


def rows_of(call: Any) -> tuple[int | None, Any]:
    """Returns the rows of a batch, and True if the last batch must be full; None if unknown."""
    rows, drop_remainder = _NAMES_OF_ROWS.get(nodes.kind(call), ("batch_size", "drop_remainder"))
    drop = tf.get_static_value(nodes.attribute(call, drop_remainder))
    return static_integer(nodes.attribute(call, rows)), drop


def cuts_rows_again(call: Any, following: Any) -> bool:
    """True if the calls are unbatch() and batch() of rows of one shape, together a rebatch()."""
    is_cut = nodes.kind(following) in ("_BatchDataset", "_ParallelBatchDataset")
    if nodes.kind(call) != "_UnbatchDataset" or not is_cut or rows_of(following)[0] is None:
        return False
    specs = tf.nest.flatten(call.element_spec)
    return all(isinstance(e, tf.TensorSpec) and e.shape.is_fully_defined() for e in specs)


def _parse_example(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    features = features_of_parsing(call)
    if features is None:
        return Refusal("its features are more than columns")
    return _taken(pipeline.parsed(features), why=_PARSED)


def _cache(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    name = tf.get_static_value(nodes.attribute(call, "filename"))
    known = None if name is None else os.fsdecode(getattr(name, "item", lambda: name)())
    why = "in memory, until records are read in another order or in batches"
    return _taken(pipeline.in_memory(known), fused=False, why=why)


def _assert_cardinality(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    return _taken(pipeline.counted(nodes.attribute(call, "expected_cardinality")), why=_COUNTED)


def _prefetch(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    made = pipeline.with_prefetch(nodes.attribute(call, "buffer_size"))
    return _taken(made, fused=False, why="after what is planned")


def _with_options(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    made = pipeline.with_options(nodes.attribute(call, "options_attr"))
    return Taken(made, fused=False, why="for the whole pipeline")


def _map(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    # A map() turns each element into one element, so calls that reorder elements may come before
    # the map().
    if pipeline.batch is None:
        return _taken(pipeline.with_map(call), fused=False, why=OF_EACH)
    features = features_of_map(call)
    made = None if features is None else pipeline.parsed(features)
    if isinstance(made, Pipeline):
        return Taken(made, why=_PARSED)
    parts = divided(call) if pipeline.lifts else None
    if isinstance(parts, Divided):
        made = pipeline.parsed(parts.features)
        if isinstance(made, Pipeline):
            why = "its parse is taken out: records are decoded where they are read"
            return Taken(made, False, why, parts.rest)
    if parses_examples(call):
        instead = ".parse_example(features) first, and then map() for the rest"
        return Refusal("it does more than parse batches", instead)
    return Refusal("it is given batches")


def _filter(pipeline: Pipeline, call: Any) -> Taken | Refusal:
    # The call leaves out the same elements in any order.
    return _taken(pipeline.with_filter(call), fused=False, why=OF_EACH)


_RULES: dict[str, Callable[[Pipeline, Any], Taken | Refusal]] = {
    "CacheDataset": _cache,
    "_AssertCardinalityDataset": _assert_cardinality,
    "_BatchDataset": _batch,
    "_DenseToRaggedDataset": _map,
    "_FilterDataset": _filter,
    "_MapAndBatchDataset": _map_and_batch,
    "_MapDataset": _map,
    "_OptionsDataset": _with_options,
    "_PaddedBatchDataset": _padded_batch,
    "_ParallelBatchDataset": _batch,
    "_ParallelMapDataset": _map,
    "_ParseExampleDataset": _parse_example,
    "_PrefetchDataset": _prefetch,
    "_RebatchDataset": _rebatch,
    "_RepeatDataset": _repeat,
    "_ShardDataset": _shard,
    "_ShuffleDataset": _shuffle,
    "_SkipDataset": _skip,
    "_TakeDataset": _take,
}
