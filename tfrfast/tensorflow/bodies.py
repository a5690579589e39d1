"""Bodies of functions that are written as messages, and make datasets."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.data.util import structure
from tensorflow.python.framework import op_def_registry

from tfrfast.tensorflow.messages import Value, Writer

#: When an iteration begins, TensorFlow takes some 5 ms for each function of its datasets: it
#: optimises the function, places it on devices and cuts it up for them. It leaves that out for
#: functions with an attribute that matters only on other devices than the CPU, where functions of
#: datasets run.
RUNS_AS_IT_STANDS = {"experimental_ints_on_device": True}


class Body(Writer):
    """Writes a function that works on datasets. The methods are those of tf.data.Dataset.

    Values whose shapes matter have to be `shaped()`.
    """

    def elements(self, variant: Value, spec: Any) -> Value:
        """A dataset whose elements are like `spec`."""
        return dataclasses.replace(variant, spec=spec)

    def from_tensors(self, *values: Value) -> Value:
        specs = tuple(map(_spec_of, values))
        made = self.op("TensorDataset", values, output_shapes=[spec.shape for spec in specs])
        return self.elements(made, specs[0] if len(specs) == 1 else specs)

    def from_tensor_slices(self, *values: Value) -> Value:
        specs = tuple(tf.TensorSpec(each.shape[1:], each.dtype) for each in values)
        made = self.op("TensorSliceDataset", values, output_shapes=[spec.shape for spec in specs])
        return self.elements(made, specs[0] if len(specs) == 1 else specs)

    def from_optional(self, optional: Value, spec: Any) -> Value:
        """The one element, like `spec`, of an optional."""
        shapes = structure.get_flat_tensor_shapes(spec)
        parts = self.op(
            "OptionalGetValue",
            optional,
            output_types=structure.get_flat_tensor_types(spec),
            output_shapes=shapes,
        )
        return self.elements(self.op("TensorDataset", parts, output_shapes=shapes), spec)

    def range(self, stop: Value) -> Value:
        begin, step = self.constant(0), self.constant(1)
        return self._made("RangeDataset", begin, stop, step, spec=tf.TensorSpec([], tf.int64))

    def zip(self, *datasets: Value) -> Value:
        spec = tuple(each.spec for each in datasets)
        return self._made("ZipDataset", datasets, spec=spec)

    def concatenate(self, *datasets: Value) -> Value:
        made = datasets[0]
        for more in datasets[1:]:
            made = self._made("ConcatenateDataset", made, more, spec=made.spec)
        return made

    def take(self, dataset: Value, count: Value) -> Value:
        return self._made("TakeDataset", dataset, count, spec=dataset.spec)

    def repeat(self, dataset: Value) -> Value:
        return self._made("RepeatDataset", dataset, self.constant(-1), spec=dataset.spec)

    def batch(self, dataset: Value, rows: int, drop_remainder: bool, spec: Any) -> Value:
        """`spec` is that of the batches."""
        size, drops = self.constant(rows), self.constant(drop_remainder, tf.bool)
        return self._made("BatchDatasetV2", dataset, size, drops, spec=spec)

    def unbatch(self, dataset: Value) -> Value:
        """The rows of elements that are one tensor."""
        spec = dataset.spec
        return self._made("UnbatchDataset", dataset, spec=tf.TensorSpec(spec.shape[1:], spec.dtype))

    def flat_map(self, dataset: Value, body: Written, *others: Value) -> Value:
        function, spec = self._function_of(body, dataset, others)
        return self._made("FlatMapDataset", dataset, others, spec=spec, f=function)

    def map(self, dataset: Value, body: Written, *others: Value) -> Value:
        """One call at a time, on the thread that asks."""
        function, spec = self._function_of(body, dataset, others)
        return self.map_as_traced(
            dataset, function, others, spec, use_inter_op_parallelism=False, **synchronously()
        )

    def map_as_traced(
        self, dataset: Value, function: Any, others: Sequence[Value], spec: Any, **options: Any
    ) -> Value:
        """map() of a function that makes elements like `spec`, given `others`, too."""
        return self._made(
            "MapDataset",
            dataset,
            others,
            spec=spec,
            f=function,
            preserve_cardinality=True,
            **options,
        )

    def take_while(self, dataset: Value, body: Written, *others: Value) -> Value:
        function, _ = self._function_of(body, dataset, others)
        return self._made(
            "TakeWhileDataset", dataset, others, spec=dataset.spec, predicate=function
        )

    def choose(
        self, condition: Value, then: Written, otherwise: Written, *arguments: Value
    ) -> Value:
        """The dataset that one of two bodies makes of the same arguments."""
        given = tuple(map(_spec_of, arguments))
        (one, spec), (other, _) = (body.function(given, {}) for body in (then, otherwise))
        (made,) = self.op(
            "If",
            condition,
            arguments,
            Tout=[tf.variant],
            output_shapes=[[]],
            then_branch=one,
            else_branch=other,
        )
        return self.elements(made, spec)

    def show_a_reader(self) -> None:
        """Adds an op that reads files. TensorFlow looks for one when it shards by file.

        This one makes a dataset of no files, which nobody iterates.
        """
        self.op(
            "TFRecordDatasetV2",
            self.constant((), tf.string),
            self.constant("", tf.string),
            self.constant(0),
            self.constant(()),
        )

    def _made(self, kind: str, *inputs: Any, spec: Any, **attributes: Any) -> Value:
        made = self.op(
            kind,
            *inputs,
            output_types=structure.get_flat_tensor_types(spec),
            output_shapes=structure.get_flat_tensor_shapes(spec),
            **attributes,
        )
        return self.elements(made, spec)

    def _function_of(
        self, body: Written, dataset: Value, others: Sequence[Value]
    ) -> tuple[Any, Any]:
        specs = structure.get_flat_tensor_specs(dataset.spec)
        return body.function((*specs, *map(_spec_of, others)), RUNS_AS_IT_STANDS)


class Written:
    """A body that is written: `write(body, *arguments)`, with flattened elements as arguments.

    It returns values, or a dataset. All tensors that it needs are arguments. A function of a module
    is written once in a process.
    """

    def __init__(self, write: Callable[..., Any]) -> None:
        self._write = write
        self._is_shared = "<locals>" not in write.__qualname__

    def function(self, given: tuple[Any, ...], attributes: dict[str, bool]) -> tuple[Any, Any]:
        """The function, and the spec of what it makes, or of the elements of its dataset."""
        make = _written_once if self._is_shared else _write
        return make(self, given, tuple(attributes.items()))

    def copied(self, *tensors: Any) -> Any:
        """The dataset that it makes of tensors of a graph."""
        body = Body(tuple(tf.TensorSpec(each.shape, each.dtype) for each in tensors))
        results, spec = self.results(body)
        (variant,) = body.copied(results, tensors)
        return tf.data.experimental.from_variant(variant, spec)

    @property
    def name(self) -> str:
        return self._write.__name__.strip("_")

    def results(self, body: Body) -> tuple[list[Value], Any]:
        """What it makes, and the spec of that."""
        made = self._write(body, *body.arguments)
        if isinstance(made, Value):
            return [made], _spec_of(made) if made.spec is None else made.spec
        return list(made), tuple(map(_spec_of, made))


def _write(
    written: Written, given: tuple[Any, ...], attributes: tuple[tuple[str, bool], ...]
) -> tuple[Any, Any]:
    body = Body(given)
    results, spec = written.results(body)
    with tf.init_scope():
        return body.function(written.name, results, dict(attributes)), spec


_written_once = functools.cache(_write)


def _spec_of(value: Value) -> Any:
    return tf.TensorSpec(value.shape, value.dtype)


def synchronously() -> dict[str, bool]:
    """What makes a map() run on the thread that asks.

    Else TensorFlow makes it parallel, and threads of its own take longer than such calls.
    TensorFlow 2.15 does not know the word.
    """
    definition = op_def_registry.get("MapDataset")
    known = any(each.name == "force_synchronous" for each in definition.attr)
    return {"force_synchronous": True} if known else {}
