"""A Loader's plan as a tf.data.Dataset: one range of steps, one parallel map."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfrfast._tensorflow import graphs
from tfrfast._tensorflow.columns import TensorFeatures
from tfrfast._tensorflow.library import ops
from tfrfast._tensorflow.planning import open_plan
from tfrfast.block_shuffle import BlockShuffle
from tfrfast.errors import StaleIndexError
from tfrfast.plan import Plan

if TYPE_CHECKING:
    from tfrfast.loader import Loader

_VERSION = 1
# Batches that are ready when they are asked for, besides those that are being read.
_READ_AHEAD = 2
_REMAINDERS = {"keep": 0, "drop": 1, "pad": 2}


def dataset_of(loader: Loader, epochs: int | None, with_indices: bool, with_valid: bool) -> Any:
    """See `Loader.to_tf_dataset`."""
    reader, plan = loader.reader, loader.plan
    skips_damage = reader._options["on_corruption"] == "skip"
    opened = open_plan(
        [os.fsencode(path) for path in reader._paths],
        build_indexes=True,
        skip_damage=skips_damage,
        zero_copy=False,
        compression=None,
    )
    assert opened is not None
    if opened.record_count != len(reader):
        raise StaleIndexError(
            f"The shards held {len(reader)} records when the Reader was made, and hold "
            f"{opened.record_count} now. Make the Reader again."
        )
    state = loader.state_dict()
    epoch, position = state["epoch"], state["position"]
    first = _rest_of_epoch(plan, position)
    features = None if loader.features is None else TensorFeatures(loader.features)
    source = tf.constant(opened.source)
    numbers = tf.constant(_numbers(plan, epoch, position), tf.int64)
    chosen = tf.constant(np.zeros(0, np.int64) if plan._chosen is None else plan._chosen)
    rows = plan.batch_size if plan.remainder != "keep" and not skips_damage else None

    def load(step: Any, key: Any) -> Any:
        columns, indices, valid = ops.tfrfast_load_batch(
            source=source,
            plan=numbers,
            chosen=chosen,
            key=key,
            step=step,
            features=b"" if features is None else features.text,
            column_types=[tf.string] if features is None else features.column_types,
        )
        if features is None:
            batch: Any = tf.ensure_shape(columns[0], [rows])
        else:
            batch = features.assemble(features.shaped(columns, rows))
        extra = [
            tf.ensure_shape(tensor, [rows])
            for tensor, wanted in ((indices, with_indices), (valid, with_valid))
            if wanted
        ]
        return (batch, *extra) if extra else batch

    endless = epochs is None and plan.steps > 0
    count = None if endless else first + plan.steps * ((epochs or 1) - 1)
    steps = graphs.steps(count)
    if _may_differ(plan):
        keyed = tf.data.Dataset.zip((steps, graphs.zero_then_keys()))
        dataset = graphs.parallel_map(keyed, load, loader._threads)
    else:
        own = tf.constant(0, tf.int64)
        dataset = graphs.parallel_map(steps, lambda step: load(step, own), loader._threads)
    if endless:
        dataset = dataset.apply(
            tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
        )
    dataset = dataset.prefetch(_READ_AHEAD).with_options(_options(plan))
    dataset._tfrfast_plan = opened  # the shards stay open in this process as long as it lives
    return dataset


def _may_differ(plan: Plan) -> bool:
    """Whether iterations after the first one have orders of their own.

    Not of several ranks: each would have to have iterated as often as the others.
    """
    return plan.world == 1 and plan.shuffle is not False


def _options(plan: Plan) -> Any:
    options = graphs.small_checkpoints()
    if plan.world > 1:  # these are a rank's batches already: sharding them again would lose most
        off = tf.data.experimental.AutoShardPolicy.OFF
        options.experimental_distribute.auto_shard_policy = off
    return options


def _rest_of_epoch(plan: Plan, position: int) -> int:
    """How many steps are left."""
    if position == 0:
        return plan.steps
    fields = plan._fields() | {"start": position, "indices": plan._chosen}
    return Plan(fields.pop("num_records"), fields.pop("batch_size"), **fields).steps  # type: ignore[arg-type]


def _numbers(plan: Plan, epoch: int, position: int) -> list[int]:
    """As the op reads them; csrc/tensorflow/loading_plan.cpp is the other side."""
    blocks = plan.shuffle if isinstance(plan.shuffle, BlockShuffle) else None
    chosen = plan._chosen
    fingerprint = 0
    if chosen is not None:
        digest = hashlib.blake2b(np.ascontiguousarray(chosen).tobytes(), digest_size=8).digest()
        fingerprint = int.from_bytes(digest, "little", signed=True)
    return [
        _VERSION,
        plan.num_records,
        plan.batch_size,
        2 if blocks else int(plan.shuffle is True),
        *((blocks.block_records, blocks.window_blocks, blocks.streams) if blocks else (0, 0, 0)),
        graphs.as_int64(plan.seed % 2**64),
        plan.rank,
        plan.world,
        _REMAINDERS[plan.remainder],
        graphs.as_int64(epoch),
        position,
        int(chosen is not None),
        fingerprint,
    ]
