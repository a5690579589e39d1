"""A lifted chain of maps: the decoded features, and the remainder that runs on the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.faults import reason_of
from tfrfast.tensorflow.functions import filter_as_traced, map_as_traced
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.lifting.arithmetic import differing
from tfrfast.tensorflow.lifting.cutting import rest_after
from tfrfast.tensorflow.lifting.finding import find_parse
from tfrfast.tensorflow.lifting.inlining import joined
from tfrfast.tensorflow.lifting.padding import Padding
from tfrfast.tensorflow.lifting.variable import ParsedPart, columns_of
from tfrfast.tensorflow.lifting.vectorised import Vectorised
from tfrfast.tensorflow.lifting.vectorising import vectorised
from tfrfast.tensorflow.purity import has_state
from tfrfast.tensorflow.reading import nodes

# If only the record tells the size of a result, the size is estimated as this multiple of the
# record: integers are packed in records, and images are compressed.
_GROWTH = 4


@dataclass(frozen=True)
class Lifted:
    """Maps, the first of which parses records, in a form for whole batches."""

    features: TensorFeatures
    #: The parse of the first function.
    parts: tuple[ParsedPart, ...]
    #: The remainder of all functions after the parse.
    rest: Vectorised
    #: The traced functions.
    functions: tuple[Any, ...]
    #: The element spec of each function.
    specs: tuple[Any, ...]
    #: The types of the ops whose values may differ from a map() of tf.data.
    differing: tuple[str, ...]
    #: The numbers of the functions that are predicates of filter(). A batch has the rows that all
    #: predicates accept.
    filters: frozenset[int] = frozenset()
    #: The padding of shorter rows; None: all rows must have one shape.
    padding: Padding | None = None

    def run(self, parsed: dict[str, Any], rows: int | None) -> tuple[list[Any], Any]:
        """Returns the components of a batch of elements, and a boolean that is false for an invalid
        batch (None: always valid).

        In an invalid batch a row may fail, and the batch must be made row by row. A component is
        one tensor, in tf.data's form also for sparse and ragged tensors.
        """
        columns, checks = columns_of(self.parts, parsed)
        columns, holds = self.rest(columns, padding=self.padding)
        checks += [] if holds is None else [holds]
        if self.filters:
            *columns, passes = columns
            kept = tf.where(passes)[:, 0]
            columns = [tf.gather(column, kept) for column in columns]
        for column, spec in zip(columns, tf.nest.flatten(self.batch_spec(rows)), strict=True):
            if isinstance(spec, tf.TensorSpec):
                column.set_shape(spec.shape)
        return columns, tf.reduce_all(checks) if checks else None

    @property
    def is_checked(self) -> bool:
        """True if rows can fail."""
        divides = any(part.of_value for part in self.parts)
        return divides or self.rest.checked or self.raises

    @property
    def raises(self) -> bool:
        """True if run() itself can fail, because ops run row by row."""
        return self.rest.by_element is not None

    @property
    def has_state(self) -> bool:
        """True if run() draws random numbers, for example."""
        rows = self.rest.by_element
        return rows is not None and has_state(rows.function)

    def row_bytes(self, record_bytes: int) -> int:
        """Returns the approximate bytes of a row's results, for records of so many bytes on
        average.
        """
        unsized = self.rest.unsized + sum(part.kind == "values" for part in self.parts)
        return self.rest.row_bytes + unsized * _GROWTH * record_bytes

    @property
    def by_element(self) -> list[str]:
        """The types of the ops that run row by row."""
        return [] if self.rest.by_element is None else list(self.rest.by_element.kinds)

    def elements(self, records: Any) -> Any:
        """Returns the elements that tf.data makes of single records."""
        for number, (function, spec) in enumerate(zip(self.functions, self.specs, strict=True)):
            if number in self.filters:
                records = filter_as_traced(records, function)
            else:
                records = map_as_traced(records, function, spec)
        return records

    def batches(
        self, elements: Any, rows: int, drop_remainder: bool, calls: int | None = None
    ) -> Any:
        """Returns the batches that tf.data makes of single elements."""
        if self.padding is None:
            return elements.batch(rows, drop_remainder, calls)
        return elements.padded_batch(rows, *self.padding.arguments(self.specs[-1]), drop_remainder)

    def batch_spec(self, rows: int | None) -> Any:
        if self.padding is not None:
            return self.padding.batch_spec(self.specs[-1], rows)
        return tf.nest.map_structure(lambda spec: internals.batched(spec, rows), self.specs[-1])


def lift(
    maps: tuple[Any, ...], why_not: str = "", padding: Padding | None = None
) -> Lifted | Refusal:
    """Lifts the parse out of maps of single records, unless there is a reason not to.

    No failure here is the user's error: TensorFlow then runs the unchanged maps.
    """
    if why_not:
        return Refusal(why_not)
    try:
        return _lift(maps, padding)
    except Exception as error:
        return reason_of(error, "its parse was not lifted")


def _lift(maps: tuple[Any, ...], padding: Padding | None) -> Lifted | Refusal:
    if not tf.executing_eagerly():
        return Refusal("the dataset is made in a graph")
    functions = [nodes.function_of(mapped) for mapped in maps]
    if any(function is None for function in functions):
        return Refusal("this TensorFlow does not show what a map() traced")
    filters = frozenset(n for n, call in enumerate(maps) if nodes.is_filter(call))
    graph = joined([function.graph for function in functions], filters)
    if graph is None:
        return Refusal("its maps cannot be made one function", "one map() that does all")
    parse = find_parse(graph)
    if isinstance(parse, Refusal):
        return parse
    specs = [mapped.element_spec for mapped in maps]
    if not all(map(_is_known, tf.nest.flatten(specs))):
        return Refusal("it returns more than tensors of a known rank")
    if filters and not all(map(_has_rows, tf.nest.flatten(specs[-1]))):
        return Refusal("filter() selects sparse tensors")
    if filters and any(differing(graph, graph.outputs[-1:])):
        return Refusal("floats of a filter() may differ in their last bits")
    rest = rest_after(graph, parse.used)
    if isinstance(rest, Refusal):
        return rest
    whole = vectorised(rest, parse.parts)
    if isinstance(whole, Refusal):
        return whole
    if padding is not None and not whole.can_be_padded:
        return Refusal("rows of different shapes are made one by one before they are padded")
    return Lifted(
        parse.features,
        parse.parts,
        whole,
        tuple(functions),
        tuple(specs),
        tuple(sorted(set(differing(graph)))),
        filters,
        padding,
    )


def _has_rows(spec: Any) -> bool:
    """True if a batch of such components is one tensor with a row for each element."""
    return isinstance(spec, tf.RaggedTensorSpec) or (
        isinstance(spec, tf.TensorSpec) and spec.shape.is_fully_defined()
    )


def _is_known(spec: Any) -> bool:
    if isinstance(spec, tf.TensorSpec):  # its rows may run one by one
        return True
    composite = isinstance(spec, (tf.SparseTensorSpec, tf.RaggedTensorSpec))
    return composite and spec.shape.rank is not None
