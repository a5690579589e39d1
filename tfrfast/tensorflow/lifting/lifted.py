"""A chain of maps whose parse has been taken out: what is decoded, and what runs on the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.lifting import internals
from tfrfast.tensorflow.lifting.arithmetic import differing
from tfrfast.tensorflow.lifting.cutting import rest_after
from tfrfast.tensorflow.lifting.finding import find_parse
from tfrfast.tensorflow.lifting.inlining import without_calls
from tfrfast.tensorflow.lifting.variable import Part, columns_of
from tfrfast.tensorflow.lifting.vectorised import Vectorised
from tfrfast.tensorflow.lifting.vectorising import vectorised
from tfrfast.tensorflow.tracing import traced

# Where only the record tells the size of what is made of it, that is taken for so many times as
# large: integers are packed in records, and images are compressed.
_GROWTH = 4


@dataclass(frozen=True)
class Lifted:
    """Maps, the first of which parses records, in a form that takes whole batches."""

    features: TensorFeatures
    #: What the first function uses after the parse.
    parts: tuple[Part, ...]
    #: What the functions do after the parse, one after the other.
    stages: tuple[Vectorised, ...]
    #: The functions as they were traced.
    functions: tuple[Any, ...]
    #: The specs of the elements that each of them makes.
    specs: tuple[Any, ...]
    #: The types of the ops that may give other values than in a map() of tf.data.
    differing: tuple[str, ...]

    def run(self, parsed: dict[str, Any], rows: int | None) -> tuple[list[Any], Any]:
        """The components of a batch of elements, and whether they count (None: they do).

        If they do not, a row may fail, and the batch has to be made row by row. A component is one
        tensor, also of what is sparse or ragged: as tf.data hands it on.
        """
        columns, checks = columns_of(self.parts, parsed)
        for stage in self.stages:
            columns, holds = stage(columns)
            checks += [] if holds is None else [holds]
        for column, spec in zip(columns, tf.nest.flatten(self.specs[-1]), strict=True):
            if isinstance(spec, tf.TensorSpec):
                column.set_shape([rows, *spec.shape])
        return columns, tf.reduce_all(checks) if checks else None

    def try_out(self) -> None:
        """Traces a batch. What the functions do not bear fails here, not when it is read."""
        types = map(tf.as_dtype, self.features.column_types)
        specs = map(tf.TensorSpec, self.features.shapes(None), types)
        traced(lambda *columns: self.run(self.features.assemble(columns), None)[0], (*specs,), {})

    @property
    def is_checked(self) -> bool:
        """Whether rows can fail."""
        divides = any(part.of_value for part in self.parts)
        return divides or any(stage.checked for stage in self.stages) or self.raises

    @property
    def raises(self) -> bool:
        """Whether run() itself can fail, as what runs row by row can."""
        return any(stage.by_element is not None for stage in self.stages)

    def row_bytes(self, record_bytes: int) -> int:
        """About how many bytes are made of a row, if records have so many on average."""
        unsized = sum(stage.unsized for stage in self.stages)
        unsized += sum(part.kind == "values" for part in self.parts)
        return sum(stage.row_bytes for stage in self.stages) + unsized * _GROWTH * record_bytes

    @property
    def by_element(self) -> list[str]:
        """The types of the ops that run row by row."""
        parts = (stage.by_element for stage in self.stages)
        return [kind for part in parts if part is not None for kind in part.kinds]

    def batch_spec(self, rows: int | None) -> Any:
        return tf.nest.map_structure(lambda spec: internals.batched(spec, rows), self.specs[-1])


def lift(maps: tuple[Any, ...], lifts: bool) -> Lifted | Refusal:
    """Takes the parse out of the first of the maps, which tf.data has made of single records.

    Whatever goes wrong here is not the user's error: TensorFlow runs the maps as they are.
    """
    try:
        return _lift(maps, lifts)
    except Exception as error:
        reason = str(error).partition("\n")[0]
        return Refusal(f"its parse cannot be lifted ({type(error).__name__}: {reason})")


def _lift(maps: tuple[Any, ...], lifts: bool) -> Lifted | Refusal:
    if not lifts:
        return Refusal("lift_parsing is off")
    if not tf.executing_eagerly():
        return Refusal("the dataset is made in a graph")
    functions = [internals.traced(mapped) for mapped in maps]
    if any(function is None for function in functions):
        return Refusal(internals.MISSING)
    graphs = [without_calls(function.graph) for function in functions]
    parse = find_parse(graphs[0])
    if isinstance(parse, Refusal):
        return parse
    specs = [mapped.element_spec for mapped in maps]
    if not all(map(_is_known, tf.nest.flatten(specs))):
        return Refusal("it returns more than tensors of a known rank")
    if not all(isinstance(spec, tf.TensorSpec) for spec in tf.nest.flatten(specs[:-1])):
        return Refusal(
            "a map() before the last one makes sparse or ragged tensors",
            "one map() that does both",
        )
    known, stages = parse.used, []
    for place, (graph, spec) in enumerate(zip(graphs, specs, strict=True)):
        rest = rest_after(graph, known)
        if isinstance(rest, Refusal):
            return rest
        stage = vectorised(
            rest,
            checked=True,
            splits=True,
            parts=() if place else parse.parts,
        )
        if isinstance(stage, Refusal):
            return stage
        stages.append(stage)
        if place + 1 < len(functions):
            if not stage.has_fixed_shapes:
                return Refusal(
                    "a map() before the last one makes rows of different shapes, as far as is "
                    "known",
                    "one map() that does both",
                )
            known = tuple(graphs[place + 1].inputs[: len(tf.nest.flatten(spec))])
    lifted = Lifted(
        parse.features,
        parse.parts,
        tuple(stages),
        tuple(functions),
        tuple(specs),
        tuple(sorted({kind for graph in graphs for kind in differing(graph)})),
    )
    lifted.try_out()
    return lifted


def _is_known(spec: Any) -> bool:
    kinds = (tf.TensorSpec, tf.SparseTensorSpec, tf.RaggedTensorSpec)
    return isinstance(spec, kinds) and spec.shape.rank is not None
