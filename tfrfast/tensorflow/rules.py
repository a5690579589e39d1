"""The rules: what a plan does with each call of tf.data.

A call is a dataset object of TensorFlow. A rule returns the pipeline after one more call, or the
reason why TensorFlow makes the call, and all later calls. What a rule allows may depend on the
policy: whether the user asked tfrfast for the records by name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast import _native
from tfrfast.loading.inflating import INFLATES
from tfrfast.tensorflow.history import OF_EACH, Refusal
from tfrfast.tensorflow.integers import static_integer
from tfrfast.tensorflow.lifting.of_batches import Divided, divided
from tfrfast.tensorflow.lifting.padding import Padding
from tfrfast.tensorflow.pipeline import Pipeline
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.reading.shuffles import is_kept, order_of
from tfrfast.tensorflow.recognition import features_of_map, features_of_parsing, parses_examples
from tfrfast.tensorflow.slow_paths import warn_of_inflating, warn_of_requests, warn_of_seeks

#: Larger data sets are not indexed without request.
INDEXED_BYTES = 16 << 30
#: For smaller batches, planning costs more than a plan saves.
MIN_ROWS = 8
_INDEX = "tfrfast index"
BATCHES = {"batch", "map_and_batch", "padded_batch", "batch in parallel"}
MAPS = {"ragged_batch", "map", "map in parallel"}
# After these calls, each epoch cuts the same batches of a cache()'s elements.
_BETWEEN_CACHE_AND_BATCH = {
    "with_options",
    "prefetch",
    "shard",
    "skip",
    "take",
    *BATCHES,
    *MAPS,
}
KEPT = Refusal("cache() keeps what map() made", "cache() before map(), or after batch()")

_PARSED = "as parse_example(): records are decoded where they are read"
_NAMES_OF_ROWS = {
    "map_and_batch": ("batch_size_t", "drop_remainder_t"),
    "rebatch": ("batch_sizes", "drop_remainder"),
}
#: Why batches before ignore_errors() are made of single elements.
LEAVES_OUT = "ignore_errors() after it leaves out single elements"
_COUNTED = "the indexes count the records"
_EXACT = "an exact order of all records that are left"
_OVERLAPPING = (
    "shard() after a shuffle() without a seed: every process draws an order of its own, so that "
    "their shards would overlap and miss records. Give shuffle() a seed, the same everywhere, or "
    "call shard() first."
)
#: The reasons for methods that no rule plans.
_WITHOUT_RULE = {
    "concatenate": Refusal("it joins two datasets", "one TFRecordDataset of all files"),
    "ignore_errors": Refusal("it leaves out what fails", 'on_corruption="skip"'),
    "unbatch": Refusal("it makes single elements"),
}
_ONE_BY_ONE = Refusal("it handles elements one by one", "batch() first, if batches will do")


@dataclass
class Planning:
    """The state of planning a chain."""

    #: True if the user asked for tfrfast by name: it plans whatever it can, builds indexes, and
    #: says what is slow. Otherwise it plans only what gains, and changes no costs.
    asked: bool
    #: The calls that are not planned yet.
    left: list[Any]
    #: A cache() of mapped elements, which keeps batches instead.
    cache: Any = None
    #: The indexes that may be built unasked: of so many bytes of local files.
    bytes_of_files: Callable[[], int | None] = field(default=lambda: None)

    def counted(self, pipeline: Pipeline) -> Pipeline | Refusal:
        """Returns the pipeline with counted records, or with records that may be counted.

        Unasked, records of large or remote files are counted only by indexes that every process
        sees.
        """
        if self.asked or pipeline.source.plan is not None:
            return pipeline
        size = self.bytes_of_files()
        if size is not None and size <= INDEXED_BYTES:
            return pipeline
        source = pipeline.source.planned(build_indexes=False, beside=True)
        if source is not None:
            return replace(pipeline, source=source)
        what = "files on a network" if size is None else f"{size:,} bytes"
        return Refusal(f"{what} are not indexed unasked, and have no index beside them", _INDEX)

    def ignores_batches(self) -> bool:
        """True if ignore_errors() leaves out whole batches. Then the elements that are lost with a
        bad element depend on tf.data's own batches: its optimiser joins a map() with the batch().
        """
        kinds = list(map(nodes.kind, self.left))
        if "ignore_errors" not in kinds:
            return False
        return not BATCHES.isdisjoint(kinds[: kinds.index("ignore_errors")])


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


def taken(planning: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    """Returns the pipeline after the call. A shuffle or interleaved files may build indexes."""
    kind = nodes.kind(call)
    if planning.cache is not None and kind not in _BETWEEN_CACHE_AND_BATCH:
        return KEPT
    rule = _RULES.get(kind)
    return rule(planning, pipeline, call) if rule else _WITHOUT_RULE.get(kind, _ONE_BY_ONE)


def _taken(made: Pipeline | Refusal, fused: bool = True, why: str = "") -> Taken | Refusal:
    return made if isinstance(made, Refusal) else Taken(made, fused, why)


def _take(_: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    return _taken(pipeline.narrowed("take", nodes.attribute(call, "count")))


def _skip(_: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    return _taken(pipeline.narrowed("skip", nodes.attribute(call, "count")))


def _shard(planning: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    shuffle = pipeline.shuffle
    if planning.asked and shuffle and not shuffle.seeded and not nodes.takes_all(call):
        raise ValueError(_OVERLAPPING)
    arguments = nodes.attribute(call, "num_shards"), nodes.attribute(call, "index")
    return _taken(pipeline.narrowed("shard", *arguments))


def _repeat(_: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    return _taken(pipeline.repeated(nodes.attribute(call, "count")))


def _shuffle(planning: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    before = pipeline.shuffle
    if not planning.asked and before is not None and pipeline.batch is None:
        if not before.reshuffles and not is_kept(call):
            return Refusal("the shuffle() before it has one order in all iterations")
        return Taken(pipeline, why="the order before it is exact")
    order = order_of(call)
    if order is None:
        return Refusal("the seed is known only in the graph", "give a Python integer")
    counted = pipeline if pipeline.batch is not None else planning.counted(pipeline)
    made = counted if isinstance(counted, Refusal) else counted.shuffled(order)
    if isinstance(made, Refusal):
        return made
    source = made.source
    assert source.plan is not None
    why = _EXACT
    if pipeline.sequence is not None and pipeline.sequence.repeated:
        why += ", each once an epoch"
    if pipeline.cached:
        why += "; cache() is left out, as the system keeps the files in memory"
    if planning.asked and order.blocks is None:
        warn_of_requests(source.remote_records)
        inflating = source.inflating_cost
        warn_of_inflating(inflating)
        warn_of_seeks(source.seek_cost)
        why += f"; {INFLATES}" if inflating else ""
    if not planning.asked:
        remote = source.remote_records
        if remote is not None and remote.cost("tfr.TFRecordDataset", "dataset") is not None:
            return Refusal("small records on a network would be asked for one by one")
        if source.compression and source.plan.stream_bytes > _native.inflated_bytes():
            return Refusal("records of compressed files that do not fit into memory are shuffled")
    return Taken(made, why=why)


def _batch(planning: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    in_parallel = nodes.kind(call) == "batch in parallel"
    counted = _for_batches(planning, pipeline, call)
    if isinstance(counted, Refusal):
        return counted
    return _taken(replace(counted, parallel_batch=in_parallel).batched(*rows_of(call)))


def _map_and_batch(planning: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    counted = _for_batches(planning, pipeline, call)
    mapped = counted if isinstance(counted, Refusal) else counted.with_map(nodes.map_of(call))
    made = mapped if isinstance(mapped, Refusal) else mapped.batched(*rows_of(call))
    return _taken(made, why=OF_EACH)  # until the lifted parse is known


def _padded_batch(planning: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    if not pipeline.elementwise:  # strings need no padding
        return _batch(planning, pipeline, call)
    counted = _for_batches(planning, pipeline, call)
    if isinstance(counted, Refusal):
        return counted
    flat = [nodes.flattened(call, name) for name in ("padded_shapes", "padding_values")]
    shapes = [tf.get_static_value(each) for each in flat[0]]
    if any(shape is None for shape in shapes):
        return Refusal("a padded shape is known only in the graph", "give Python integers")
    padding = Padding(tuple(tuple(map(int, shape)) for shape in shapes), tuple(flat[1]))
    return _taken(counted.batched(*rows_of(call), padding))


def _rebatch(planning: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    counted = _for_batches(planning, pipeline, call)
    return _taken(counted if isinstance(counted, Refusal) else counted.rebatched(*rows_of(call)))


def _for_batches(planning: Planning, pipeline: Pipeline, call: Any) -> Pipeline | Refusal:
    """Returns the pipeline if batches may be made of it."""
    rows, _ = rows_of(call)
    if not planning.asked and rows is not None and rows < MIN_ROWS:
        return Refusal(f"a batch of fewer than {MIN_ROWS} rows gains nothing")
    is_mapped = pipeline.elementwise or nodes.kind(call) == "map_and_batch"
    if is_mapped and planning.ignores_batches():
        return Refusal(LEAVES_OUT)
    needs_indexes = pipeline.source.takes_turns and pipeline.shuffle is None
    return planning.counted(pipeline) if needs_indexes else pipeline


def rows_of(call: Any) -> tuple[int | None, Any]:
    """Returns the rows of a batch, and True if the last batch must be full; None if unknown."""
    rows, drop_remainder = _NAMES_OF_ROWS.get(nodes.kind(call), ("batch_size", "drop_remainder"))
    drop = tf.get_static_value(nodes.attribute(call, drop_remainder))
    return static_integer(nodes.attribute(call, rows)), drop


def cuts_rows_again(call: Any, following: Any) -> bool:
    """True if the calls are unbatch() and batch() of rows of one shape, together a rebatch()."""
    is_cut = nodes.kind(following) in ("batch", "batch in parallel")
    if nodes.kind(call) != "unbatch" or not is_cut or rows_of(following)[0] is None:
        return False
    specs = tf.nest.flatten(call.element_spec)
    return all(isinstance(e, tf.TensorSpec) and e.shape.is_fully_defined() for e in specs)


def _parse_example(_: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    features = features_of_parsing(call)
    if features is None:
        return Refusal("its features are more than columns")
    return _taken(pipeline.parsed(features), why=_PARSED)


def _parse_by_name(_: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    return _taken(pipeline.parsed(call.features))


def _cache(planning: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    """Keeps whole batches in place of elements, if each epoch cuts the same batches."""
    sequence = pipeline.sequence
    is_whole = sequence is not None and not (
        sequence.shuffle or sequence.repeated or sequence.batch
    )
    if not planning.asked and pipeline.elementwise and nodes.is_memory_cache(call) and is_whole:
        planning.cache = call
        return Taken(pipeline, told=False)
    name = tf.get_static_value(nodes.attribute(call, "filename"))
    known = None if name is None else os.fsdecode(getattr(name, "item", lambda: name)())
    why = "in memory, until records are read in another order or in batches"
    return _taken(pipeline.in_memory(known), fused=False, why=why)


def _assert_cardinality(planning: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    counted = planning.counted(pipeline)
    if isinstance(counted, Refusal):
        return counted
    return _taken(counted.counted(nodes.attribute(call, "expected_cardinality")), why=_COUNTED)


def _prefetch(_: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    made = pipeline.with_prefetch(nodes.attribute(call, "buffer_size"))
    return _taken(made, fused=False, why="after what is planned")


def _with_options(_: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    made = pipeline.with_options(nodes.attribute(call, "options_attr"))
    return Taken(made, fused=False, why="for the whole pipeline")


def _map(_: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    # A map() turns each element into one element, so calls that reorder elements may come before
    # the map().
    if pipeline.batch is None:
        return _taken(pipeline.with_map(call), fused=False, why=OF_EACH)
    features = features_of_map(call)
    made = None if features is None else pipeline.parsed(features)
    if isinstance(made, Pipeline):
        return Taken(made, why=_PARSED)
    parts = None if pipeline.unlifted else divided(call)
    if isinstance(parts, Divided):
        made = pipeline.parsed(parts.features)
        if isinstance(made, Pipeline):
            why = "its parse is taken out: records are decoded where they are read"
            return Taken(made, False, why, parts.rest)
    if parses_examples(call):
        instead = ".parse_example(features) first, and then map() for the rest"
        return Refusal("it does more than parse batches", instead)
    return Refusal("it is given batches")


def _filter(_: Planning, pipeline: Pipeline, call: Any) -> Taken | Refusal:
    # The call leaves out the same elements in any order.
    return _taken(pipeline.with_filter(call), fused=False, why=OF_EACH)


_RULES: dict[str, Callable[[Planning, Pipeline, Any], Taken | Refusal]] = {
    "cache": _cache,
    "parse_example": _parse_by_name,
    "assert_cardinality": _assert_cardinality,
    "batch": _batch,
    "ragged_batch": _map,
    "filter": _filter,
    "map_and_batch": _map_and_batch,
    "map": _map,
    "with_options": _with_options,
    "padded_batch": _padded_batch,
    "batch in parallel": _batch,
    "map in parallel": _map,
    "parse_example_dataset": _parse_example,
    "prefetch": _prefetch,
    "rebatch": _rebatch,
    "repeat": _repeat,
    "shard": _shard,
    "shuffle": _shuffle,
    "skip": _skip,
    "take": _take,
}


def has_rule(call: Any) -> bool:
    return nodes.kind(call) in _RULES
