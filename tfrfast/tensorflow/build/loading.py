"""A Loader's plan as a tf.data.Dataset: one range of steps, one parallel map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfrfast.errors import StaleIndexError
from tfrfast.loading.lengths import in_files
from tfrfast.loading.loader import Loader
from tfrfast.order import InOrder, Packed, Plan
from tfrfast.tensorflow.build.batches import described
from tfrfast.tensorflow.build.functions import parallel_map, serial_map, take_while, with_length
from tfrfast.tensorflow.build.steps import ENDLESS, as_int64, zero_then_keys
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.library import ops
from tfrfast.tensorflow.measuring import count_waiting
from tfrfast.tensorflow.planned_dataset import PlannedDataset
from tfrfast.tensorflow.read.sources import told_as
from tfrfast.tensorflow.saving import with_positions
from tfrfast.tensorflow.source import OpenPlan, open_described

# The number of finished batches that wait, besides batches that are being read.
_READ_AHEAD = 2


def dataset_of(
    loader: Loader,
    epochs: int | None,
    with_indices: bool,
    with_valid: bool,
    with_sources: bool,
    with_crops: bool,
) -> Any:
    """See `Loader.to_tf_dataset`."""
    state = loader._settled_state()
    plan, files = in_files(loader.plan)
    rest = plan.rest_after(state["position"])
    reader, compiled, counters = loader.reader, loader._compiled, loader._elsewhere
    try:
        opened = open_described(reader._described())
    except tf.errors.FailedPreconditionError as error:
        raise StaleIndexError(f"{error.message} The Reader has to be made again, too.") from None
    features = None if compiled is None else TensorFeatures(compiled, has_order=True)
    source = tf.constant(opened.source)
    text_of_plan = rest._encode()
    encoded = tf.constant(text_of_plan)
    starts = tf.constant(reader._source_starts, tf.int64)
    packs = isinstance(plan.batching, Packed)
    is_whole = plan.remainder != "keep" and (packs or not reader._skips_damage)
    rows = plan.batch_size if is_whole else None
    records = None if packs else rows

    shapes = [[None]] if features is None else features.shapes(None)
    full_shapes = [[rows]] if features is None else features.shapes(rows)

    endless = epochs is None and plan.steps > 0
    count = None if endless else rest.steps + plan.steps * ((epochs or 1) - 1)
    step_count = ENDLESS if count is None else count
    run = as_int64(state["epoch"]), step_count

    text, column_types = described(features)

    def load(step: Any, run: Any) -> Any:
        columns, *facts = ops.tfrfast_load(
            source, encoded, run, step, text, column_types=column_types
        )
        return _with_shapes((*columns, *facts), (*shapes, [None], [None], []))

    def batch_of(*parts: Any) -> Any:
        *columns, indices, valid = _with_shapes(parts[:-1], (*full_shapes, [records], [records]))
        batch, crops = (columns[0], {}) if features is None else features.with_crops(columns)
        extra = [*([indices] if with_indices else []), *([valid] if with_valid else [])]
        if with_sources:
            sources = tf.searchsorted(starts, indices, side="right", out_type=tf.int64) - 1
            extra.append(sources)
        if with_crops:
            extra.append(crops)
        return (batch, *extra) if extra else batch

    steps = tf.data.Dataset.range(step_count)
    if _may_differ(plan):
        keyed = tf.data.Dataset.zip((steps, zero_then_keys(run)))
        dataset = parallel_map(keyed, load, calls=loader._threads)
    else:
        own = tf.constant((0, *run), tf.int64)
        dataset = parallel_map(steps, lambda step: load(step, own), calls=loader._threads)
    # No batch follows a failed one, so no flat_map is needed. These two stages take about 25 us.
    dataset = serial_map(with_length(take_while(dataset, _passes), count), batch_of)
    built = with_positions(_sharded_at_most_once(dataset.prefetch(_READ_AHEAD), plan))
    # Keeps the shards open, and files of lengths, in this process as long as `built` lives.
    built._tfrfast_plan = opened, files
    counters.read.setdefault(text_of_plan, _counts_from_now(opened, text_of_plan))
    count_waiting(built, counters)
    return PlannedDataset(told_as(built, "Loader.to_tf_dataset(): planned"))


def _counts_from_now(opened: OpenPlan, plan: bytes) -> Callable[[], dict[str, int]]:
    """Counts what is read of a plan from now on. All equal Loaders have read what was before."""
    before = opened.counts(plan)
    return lambda: {name: now - before[name] for name, now in opened.counts(plan).items()}


def _with_shapes(tensors: Sequence[Any], shapes: Sequence[list[int | None]]) -> tuple[Any, ...]:
    """Sets the shapes of the tensors. No op checks the shapes, because each op of a step takes
    time.
    """
    for tensor, shape in zip(tensors, shapes, strict=True):
        tensor.set_shape(shape)
    return tuple(tensors)


def _passes(*parts: Any) -> Any:
    """Raises the error of a batch."""
    return _with_shapes([ops.tfrfast_pass(parts[-1])], [[]])[0]


def _may_differ(plan: Plan) -> bool:
    """True if later iterations have orders of their own.

    With several ranks, later iterations keep the order, because otherwise every rank would have to
    iterate equally often.
    """
    return plan.world == 1 and not isinstance(plan.order, InOrder)


def _sharded_at_most_once(dataset: Any, plan: Plan) -> Any:
    if plan.world == 1:
        return dataset
    options = tf.data.Options()  # else TensorFlow would shard one rank's batches, and lose most
    off = tf.data.experimental.AutoShardPolicy.OFF
    options.experimental_distribute.auto_shard_policy = off
    return dataset.with_options(options)
