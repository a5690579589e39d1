"""A dataset that is built when it is used, and remembers how it came about."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from tfrfast.tensorflow.building import build
from tfrfast.tensorflow.explaining import Explanation, explain
from tfrfast.tensorflow.history import History, Refusal, Step, lifted_step
from tfrfast.tensorflow.interruption import interruptible_or
from tfrfast.tensorflow.pipeline import Pipeline
from tfrfast.tensorflow.saving import saved_as_it_bears

ENDED = Refusal("it follows a call that is not in the plan")
_RECORD = tf.TensorSpec([], tf.string)


class RememberingDataset(tf.data.Dataset):  # type: ignore[misc]
    """A pipeline that is read at once, or what tf.data made of one."""

    _pipeline: Pipeline | None  # None: plain tf.data from here on
    _history: History
    _given_length: int | None = None
    #: The last call, of tf.data, on any dataset, and the dataset on which it was made.
    _last_call: tuple[Callable[[Any], Any], RememberingDataset] | None = None

    def _new(self) -> RememberingDataset:
        """A dataset to be set up, of the class that calls return."""
        raise NotImplementedError

    def _set_up(
        self,
        pipeline: Pipeline | None,
        history: History,
        *,
        element_spec: Any = None,
        built: Any = None,
        make: Callable[[], Any] | None = None,
    ) -> None:
        """`built` is the dataset in tf.data, or `make` makes it; else the pipeline does."""
        self._pipeline = pipeline
        self._history = history
        self._known_spec = element_spec
        self._make = make
        if built is not None:
            self._built = built
        elif not tf.executing_eagerly():
            self._built = self._build()  # here and now: a graph's tensors belong to it
        super().__init__(None)
        if pipeline is not None and pipeline.options is not None:
            self._options_attr = pipeline.options

    @functools.cached_property
    def _built(self) -> Any:
        # Built when it is used: a chain of calls costs one graph, not one for each link.
        with tf.init_scope():
            return self._build()

    def _build(self) -> Any:
        if self._make is not None:
            return self._make()
        assert self._pipeline is not None
        return build(self._pipeline)

    def __iter__(self) -> Any:
        return interruptible_or(self, super().__iter__)

    def _apply_debug_options(self) -> Any:
        """What TensorFlow makes iterators of."""
        return saved_as_it_bears(super()._apply_debug_options())

    def _trace_variant_creation(self) -> Any:
        """What a SavedModel holds: a form of the dataset without the ops that none can hold."""
        with context.eager_mode():  # a SavedModel's graph is being made
            whole = self._saved_whole()
            if whole is not self:
                return whole._built._trace_variant_creation()
        return super()._trace_variant_creation()

    def _saved_whole(self) -> Any:
        """The dataset in a form of which checkpoints can hold all that is read ahead."""
        pipeline = self._pipeline
        if pipeline is None or pipeline.lifted is None or not pipeline.lifted.raises:
            return self
        whole = tf.data.Options()
        whole.experimental_symbolic_checkpoint = False
        dataset = self._new()
        dataset._set_up(pipeline.with_options(whole), self._history, element_spec=self.element_spec)
        return dataset

    # DatasetV2 keeps its variant tensor here.
    @property
    def _variant_tensor_attr(self) -> Any:
        return self._built._variant_tensor

    @_variant_tensor_attr.setter
    def _variant_tensor_attr(self, _: None) -> None:
        pass

    def _inputs(self) -> list[Any]:
        return [self._built] if self._pipeline is None else []

    @property
    def element_spec(self) -> Any:
        if self._known_spec is None:
            pipeline = self._pipeline
            if pipeline is not None and pipeline.lifted is not None and pipeline.batch is not None:
                batch = pipeline.batch
                rows = batch.rows if batch.drop_remainder else None
                self._known_spec = pipeline.lifted.batch_spec(rows)
            elif pipeline is None or pipeline.elementwise or pipeline.features is not None:
                self._known_spec = self._built.element_spec
            elif pipeline.batch is None:
                self._known_spec = _RECORD
            else:
                rows = pipeline.batch.rows if pipeline.batch.drop_remainder else None
                self._known_spec = tf.TensorSpec([rows], tf.string)
        return self._known_spec

    def cardinality(self) -> Any:
        """How many elements there are, also where only the indexes know."""
        # It is not in the graph, which is the same with indexes and without.
        known = self._length
        return super().cardinality() if known is None else tf.constant(known, tf.int64)

    @property
    def _length(self) -> int | None:
        return self._given_length if self._pipeline is None else self._pipeline.length

    def __repr__(self) -> str:
        name = self._history.source.partition(" ")[0].strip(":")
        return f"<{name}, {self._history.state}, element_spec={self.element_spec}>"

    def explain(self) -> Explanation:
        """What becomes of each call; see `tfr.explain`."""
        return explain(self)

    def _fused(self, pipeline: Pipeline, call: str, why: str = "") -> Any:
        """A dataset of the pipeline, which has the call in it."""
        dataset = self._new()
        dataset._set_up(
            pipeline,
            self._history_of(pipeline).then(Step(call, fused=True, why=why)),
            element_spec=self.element_spec if self._keeps_elements(pipeline) else None,
        )
        return dataset

    def _keeps_elements(self, pipeline: Pipeline) -> bool:
        """Whether maps or filters made the elements, and a call has not changed them."""
        was_lifted = self._pipeline is not None and self._pipeline.lifted is not None
        return bool(pipeline.elementwise) and was_lifted == (pipeline.lifted is not None)

    def _kept(
        self,
        pipeline: Pipeline,
        call: str,
        why: str,
        make: Callable[[], Any],
        element_spec: Any = None,
    ) -> Any:
        """What tf.data makes here, and the pipeline makes again at the end, after later calls."""
        dataset = self._new()
        step = Step(call, fused=False, why=why)
        dataset._set_up(
            pipeline, self._history_of(pipeline).then(step), element_spec=element_spec, make=make
        )
        return dataset

    def _history_of(self, pipeline: Pipeline) -> History:
        is_planned = pipeline.sequence is not None
        steps = self._history.steps
        if pipeline.lifted is not None:
            lifted = pipeline.lifted
            steps = tuple(lifted_step(each, lifted.by_element, lifted.differing) for each in steps)
        return History(
            pipeline.source.description, is_planned, steps, is_ordered=pipeline.shuffle is not None
        )

    def _plain(
        self,
        built: Any,
        call: str,
        refusal: Refusal,
        length: int | None = None,
        again: Callable[[Any], Any] | None = None,
    ) -> Any:
        """What tf.data made, with parse_example(), explain() and, if known, its length.

        `again` makes the same call on another dataset.
        """
        why, instead = ("", "") if refusal is ENDED else refusal
        dataset = self._new()
        step = Step(call, fused=False, why=why, instead=instead, ends_plan=True)
        dataset._set_up(None, self._history.then(step), built=built)
        dataset._given_length = length
        dataset._last_call = None if again is None else (again, self)
        return dataset

    def _fused_or(
        self,
        plain: Callable[[Any], Any],
        fused: Pipeline | Refusal,
        call: str,
        why: str = "",
        length: int | None = None,
    ) -> Any:
        """`plain` makes the call on a dataset in tf.data."""
        if isinstance(fused, Refusal):
            return self._plain(plain(self), call, fused, length, plain)
        return self._fused(fused, call, why)
