"""Datasets whose calls extend the pipeline, as long as the calls fit the grammar."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.loading.inflating import INFLATES
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.building import build, build_one_by_one
from tfrfast.tensorflow.explaining import Explanation, explain
from tfrfast.tensorflow.faults import reason_of
from tfrfast.tensorflow.functions import map_as_traced, with_spec
from tfrfast.tensorflow.history import History, Refusal, Step
from tfrfast.tensorflow.lazy_dataset import LazyDataset
from tfrfast.tensorflow.pipeline import Pipeline
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.reading.calls import call_of
from tfrfast.tensorflow.reading.grammar import Taken, history_of, taken
from tfrfast.tensorflow.saving import bears
from tfrfast.tensorflow.slow_paths import (
    warn_of_inflating,
    warn_of_requests,
    warn_of_seeks,
    warn_once,
)
from tfrfast.tensorflow.tracing import traced

#: The reason for calls after the end of the plan.
ENDED = Refusal("it follows a call that is not in the plan")


class Planned(LazyDataset):
    """A planned dataset, with the calls that tf.data makes after the plan.

    TensorFlow makes each call on a stand-in. The grammar (`reading/grammar.py`) examines the
    result: it takes the call into the pipeline, or tf.data makes the call after the pipeline.
    """

    _pipeline: Pipeline | None  # None: plain tf.data from here on
    # Makes the last call on any dataset; and the dataset before that call, if tf.data makes the
    # call.
    _again: Callable[[Any], Any] | None = None
    _before: Any = None

    def _blank(self) -> Any:
        """Returns a dataset with the same methods, which is not set up yet."""
        raise NotImplementedError

    def _next(self, pipeline: Pipeline | None, history: History, **options: Any) -> Any:
        made = self._blank()
        made._set_up(pipeline, history, **options)
        return made

    def _set_up(
        self,
        pipeline: Pipeline | None,
        history: History,
        *,
        element_spec: Any = None,
        built: Any = None,
        again: Callable[[Any], Any] | None = None,
        before: Any = None,
    ) -> None:
        """The dataset is `built`, or `again` of `before`, or the pipeline's dataset."""
        self._pipeline, self._history = pipeline, history
        self._known_spec = element_spec
        self._again, self._before = again, before
        if built is not None:
            self._built = built
        elif not tf.executing_eagerly():
            self._built = self._build()  # built now, because a graph's tensors belong to the graph
        super().__init__(None)
        if pipeline is not None and pipeline.options is not None:
            self._options_attr = pipeline.options

    @functools.cached_property
    def _built(self) -> Any:
        # Built on use, so that a chain of calls costs one graph, not a graph for each call.
        with tf.init_scope():
            return self._build()

    def _build(self) -> Any:
        if self._again is not None:
            return self._again(self._before)
        assert self._pipeline is not None
        try:
            return build(self._pipeline)
        except Exception as error:
            if self._pipeline.lifted is None:
                raise
            why_not = reason_of(error, "its parse was not lifted")
            self._history = self._history.one_by_one(why_not.why)
            return build_one_by_one(self._pipeline)

    def _inputs(self) -> list[Any]:
        return [self._built] if self._pipeline is None else []

    @property
    def element_spec(self) -> Any:
        if self._known_spec is None:
            self._known_spec = self._built.element_spec
        return self._known_spec

    def cardinality(self) -> Any:
        """Returns the number of elements, even if only the indexes know it."""
        # The number is not in the graph, which is the same with indexes and without.
        known = self._length
        return super().cardinality() if known is None else tf.constant(known, tf.int64)

    @property
    def _length(self) -> int | None:
        """Returns None if the length is unknown here or infinite."""
        if self._pipeline is not None:
            return self._pipeline.length
        before = self._before
        if self._again is None or not tf.executing_eagerly() or before._length is None:
            return None
        instead = stand_in(before.element_spec, length=before._length)
        length = int(self._again(instead).cardinality())
        return length if length >= 0 else None

    def __repr__(self) -> str:
        name = self._history.source.partition(" ")[0].strip(":")
        return f"<{name}, {self._history.state}, element_spec={self.element_spec}>"

    def explain(self) -> Explanation:
        """Explains the treatment of each call; see `tfr.explain`."""
        return explain(self)

    def _trace_variant_creation(self) -> Any:
        """Returns the content of a SavedModel: a form of the dataset without ops that a SavedModel
        cannot hold.
        """
        with internals.eager_mode():  # a SavedModel's graph is being made
            whole = self._saved_whole()
            if whole is not self:
                return whole._built._trace_variant_creation()
        return super()._trace_variant_creation()

    def _saved_whole(self) -> Planned:
        """Returns a form of the dataset whose checkpoints can hold all elements that are read
        ahead.
        """
        pipeline = self._pipeline
        if pipeline is None or pipeline.lifted is None or not pipeline.lifted.raises:
            return self
        options = tf.data.Options()
        options.experimental_symbolic_checkpoint = False
        whole = pipeline.with_options(options)
        return self._next(whole, self._history, element_spec=self.element_spec)

    def _called(self, make: Callable[[Any], Any], text: str = "") -> Any:
        """Returns the dataset with a call on it. `make` makes the call on any dataset."""
        if self._pipeline is None:
            made = make(self)
            _warn_of(self, made, ENDED, text)
            return self._then(ENDED, made, text, again=_remade(made, self))
        instead = stand_in(self.element_spec, self._options_attr)
        call = make(instead)
        calls = nodes.calls_on(instead, call)
        if len(calls) > 1:
            return self._with_each(calls)
        if not calls:
            return self._then(Refusal("it is TensorFlow's"), make(self._saved_whole()), text)
        made = taken(self._pipeline, call)
        if (isinstance(made, Refusal) or not made.fused) and not nodes.can_be_moved(call):
            why = made if isinstance(made, Refusal) else Refusal("TensorFlow does not show it")
            _warn_of(self, call, why, text)
            return self._then(why, make(self._saved_whole()), text, again=make)
        return self._with(call, made, text or call_of(call))

    def _with_each(self, calls: list[Any], text: str = "") -> Any:
        """Returns the dataset with calls that TensorFlow has made and that can be moved."""
        dataset: Any = self
        for call in calls:
            if dataset._pipeline is None:
                moved = nodes.moved(call, [dataset])
                dataset = dataset._then(ENDED, moved, text, again=_mover(call))
            else:
                made = taken(dataset._pipeline, call)
                dataset = dataset._with(call, made, text or call_of(call))
        return dataset

    def _with(self, call: Any, made: Taken | Refusal, text: str) -> Any:
        if isinstance(made, Refusal):
            _warn_of(self, call, made, text)
            before = self if bears(call) else self._saved_whole()
            return self._next(
                None,
                self._history.then(ending(made, text)),
                element_spec=call.element_spec,
                again=_mover(call),
                before=before,
            )
        if made.rest is not None:
            before = self._next(made.pipeline, self._history)
            step = Step(text, False, made.why, ends_plan=True)
            return self._next(
                None,
                self._history.then(step),
                element_spec=call.element_spec,
                again=_mover(made.rest),
                before=before,
            )
        shuffle, inflating = made.pipeline.shuffle, None
        if nodes.kind(call) == "_ShuffleDataset" and shuffle is not None and shuffle.blocks is None:
            warn_of_requests(made.pipeline.source.remote_records)
            inflating = made.pipeline.source.inflating_cost
            warn_of_inflating(inflating)
            warn_of_seeks(made.pipeline.source.seek_cost)
        why = f"{made.why}; {INFLATES}" if inflating else made.why
        step = Step(text, made.fused, why)
        history = history_of(made.pipeline, (*self._history.steps, step))
        is_after = not made.fused and not _cuts_otherwise(self._pipeline, made.pipeline)
        return self._next(
            made.pipeline,
            history,
            element_spec=call.element_spec,
            again=_mover(call) if is_after else None,
            before=self if is_after else None,
        )

    def _then(
        self, why: Refusal, built: Any, text: str, again: Callable[[Any], Any] | None = None
    ) -> Any:
        """Returns tf.data's result on the dataset. `again` makes the same call on any dataset."""
        step = ending(why, text or call_of(built))
        before = None if again is None else self
        return self._next(None, self._history.then(step), built=built, again=again, before=before)


def stand_in(spec: Any, options: Any = None, length: int = 0) -> Any:
    """Replaces a dataset during a call of TensorFlow's. Never iterated.

    Building the records takes longer, and often only the call's arguments are needed.
    """
    make = _stand_in_once if tf.executing_eagerly() else _stand_in
    made = with_spec(make(tuple(internals.flat_specs(spec)), length), spec)
    if options is not None:
        internals.set_options(made, options)
    return made


def _stand_in(specs: tuple[Any, ...], length: int) -> Any:
    return map_as_traced(tf.data.Dataset.range(length), _nothing(), specs)


# TensorFlow takes 2 ms for the two ops.
_stand_in_once = functools.lru_cache(_stand_in)


@functools.cache
def _nothing() -> Any:
    """A function that is never called."""
    with tf.init_scope():
        return traced(lambda number: number, (tf.TensorSpec([], tf.int64),), {})


def _mover(call: Any) -> Callable[[Any], Any]:
    return lambda dataset: nodes.moved(call, [dataset])


def _remade(made: Any, dataset: Any) -> Callable[[Any], Any] | None:
    """Returns a function that makes a call of tf.data on other datasets, without the user's
    functions.
    """
    one_input = nodes.inputs(made) == [dataset]
    return _mover(made) if one_input and nodes.can_be_moved(made) else None


def ending(why: Refusal, text: str) -> Step:
    because, instead = ("", "") if why is ENDED else why
    return Step(text, fused=False, why=because, instead=instead, ends_plan=True)


def _cuts_otherwise(before: Pipeline | None, after: Pipeline) -> bool:
    """True if added options change the reading of records."""
    was = None if before is None else before.options
    asked = None if was is None else was.experimental_symbolic_checkpoint
    return after.options is not None and after.options.experimental_symbolic_checkpoint != asked


def _warn_of(dataset: Planned, call: Any, refusal: Refusal, text: str) -> None:
    """Warns of calls that are slower, or mix less, than necessary."""
    pipeline, kind = dataset._pipeline, nodes.kind(call)
    if kind == "_ShuffleDataset" and not dataset._history.is_ordered:
        why = dataset._history.why_ended or refusal
        warn_once("shuffle", f"{text} shuffles through a buffer", why)
    batches = kind.endswith("BatchDataset") and kind != "_RebatchDataset"
    if batches and pipeline is not None and pipeline.parses_needlessly and pipeline.lifts:
        warn_once("parse", f"Records are parsed one by one before {text}", refusal)
