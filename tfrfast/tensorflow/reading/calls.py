"""Shows the calls of finished datasets as text."""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.history import call_text
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.reading.shuffles import noted_order

_SHOWN = {
    "CacheDataset": ("cache", ()),
    "_BatchDataset": ("batch", ("batch_size",)),
    "_DenseToRaggedDataset": ("ragged_batch", ()),
    "_FilterDataset": ("filter", ()),
    "_ConcatenateDataset": ("concatenate", ()),
    "_OptionsDataset": ("with_options", ()),
    "_PaddedBatchDataset": ("padded_batch", ("batch_size",)),
    "_ParallelBatchDataset": ("batch", ("batch_size",)),
    "_ParallelInterleaveDataset": ("interleave", ()),
    "_ParallelMapDataset": ("map", ()),
    "_MapAndBatchDataset": ("map_and_batch", ()),
    "_PrefetchDataset": ("prefetch", ("buffer_size",)),
    "_RebatchDataset": ("rebatch", ("batch_sizes",)),
    "_RepeatDataset": ("repeat", ("count",)),
    "_ShardDataset": ("shard", ("num_shards", "index")),
    "_ShuffleDataset": ("shuffle", ("buffer_size",)),
    "_SkipDataset": ("skip", ("count",)),
    "_TakeDataset": ("take", ("count",)),
}


def call_of(dataset: Any) -> str:
    """Returns the call that made a dataset, approximately as written."""
    kind = nodes.kind(dataset) or type(dataset).__name__
    if nodes.is_enumeration(dataset):
        return "enumerate()"
    if kind == "parse_example":
        return "parse_example({...})"
    method, shown = _SHOWN.get(kind, (_method(kind), ()))
    if nodes.function_of(dataset) is not None:
        return f"{method}({nodes.function_name(dataset)})"
    values = [_value(nodes.attribute(dataset, name)) for name in shown]
    if method == "repeat" and isinstance(values[0], int) and values[0] < 0:
        values = []
    if (noted := noted_order(dataset)) is not None:
        values = [] if noted.whole else values
        return call_text(method, *values, seed=noted.seed if noted.seeded else None)
    drops = _value(nodes.attribute(dataset, "drop_remainder"))
    return call_text(method, *values, drop_remainder=True if drops is True else None)


def _value(given: Any) -> Any:
    known: Any = None if given is None else tf.get_static_value(given)
    return known.item() if getattr(known, "shape", None) == () else given


def _method(kind: str) -> str:
    bare = re.sub("^_|Parallel|Dataset(V[0-9])?$", "", kind)
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", bare).lower()
