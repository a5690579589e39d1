"""The datasets that TensorFlow makes: what each call became, and how to make it again.

TensorFlow keeps all of this under private names, which stand in this file alone. Where a name is
missing, the dataset stays as it is.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.data.ops import map_op, readers, repeat_op, shuffle_op

from tfrfast.tensorflow.integers import static_integer

_MODULES = "tensorflow.python.data."
# The arguments that every dataset's op has, from `_common_args`.
_COMMON = {"name", "output_types", "output_shapes", "metadata"}


def kind(dataset: Any) -> str:
    """The name of TensorFlow's class; empty for a dataset that is not TensorFlow's own."""
    dataset = without_adapter(dataset)
    own = type(dataset)
    return own.__name__ if own.__module__.startswith(_MODULES) else ""


def without_adapter(dataset: Any) -> Any:
    """The dataset inside a `tf.compat.v1` adapter, or the dataset itself."""
    while type(dataset).__name__ == "DatasetV1Adapter" and hasattr(dataset, "_dataset"):
        dataset = dataset._dataset
    return dataset


def inputs(dataset: Any) -> list[Any]:
    return list(without_adapter(dataset)._inputs())


def strings_of(dataset: Any) -> list[bytes]:
    """What a dataset of strings gives."""
    return [bytes(each) for each in without_adapter(dataset).as_numpy_iterator()]


def attribute(dataset: Any, name: str) -> Any:
    """The value of a private attribute; None if the dataset has no such attribute."""
    return getattr(without_adapter(dataset), f"_{name}", None)


def flattened(dataset: Any, name: str) -> list[Any]:
    """The tensors in a private attribute that has the structure of the elements."""
    return tf.nest.flatten(attribute(dataset, name))


def function_of(dataset: Any) -> Any:
    """The ConcreteFunction that a dataset calls; None if TensorFlow does not show it."""
    dataset = attribute(dataset, "mapped_dataset") or dataset  # inside what makes tensors ragged
    function = getattr(attribute(dataset, _function_attribute(dataset)), "function", None)
    graph = getattr(function, "graph", None)
    shown = ("inputs", "outputs", "control_outputs", "captures")
    return function if all(hasattr(graph, name) for name in shown) else None


def function_name(dataset: Any) -> str:
    """The name of the Python function that a dataset calls, for people to read."""
    wrapper = attribute(dataset, _function_attribute(dataset))
    name = getattr(getattr(wrapper, "_func", None), "__name__", "")
    return name or "..."


def _function_attribute(dataset: Any) -> str:
    making = _MAKINGS.get(kind(dataset))
    return making.function_attribute if making is not None else "map_func"


@dataclass(frozen=True)
class _Making:
    """How TensorFlow makes a dataset from its inputs and its attributes."""

    op: Any
    #: The argument of the op that takes the traced function, and the attribute that keeps it.
    function_argument: str = ""
    function_attribute: str = "map_func"
    #: Arguments that are not attributes of the same name.
    others: Callable[[Any], dict[str, Any]] = lambda _: {}

    def arguments(self, dataset: Any) -> dict[str, Any]:
        given = self.others(dataset)
        for name, parameter in inspect.signature(self.op).parameters.items():
            if name in _COMMON or name in given or name in _INPUTS:
                continue
            if hasattr(dataset, f"_{name}"):
                given[name] = getattr(dataset, f"_{name}")
            elif parameter.default is inspect.Parameter.empty and name not in (
                self.function_argument,
                "other_arguments",
            ):
                raise AttributeError(f"{type(dataset).__name__} has no _{name}")
        if self.function_argument:
            function = function_of(dataset)
            if function is None:
                raise AttributeError(f"{type(dataset).__name__} does not show its function")
            given[self.function_argument] = function
            given["other_arguments"] = function.captured_inputs
        return given


_INPUTS = {"input_dataset", "another_dataset", "input_datasets"}


def _prefetch(dataset: Any) -> dict[str, Any]:
    chosen_by_runtime = static_integer(dataset._buffer_size) == tf.data.AUTOTUNE
    return {"legacy_autotune": chosen_by_runtime, "slack_period": 0}


def _padded_batch(dataset: Any) -> dict[str, Any]:
    return {name: flattened(dataset, name) for name in ("padded_shapes", "padding_values")}


def _scan(dataset: Any) -> dict[str, Any]:
    """Those of a loop in a tf.function: only the op of a graph shows how it was made."""
    made = dataset._variant_tensor
    state = tf.nest.flatten(dataset._initial_state)
    if not tf.is_symbolic_tensor(made) or not all(map(tf.is_tensor, state)):
        raise AttributeError("the dataset does not show how it was made")
    shown = ("preserve_cardinality", "use_default_device")
    return {"initial_state": state} | {name: made.op.get_attr(name) for name in shown}


def _options(dataset: Any) -> dict[str, Any]:
    return {"serialized_options": dataset._options_attr._to_proto().SerializeToString()}


def _map_and_batch(dataset: Any) -> dict[str, Any]:
    names = ("batch_size", "num_parallel_calls", "drop_remainder")
    return {
        **{name: getattr(dataset, f"_{name}_t") for name in names},
        "preserve_cardinality": True,
    }


def _ragged(input_dataset: Any, mapped_dataset: Any) -> Any:
    """The map() with which ragged_batch() begins."""
    arguments = _MAKINGS["_MapDataset"].arguments(mapped_dataset)
    return tf.raw_ops.MapDataset(
        input_dataset=input_dataset, **arguments, **mapped_dataset._common_args
    )


def _same(input_dataset: Any) -> Any:
    """A dataset that differs only in its spec, which its Python object holds."""
    return input_dataset


_MAKINGS = {
    "_AssertCardinalityDataset": _Making(
        tf.raw_ops.AssertCardinalityDataset,
        others=lambda dataset: {"cardinality": dataset._expected_cardinality},
    ),
    "CacheDataset": _Making(
        tf.raw_ops.CacheDatasetV2, others=lambda _: {"cache": tf.raw_ops.DummyMemoryCache()}
    ),
    "_BatchDataset": _Making(tf.raw_ops.BatchDatasetV2),
    "_ConcatenateDataset": _Making(tf.raw_ops.ConcatenateDataset),
    "_DenseToRaggedDataset": _Making(_ragged),
    "_FilterDataset": _Making(tf.raw_ops.FilterDataset, "predicate", "predicate"),
    "_FlatMapDataset": _Making(tf.raw_ops.FlatMapDataset, "f"),
    "_IgnoreErrorsDataset": _Making(tf.raw_ops.IgnoreErrorsDataset),
    "_MapAndBatchDataset": _Making(tf.raw_ops.MapAndBatchDataset, "f", others=_map_and_batch),
    "_MapDataset": _Making(tf.raw_ops.MapDataset, "f"),
    "_OptionsDataset": _Making(tf.raw_ops.OptionsDataset, others=_options),
    "_PaddedBatchDataset": _Making(tf.raw_ops.PaddedBatchDatasetV2, others=_padded_batch),
    "_ParallelBatchDataset": _Making(tf.raw_ops.ParallelBatchDataset),
    "_ParallelMapDataset": _Making(tf.raw_ops.ParallelMapDatasetV2, "f"),
    "_PrefetchDataset": _Making(tf.raw_ops.PrefetchDataset, others=_prefetch),
    "_RepeatDataset": _Making(tf.raw_ops.RepeatDataset),
    "_RestructuredDataset": _Making(_same),
    "_ScanDataset": _Making(tf.raw_ops.ScanDataset, "f", "scan_func", _scan),
    "_ShardDataset": _Making(tf.raw_ops.ShardDataset),
    "_ShuffleDataset": _Making(
        tf.raw_ops.ShuffleDatasetV3,
        others=lambda _: {"seed_generator": tf.raw_ops.DummySeedGenerator()},
    ),
    "_SkipDataset": _Making(tf.raw_ops.SkipDataset),
    "_TakeDataset": _Making(tf.raw_ops.TakeDataset),
    "_TakeWhileDataset": _Making(tf.raw_ops.TakeWhileDataset, "predicate", "predicate"),
    "_UnbatchDataset": _Making(tf.raw_ops.UnbatchDataset),
    "_ZipDataset": _Making(tf.raw_ops.ZipDataset),
}


def can_be_moved(dataset: Any) -> bool:
    """Whether the same call can be made on other inputs."""
    making = _MAKINGS.get(kind(dataset))
    if making is None:
        return False
    try:
        making.arguments(without_adapter(dataset))
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def moved(dataset: Any, new_inputs: list[Any]) -> Any:
    """The same call on other inputs, whose elements are like those of the first ones.

    No Python function of the user's is called.
    """
    made = without_adapter(dataset)
    making = _MAKINGS[kind(made)]
    again = object.__new__(type(made))
    vars(again).update(_kept(made))
    # The names under which TensorFlow's classes keep their inputs.
    for name, value in (
        ("_input_dataset", new_inputs[0]),
        ("_dataset_to_concatenate", new_inputs[-1]),
        ("_input_datasets", new_inputs),
        ("_datasets", tf.nest.pack_sequence_as(getattr(made, "_datasets", new_inputs), new_inputs)),
    ):
        if hasattr(made, name):
            setattr(again, name, value)
    variants = [each._variant_tensor for each in new_inputs]
    takes = [name for name in inspect.signature(making.op).parameters if name in _INPUTS]
    given = (
        {takes[0]: variants}
        if takes == ["input_datasets"]
        else dict(zip(takes, variants, strict=True))
    )
    accepted = inspect.signature(making.op).parameters
    again._name = getattr(made, "_name", None)  # which some of TensorFlow's classes lack
    common = {name: value for name, value in again._common_args.items() if name in accepted}
    variant = making.op(**given, **making.arguments(made), **common)
    tf.data.Dataset.__init__(again, variant)
    if kind(made) == "_OptionsDataset":
        again._options_attr = made._options_attr
    return again


def map_of(dataset: Any) -> Any:
    """The map() in a map_and_batch(), on the same input."""
    made = without_adapter(dataset)
    mapped = object.__new__(map_op._ParallelMapDataset)
    vars(mapped).update(
        _input_dataset=made._input_dataset,
        _map_func=made._map_func,
        _num_parallel_calls=made._num_parallel_calls_t,
        _deterministic="default",
        _use_inter_op_parallelism=True,
        _preserve_cardinality=True,
        _name=None,
    )
    return moved(mapped, [made._input_dataset])


def calling(dataset: Any, function: Any) -> Any:
    """The same call of another ConcreteFunction, which makes the same. It has to be moved."""
    made = without_adapter(dataset)
    again = object.__new__(type(made))
    vars(again).update(_kept(made), _map_func=copy.copy(made._map_func))
    again._map_func._function = function
    return again


def calls_on(dataset: Any, made: Any) -> list[Any]:
    """The calls that made a dataset of another; none if they are not all on one, or unknown."""
    calls: list[Any] = []
    while made is not dataset:
        before = inputs(made)
        if len(before) != 1 or not kind(made):
            return []
        calls = [*in_steps(made), *calls]
        (made,) = before
    return calls if len(calls) < 2 or all(map(can_be_moved, calls)) else []


def in_steps(dataset: Any) -> list[Any]:
    """The calls that a dataset stands for, one after the other: two for shuffle_and_repeat()."""
    made = without_adapter(dataset)
    if kind(made) != "_ShuffleAndRepeatDataset":
        return [made]
    shuffled = object.__new__(shuffle_op._ShuffleDataset)
    names = ("_input_dataset", "_buffer_size", "_seed", "_seed2")
    vars(shuffled).update({name: getattr(made, name) for name in names})
    vars(shuffled).update(_reshuffle_each_iteration=True, _name=None)
    shuffled = moved(shuffled, [made._input_dataset])
    repeated = object.__new__(repeat_op._RepeatDataset)
    vars(repeated).update(_input_dataset=shuffled, _count=made._count, _name=None)
    return [shuffled, moved(repeated, [shuffled])]


def _kept(made: Any) -> dict[str, Any]:
    """The attributes, without what is saved with an object, which no other may share."""
    return {name: value for name, value in vars(made).items() if not name.startswith("_self_")}


def op_attribute(dataset: Any, op: str, name: str) -> str:
    """A text among the attributes of the dataset's own op, which no Python object keeps.

    The graph is read, and never run. Empty if it cannot be read.
    """
    try:
        text = tf.raw_ops.DatasetToGraphV2(
            input_dataset=without_adapter(dataset)._variant_tensor, external_state_policy=1
        )
    except tf.errors.OpError:
        return ""
    graph = tf.compat.v1.GraphDef.FromString(text.numpy())
    found = [each.attr[name].s.decode() for each in graph.node if each.op == op]
    return found[-1] if found else ""


def default_buffer_size() -> int:
    """What `tf.data.TFRecordDataset` gives its op where the user says nothing."""
    return int(getattr(readers, "_DEFAULT_TF_RECORD_BUFFER_SIZE_BYTES", 0))
