"""The rules: what a plan does with each call of tf.data.

A call is a dataset object of TensorFlow. A rule returns the pipeline after one more call, or raises
RefusedError with the reason why TensorFlow makes the call, and all later calls. What a rule allows
may depend on the policy: whether the user asked tfrfast for the records by name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast import _native
from tfrfast.features.compiling import compile_features
from tfrfast.loading.shuffle_costs import INFLATES
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.lift.lifted import divided
from tfrfast.tensorflow.lift.variable import Padding
from tfrfast.tensorflow.plan.batching import batched, rebatched, why_streamed
from tfrfast.tensorflow.plan.pipeline import Pipeline
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.file_names import is_ours
from tfrfast.tensorflow.read.nodes import static_integer
from tfrfast.tensorflow.read.shuffles import is_kept, order_of
from tfrfast.tensorflow.read.user_functions import impurity, is_constant, parses_examples
from tfrfast.tensorflow.reasons import Refusal, RefusedError, Step, warn_of
from tfrfast.tensorflow.sequence import EVERYTHING, Batched
from tfrfast.tensorflow.source import Source, exception_from

#: Larger data sets are not indexed without request.
INDEXED_BYTES = 16 << 30
#: For smaller batches, planning costs more than a plan saves.
MIN_ROWS = 8
BATCHES = {"batch", "padded_batch"}
MAPS = {"map", "ragged_batch"}
KEPT = Refusal("cache() keeps what map() made, and later calls are made of it in each epoch")
#: Why batches before ignore_errors() are made of single elements.
LEAVES_OUT = Refusal("ignore_errors() after it leaves out single elements")
# After these calls, each epoch cuts the same batches of a cache()'s elements.
_BETWEEN_CACHE_AND_BATCH = {"with_options", "prefetch", "shard", "skip", "take", *BATCHES, *MAPS}
_PARTS = {"shard", "skip", "take"}
_UNKNOWN = Refusal("an argument is known only in the graph", "give Python integers")
_GIVEN_BATCHES = Refusal("tfrfast does not plan it after batch()")
_PARSED = "as parse_example(): records are decoded where they are read"
_SHUFFLE_FIRST = "shuffle(n, seed=...) of all records, and then the part"
_OVERLAPPING = (
    "shard() after a shuffle() without a seed: every process draws an order of its own, so that "
    "their shards would overlap and miss records. Give shuffle() a seed, the same everywhere, or "
    "call shard() first."
)
#: The reasons for methods that no rule plans.
_WITHOUT_RULE = {
    # docs/step-speed.md has the factor.
    "flat_map": Refusal(
        "it makes elements of each element",
        "tfr.Steps, if it makes the steps of episodes: a sample of them took a seventh of the time",
    ),
    "ignore_errors": Refusal("it leaves out what fails", 'on_corruption="skip"'),
    "unbatch": Refusal("it makes single elements"),
}
_ONE_BY_ONE = Refusal("it handles elements one by one", "batch() first, if batches will do")


@dataclass
class Planning:
    """The policy, and the state of planning a chain."""

    #: True if the user asked for tfrfast by name: it plans whatever it can, builds indexes, and
    #: says what is slow. Otherwise it plans only what gains, and changes no costs.
    asked: bool
    #: The calls that are not planned yet.
    left: list[Any]
    #: Why no parse may be lifted out of maps; "" if it may.
    unlifted: str = ""
    #: True if the order of records is known without a shuffle.
    in_order: bool = True
    #: A cache() of mapped elements, which keeps batches instead.
    cache: Any = None
    #: The treatment of calls on file names, and what became of the planned calls.
    of_names: list[Step] = field(default_factory=list)
    told: list[tuple[Any, Taken]] = field(default_factory=list)

    def counted(self, pipeline: Pipeline) -> Pipeline:
        """Returns the pipeline with counted records, or with records that may be counted.

        Unasked, records of large or remote files are counted only by indexes that every process
        sees.
        """
        if self.asked or pipeline.source.plan is not None:
            return pipeline
        size = _bytes_of(pipeline.source)
        if size is not None and size <= INDEXED_BYTES:
            return pipeline
        source = pipeline.source.planned(build_indexes=False, beside=True)
        if source is not None:
            return replace(pipeline, source=source)
        what = "files on a network" if size is None else f"{size:,} bytes"
        why = f"{what} are not indexed unasked, and have no index beside them"
        raise RefusedError(why, "tfrfast index")

    def before_batches(self, pipeline: Pipeline) -> Pipeline:
        """Returns the pipeline if batches may be made of it, or blocks.

        If ignore_errors() leaves out whole batches, the elements that are lost with a bad element
        depend on tf.data's own batches: its optimiser joins a map() with the batch().
        """
        methods = list(map(nodes.method_of, self.left))
        end = methods.index("ignore_errors") if "ignore_errors" in methods else 0
        if pipeline.record_calls and not BATCHES.isdisjoint(methods[:end]):
            raise RefusedError(LEAVES_OUT)
        needs_indexes = pipeline.source.shuffles_files and pipeline.shuffle is None
        return self.counted(pipeline) if needs_indexes else pipeline


def _bytes_of(source: Source) -> int | None:
    """Returns the bytes of all files; None for files on a network. Raises tf.errors.OpError if a
    file is missing. TensorFlow then reports the file when it reads the file.
    """
    names = source.names.known or []
    if any(map(is_ours, names)):
        return None
    return sum(tf.io.gfile.stat(os.fsdecode(name)).length for name in names)


class Taken(NamedTuple):
    """The pipeline after one more call."""

    pipeline: Pipeline
    #: True if the pipeline does the work of the call. Otherwise tf.data makes the call after the
    #: pipeline.
    fused: bool = True
    why: str = ""
    #: The call that tf.data makes instead, after the pipeline.
    rest: Any = None
    #: False if the call is moved, and told where it is made.
    told: bool = True


def taken(planning: Planning, pipeline: Pipeline, call: Any) -> Taken:
    """Returns the pipeline after the call. A shuffle or shuffled files may build indexes."""
    method = nodes.method_of(call)
    if planning.cache is not None and method not in _BETWEEN_CACHE_AND_BATCH:
        raise RefusedError(KEPT)
    rule = _RULES.get(method)
    if rule is not None:
        return rule(planning, pipeline, call)
    without = _ONE_BY_ONE if pipeline.batch is None else _GIVEN_BATCHES
    raise RefusedError(_WITHOUT_RULE.get(method, without))


def _part(planning: Planning, pipeline: Pipeline, call: Any) -> Taken:
    method, sequence, shuffle = nodes.method_of(call), pipeline.sequence, pipeline.shuffle
    is_shard = method == "shard"
    if is_shard and planning.asked and shuffle and not shuffle.seeded and not nodes.takes_all(call):
        raise ValueError(_OVERLAPPING)
    numbers = nodes.numbers_of(call)
    if numbers is None:
        raise RefusedError(_UNKNOWN)
    if is_shard and not 0 <= numbers[1] < numbers[0]:
        raise RefusedError("the number of the shard is not known here")
    if pipeline.filtered:
        raise RefusedError("it counts what filter() lets through")
    if sequence is None:
        raise why_streamed(pipeline.source)
    impure = next(filter(None, map(impurity, pipeline.record_calls)), "")
    if impure and method != "take":
        raise RefusedError(f"a map() before it {impure}", f"{method}() before map()")
    if sequence.repeated:
        what = "records" if sequence.batch is None else "batches"
        raise RefusedError(f"tfrfast does not count {what} of all repetitions")
    if sequence.batch is not None:
        if is_shard:
            raise RefusedError(
                "tfrfast does not deal batches", "shard() of records, before batch()"
            )
        if pipeline.source.skip_damage or "ignore_errors" in map(nodes.method_of, planning.left):
            raise RefusedError("it counts batches without errors")
        numbers = (numbers[0] * sequence.batch.rows,)
    return Taken(replace(pipeline, sequence=sequence.narrowed(method, *numbers)))


def _repeat(_: Planning, pipeline: Pipeline, call: Any) -> Taken:
    count, sequence = nodes.attribute(call, "count"), pipeline.sequence
    number = -1 if count is None else static_integer(count)
    if number is None:
        raise RefusedError(_UNKNOWN)
    if sequence is None:
        raise why_streamed(pipeline.source)
    if number == 1:
        return Taken(pipeline)
    if pipeline.filtered:
        raise RefusedError("tfrfast does not repeat what filter() lets through")
    if sequence.repeated and sequence.batch is not None:
        raise RefusedError("tfrfast does not repeat batches twice")
    return Taken(replace(pipeline, sequence=sequence.repeat(number), cached=False))


def _shuffle(planning: Planning, pipeline: Pipeline, call: Any) -> Taken:
    before, sequence = pipeline.shuffle, pipeline.sequence or EVERYTHING
    if not planning.asked and static_integer(nodes.attribute(call, "buffer_size")) == 1:
        return Taken(pipeline, why="a buffer of one element keeps the order")
    if not planning.asked and before is not None and pipeline.batch is None:
        if not before.reshuffles and not is_kept(call):
            raise RefusedError(
                "tfrfast does not shuffle again what has one order in all iterations"
            )
        return Taken(pipeline, why="the order before it is exact")
    order = order_of(call)
    if order is None:
        raise RefusedError("the seed is known only in the graph")
    if before is not None and before.turns is None:
        raise RefusedError(
            "tfrfast does not shuffle twice, and the shuffle() before it is exact", "leave it out"
        )
    if pipeline.batch is not None:
        raise RefusedError("tfrfast does not shuffle batches", "shuffle() before batch()")
    counted = planning.counted(pipeline)
    source = counted.source
    if source.takes_turns and sequence.records != EVERYTHING.records:
        if source.shuffles_files:
            raise RefusedError("each iteration shuffles other records", "shuffle() before it")
        raise RefusedError(
            "tfrfast does not shuffle only some records of interleaved files", _SHUFFLE_FIRST
        )
    found = source.planned(build_indexes=True)
    if found is None or found.plan is None:
        raise why_streamed(source)
    if found.plan.damage:
        raise exception_from(found.plan.damage)
    why = "an exact order of all records that are left"
    if sequence.repeated:
        why += ", each once an epoch"
    if pipeline.cached:
        why += "; cache() is left out, as the system keeps the files in memory"
    remote = found.remote_records
    if planning.asked and order.blocks is None:
        by_blocks = "shuffle(order=tfr.BlockShuffle(...))"
        inflating = found.inflating_cost
        warn_of("requests", lambda: remote and remote.cost(by_blocks, "dataset"))
        warn_of("inflating", lambda: inflating)
        warn_of("seeks", found.seek_cost)
        why += f"; {INFLATES}" if inflating else ""
    if not planning.asked:
        if remote is not None and remote.cost("tfr.TFRecordDataset", "dataset") is not None:
            raise RefusedError("small records on a network would be asked for one by one")
        if found.compression and found.plan.stream_bytes > _native.inflated_bytes():
            raise RefusedError(
                "tfrfast does not shuffle compressed files that do not fit into memory"
            )
    shuffled = sequence.over(found.plan.record_count).shuffled(order)
    return Taken(replace(counted, source=found, sequence=shuffled, cached=False), why=why)


def _batch(planning: Planning, pipeline: Pipeline, call: Any) -> Taken:
    batch = batch_of(call)
    before = planning.before_batches(pipeline)
    if batch is None:
        raise RefusedError(_UNKNOWN)
    method, padding = nodes.method_of(call), None
    if method == "rebatch":
        if batch.rows < 1:
            raise RefusedError(_UNKNOWN)
        return Taken(rebatched(before, batch))
    if method == "padded_batch" and pipeline.record_calls:  # strings need no padding
        flat = [nodes.flattened(call, name) for name in ("padded_shapes", "padding_values")]
        shapes = [tf.get_static_value(each) for each in flat[0]]
        if any(shape is None for shape in shapes):
            raise RefusedError("a padded shape is known only in the graph", "give Python integers")
        padding = Padding(tuple(tuple(map(int, shape)) for shape in shapes), tuple(flat[1]))
    made = batched(before, batch, planning.unlifted, padding, in_blocks=not planning.asked)
    if not planning.asked and made.lifted is None and batch.rows < MIN_ROWS:
        raise RefusedError(f"a batch of fewer than {MIN_ROWS} rows gains nothing")
    return Taken(made)


def batch_of(call: Any) -> Batched | None:
    """Returns the batches that a call makes; None if an argument is known only in the graph."""
    rows = "batch_sizes" if nodes.method_of(call) == "rebatch" else "batch_size"
    drop = tf.get_static_value(nodes.attribute(call, "drop_remainder"))
    number = static_integer(nodes.attribute(call, rows))
    return None if number is None or drop is None else Batched(number, bool(drop))


def _parse_example(_: Planning, pipeline: Pipeline, call: Any) -> Taken:
    ours = nodes.method_of(call) == "parse_example"
    features = call.features if ours else _features_of(call)
    if features is None:
        raise RefusedError("tfrfast does not plan features that only TensorFlow can parse")
    if pipeline.decodes:
        raise RefusedError("records are decoded already")
    return Taken(replace(pipeline, features=features), why=_PARSED)


def _features_of(parsed: Any) -> TensorFeatures | None:
    """Returns the features of a dataset that parse_example_dataset() has made; None if only
    TensorFlow can parse them.
    """
    given = nodes.given_features(parsed)
    # A map() after it makes composite features of these.
    features = {key: _feature_of(spec) or given[key] for key, spec in parsed.element_spec.items()}
    try:
        return TensorFeatures(compile_features(features))
    except (TypeError, ValueError):
        return None


def _feature_of(spec: Any) -> Any:
    """Returns the feature of a sparse or ragged tensor; None for a dense one."""
    if isinstance(spec, tf.RaggedTensorSpec):
        return tf.io.RaggedFeature(spec.dtype, row_splits_dtype=spec.row_splits_dtype)
    return tf.io.VarLenFeature(spec.dtype) if isinstance(spec, tf.SparseTensorSpec) else None


def _cache(planning: Planning, pipeline: Pipeline, call: Any) -> Taken:
    """Keeps whole batches in place of elements, if each epoch cuts the same batches."""
    sequence = pipeline.sequence
    is_whole = sequence is not None and not (
        sequence.shuffle or sequence.repeated or sequence.batch
    )
    in_memory = nodes.is_memory_cache(call)
    if not planning.asked and pipeline.record_calls and in_memory and is_whole:
        planning.cache = call
        return Taken(pipeline, told=False)
    if not in_memory:
        raise RefusedError("it writes a file")
    source, files = pipeline.source, pipeline.source.names.shuffle
    if files is not None and not _PARTS.isdisjoint(map(nodes.method_of, planning.left)):
        raise RefusedError("tfrfast does not take parts of an order of files that cache() keeps")
    if source.compression:
        raise RefusedError("it keeps records that would be inflated again in each epoch")
    if pipeline.record_calls:
        raise RefusedError("it keeps what map() or filter() made", "cache() before them, or none")
    if sequence is not None and not is_whole:
        raise RefusedError("it keeps what the plan gave the first time")
    if files is not None:
        kept = source.names._replace(shuffle=replace(files, reshuffles=False))
        pipeline = replace(pipeline, source=replace(source, names=kept))
    why = "in memory, until records are read in another order or in batches"
    return Taken(replace(pipeline, cached=True), fused=False, why=why)


def _assert_cardinality(planning: Planning, pipeline: Pipeline, call: Any) -> Taken:
    counted = planning.counted(pipeline)
    source = counted.source.planned(build_indexes=True)
    if source is None:
        raise why_streamed(counted.source)
    counted = replace(counted, source=source)
    expected = nodes.attribute(call, "expected_cardinality")
    if counted.length is None or counted.length != static_integer(expected):
        raise RefusedError("TensorFlow says at the end whether there are so many elements")
    return Taken(counted, why="the indexes count the records")


def _prefetch(_: Planning, pipeline: Pipeline, call: Any) -> Taken:
    size = nodes.attribute(call, "buffer_size")
    number = -1 if size is None else static_integer(size)
    if number is None or number < -1:
        raise RefusedError(_UNKNOWN)
    made = replace(pipeline, prefetched=number)
    return Taken(made, fused=False, why="after what is planned")


def _with_options(_: Planning, pipeline: Pipeline, call: Any) -> Taken:
    return Taken(pipeline, fused=False, why="for the whole pipeline")


def _of_each(planning: Planning, pipeline: Pipeline, call: Any) -> Taken:
    # map() makes one element of each, and filter() leaves out the same elements in any order. So
    # calls that reorder elements may come first.
    if pipeline.batch is not None:
        raise RefusedError(_GIVEN_BATCHES)
    function = nodes.function_of(call)
    if planning.cache is not None and not is_constant(function):
        raise RefusedError(KEPT)  # the cache must not keep what each epoch makes anew
    made = replace(pipeline, record_calls=(*pipeline.record_calls, call))
    return Taken(made, fused=False, why="for each record, after what is planned")


def _map(planning: Planning, pipeline: Pipeline, call: Any) -> Taken:
    if pipeline.batch is None:
        return _of_each(planning, pipeline, call)
    function, may_cut = nodes.function_of(call), not planning.unlifted
    parts = None if pipeline.decodes else divided(function, call.element_spec, may_cut)
    if parts is not None:
        made = replace(pipeline, features=parts.features)
        if parts.rest is None:
            return Taken(made, why=_PARSED)
        why = "its parse is taken out: records are decoded where they are read"
        return Taken(made, False, why, nodes.calling(call, parts.rest))
    if parses_examples(call):
        instead = ".parse_example(features) first, and then map() for the rest"
        raise RefusedError("its parse cannot be taken out", instead)
    raise RefusedError(_GIVEN_BATCHES)


_RULES: dict[str, Callable[[Planning, Pipeline, Any], Taken]] = {
    "assert_cardinality": _assert_cardinality,
    "batch": _batch,
    "cache": _cache,
    "filter": _of_each,
    "map": _map,
    "padded_batch": _batch,
    "parse_example": _parse_example,
    "parse_example_dataset": _parse_example,
    "prefetch": _prefetch,
    "ragged_batch": _map,
    "rebatch": _batch,
    "repeat": _repeat,
    "shard": _part,
    "shuffle": _shuffle,
    "skip": _part,
    "take": _part,
    "with_options": _with_options,
}


def has_rule(call: Any) -> bool:
    return nodes.method_of(call) in _RULES
