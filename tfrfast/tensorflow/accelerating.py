"""accelerate(): a finished dataset, read by tfrfast as far as possible."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.building import build
from tfrfast.tensorflow.faults import reason_of
from tfrfast.tensorflow.history import TENSORFLOWS, History, Refusal, Step
from tfrfast.tensorflow.interruption import InterruptibleIterator
from tfrfast.tensorflow.lazy_dataset import LazyDataset
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.reading.chain import Chain, chain_of
from tfrfast.tensorflow.reading.grammar import cuts_rows_again, rows_of
from tfrfast.tensorflow.reading.planner import Plan, plan, why_no_gain
from tfrfast.tensorflow.reading.shuffles import decide, reshuffled

SWITCH = "TFRFAST_ACCELERATE"
_NONE = Refusal("")
_SHARED = Refusal(
    "its datasets share a shuffle(), which gives each of them another order",
    "a shuffle() of its own for each dataset",
)
_CACHED = Refusal(
    "a cache() in memory keeps one order of a shuffle() for all datasets that are made of it",
    "cache() before shuffle()",
)
_CALLS = (
    *("batch", "cache", "concatenate", "enumerate", "filter", "ignore_errors", "map"),
    *("padded_batch", "prefetch", "ragged_batch", "rebatch", "repeat", "shard", "shuffle"),
    *("skip", "take", "take_while", "unbatch", "with_options"),
)


def accelerate(dataset: Any) -> Any:
    """Returns the same dataset, with its files read by tfrfast.

        names = tf.data.Dataset.list_files("train-*")
        records = names.interleave(tf.data.TFRecordDataset).shuffle(10_000)
        batches = tfr.accelerate(records.map(parse).batch(256).prefetch(2))

    Any library may have built `dataset`. Elements, spec and errors stay the same. Shuffles become
    exact and global, with each record once an epoch. Iterating the result opens the files.
    TensorFlow runs the calls that tfrfast cannot plan; `tfr.explain` describes each call, with the
    reason. Returns `dataset` itself if planning gains nothing, and with TFRFAST_ACCELERATE=0.
    """
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(f"accelerate() takes a tf.data.Dataset, not {type(dataset).__name__}.")
    if os.environ.get(SWITCH) == "0" or not tf.executing_eagerly():
        return dataset
    if isinstance(dataset, LazyDataset):  # a dataset of tfrfast
        return dataset
    faster, _ = acceleration_of(dataset)
    return dataset if faster is None else faster


def acceleration_of(dataset: Any) -> tuple[Any, Refusal]:
    """Returns the dataset for accelerate(); None and the reason if planning gains nothing.

    Opens no file.
    """
    try:
        return _acceleration_of(dataset)
    except Exception as error:
        return None, reason_of(error, "reading it failed")


def _acceleration_of(dataset: Any) -> tuple[Any, Refusal]:
    chain = chain_of(dataset)
    if isinstance(chain, Chain):
        why_not = _CACHED if _keeps_a_shuffle(chain.calls) else why_no_gain(chain.calls)
        return (_Planned(dataset, chain), _NONE) if why_not is None else (None, why_not)
    inputs = nodes.inputs(dataset)
    if not inputs or not nodes.can_be_moved(dataset):
        return None, chain
    if nodes.is_memory_cache(dataset) and reshuffled(dataset):
        return None, _CACHED
    # An input that is given twice is made once: its second iteration has its own order.
    faster = {each: acceleration_of(each) for each in inputs}
    if all(made is None for made, _ in faster.values()):
        told = [why for _, why in faster.values() if why in (_SHARED, _CACHED)]
        return None, told[0] if told else chain
    shuffles = [each for given in faster for each in reshuffled(given)]
    if len(shuffles) > len({*shuffles}):
        return None, _SHARED
    return _Moved(dataset, [faster[each][0] or each for each in inputs]), _NONE


def _keeps_a_shuffle(calls: tuple[Any, ...]) -> bool:
    """True if a cache in memory keeps an order of records that differs by iteration.

    Each planned dataset would fill a cache of its own, so that parts of one cache would overlap.
    """
    caches = filter(nodes.is_memory_cache, calls)
    return any(not reshuffled(cache).isdisjoint(calls) for cache in caches)


class _Iterator(InterruptibleIterator):
    """An iterator whose error explains why it does not fit a checkpoint of a plain dataset."""

    def _restore_from_tensors(self, restored_tensors: Any) -> Any:
        try:
            return super()._restore_from_tensors(restored_tensors)
        except tf.errors.OpError as error:
            raise tf.errors.FailedPreconditionError(
                None,
                None,
                "This checkpoint is not of an accelerated dataset like this one. If it was saved "
                f"without tfr.accelerate(), set {SWITCH}=0 to go on from it. TensorFlow says: "
                f"{error.message}",
            ) from None


class AcceleratedDataset(LazyDataset):
    """Stands for a finished dataset of TensorFlow's, and opens files on use."""

    def __init__(self, plain: Any) -> None:
        self._plain_dataset = plain
        super().__init__(None)

    def __iter__(self) -> Any:
        return _Iterator(self) if tf.executing_eagerly() else super().__iter__()

    def __repr__(self) -> str:
        return f"<AcceleratedDataset, element_spec={self.element_spec}>"

    def _trace_variant_creation(self) -> Any:
        """Returns the content of a SavedModel: TensorFlow's own dataset, which every process can
        read.
        """
        return self._plain_dataset._trace_variant_creation()

    def _inputs(self) -> list[Any]:
        return [self._plain_dataset]

    def cardinality(self) -> Any:
        """Returns TensorFlow's cardinality, and opens no file."""
        return self._plain_dataset.cardinality()

    def options(self) -> Any:
        return self._plain_dataset.options()

    @property
    def element_spec(self) -> Any:
        return self._plain_dataset.element_spec


def _plain(argument: Any) -> Any:
    return argument._plain_dataset if isinstance(argument, AcceleratedDataset) else argument


def _later(method: str) -> Callable[..., Any]:
    """Makes a method whose call is planned with all earlier calls, when the result is used."""
    theirs = getattr(tf.data.Dataset, method)

    @functools.wraps(theirs)
    def call(self: AcceleratedDataset, *arguments: Any, **options: Any) -> Any:
        if not tf.executing_eagerly():
            return theirs(self, *arguments, **options)
        made = theirs(*map(_plain, (self, *arguments)), **options)
        faster, _ = acceleration_of(made)
        if faster is None and nodes.inputs(made) == [self._plain_dataset]:
            faster = _Moved(made, [self]) if nodes.can_be_moved(made) else None
        return made if faster is None else faster

    return call


for _method in _CALLS:
    setattr(AcceleratedDataset, _method, _later(_method))


class _Moved(AcceleratedDataset):
    """A call of TensorFlow's on accelerated datasets."""

    def __init__(self, plain: Any, inputs: list[Any]) -> None:
        self._faster_inputs = inputs
        super().__init__(plain)

    @functools.cached_property
    def _built(self) -> Any:
        with tf.init_scope():
            return nodes.moved(self._plain_dataset, self._faster_inputs)


class _Planned(AcceleratedDataset):
    """A finished dataset that is planned."""

    def __init__(self, plain: Any, chain: Chain) -> None:
        self._chain = chain
        super().__init__(plain)

    @functools.cached_property
    def _made(self) -> tuple[Any, History]:
        """Returns the dataset to iterate, and the treatment of each call.

        After any failure before the first element, TensorFlow's own dataset takes over.
        """
        try:
            with tf.init_scope():
                found = plan(self._chain)
                made = None if isinstance(found, Refusal) else _build(found)
        except Exception as error:
            found, made = reason_of(error, "planning failed"), None
        shuffles = [call for call in self._chain.calls if nodes.kind(call) == "_ShuffleDataset"]
        agreed = decide(shuffles, made is not None)
        if isinstance(found, Refusal):
            return self._plain_dataset, _unplanned(found)
        if not agreed:
            because = Refusal("another dataset of the same shuffle() is TensorFlow's")
            return self._plain_dataset, _unplanned(because)
        return made, found.history

    @property
    def _history(self) -> History:
        return self._made[1]

    @property
    def _built(self) -> Any:
        return self._made[0]


def _build(found: Plan) -> Any:
    built, is_unbatched = build(found.pipeline), False
    for call, following in zip(found.rest, (*found.rest[1:], None), strict=False):
        if is_unbatched:  # rows are never taken apart
            built = built.rebatch(*rows_of(call))
        elif not cuts_rows_again(call, following):
            built = nodes.moved(call, [built])
        is_unbatched = not is_unbatched and cuts_rows_again(call, following)
    _ = internals.variant_of(built)  # which builds it
    return built


def _unplanned(why_not: Refusal) -> History:
    step = Step("accelerate()", False, why_not.why, why_not.instead, ends_plan=True)
    return History(TENSORFLOWS, False, (step,))
