"""The datasets that TensorFlow makes for calls, and how to make them again.

If TensorFlow does not show how a dataset was made, the dataset stays unchanged.
"""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.integers import static_integer
from tfrfast.tensorflow.parsed import ParsedDataset
from tfrfast.tensorflow.recognition import origin

# The arguments that every dataset's op has, from `_common_args`.
_COMMON = {"name", "output_types", "output_shapes", "metadata"}
# Calls on records that give records.
_SAME_ELEMENTS = {
    *("cache", "batch", "with_options", "batch in parallel"),
    *("prefetch", "rebatch", "repeat", "shard", "shuffle"),
    *("skip", "take"),
}
# The argument with which a call takes all elements.
_TAKING_ALL = {
    "shard": ("num_shards", 1),
    "skip": ("count", 0),
    "take": ("count", -1),
}


def kind(dataset: Any) -> str:
    """Returns the call that made a dataset; "" for a dataset of another library."""
    made = without_adapter(dataset)
    return "parse_example" if type(made) is ParsedDataset else internals.call_of(made)


def without_adapter(dataset: Any) -> Any:
    """Returns the dataset inside a `tf.compat.v1` adapter, or the dataset itself."""
    while type(dataset).__name__ == "DatasetV1Adapter":
        dataset = internals.attribute(dataset, "dataset")
    return dataset


def inputs(dataset: Any) -> list[Any]:
    return internals.inputs_of(without_adapter(dataset))


def before(dataset: Any) -> list[Any]:
    """Returns the inputs of a call; for an enumerate(), the dataset that it numbers.

    Before unbatch() and rebatch(), TensorFlow turns all components into tensors. If all components
    were tensors already, returns the dataset before that step.
    """
    given = inputs(dataset)
    if is_enumeration(dataset):
        return given[1:]
    takes_tensors = kind(dataset) in ("rebatch", "unbatch")
    if takes_tensors and kind(given[0]) == "restructured":
        made = inputs(*inputs(*given))
        specs = tf.nest.flatten([each.element_spec for each in made])
        return made if all(isinstance(each, tf.TensorSpec) for each in specs) else given
    return given


def is_helper(dataset: Any) -> bool:
    """True for a call that TensorFlow itself puts before a call of the user."""
    if kind(dataset) == "restructured":
        return True
    if kind(dataset) not in ("map", "map in parallel"):
        return False  # a user may give flat_map() a method of Dataset
    function = internals.attribute(attribute(dataset, "map_func"), "func")
    module = getattr(function, "__module__", None) or ""
    return module.startswith(internals.DATASET_MODULES)


def is_enumeration(dataset: Any) -> bool:
    """True for an enumerate(), which TensorFlow makes as a zip() of numbers and a dataset."""
    given = inputs(dataset) if kind(dataset) == "zip" else []
    if len(given) != 2 or kind(given[0]) not in ("range", "from_variant"):
        return False
    return bool(given[0].element_spec == tf.TensorSpec([], tf.int64))


def takes_all(dataset: Any) -> bool:
    """True for a shard of one, for example in a single process, and for take(-1) and skip(0)."""
    name, count = _TAKING_ALL.get(kind(dataset), ("", None))
    return count is not None and static_integer(attribute(dataset, name)) == count


def is_memory_cache(dataset: Any) -> bool:
    """True for a cache() without a file."""
    if kind(dataset) != "cache":
        return False
    name = tf.get_static_value(attribute(dataset, "filename"))
    return name is not None and not os.fsdecode(getattr(name, "item", lambda: name)())


def is_filter(dataset: Any) -> bool:
    return kind(dataset) == "filter"


def is_map(dataset: Any) -> bool:
    """True for a call whose elements are not its input's."""
    return kind(dataset) not in _SAME_ELEMENTS


def strings_of(dataset: Any) -> list[bytes]:
    """Returns the strings of a dataset."""
    return [bytes(each) for each in without_adapter(dataset).as_numpy_iterator()]


def attribute(dataset: Any, name: str) -> Any:
    """Returns the value of a private attribute; None if the dataset has no such attribute."""
    return internals.attribute(without_adapter(dataset), name)


def flattened(dataset: Any, name: str) -> list[Any]:
    """Returns the tensors in a private attribute with the structure of the elements."""
    return tf.nest.flatten(attribute(dataset, name))


def function_of(dataset: Any) -> Any:
    """Returns the ConcreteFunction that a dataset calls; None if TensorFlow hides it."""
    # ragged_batch() keeps its function in an inner dataset.
    dataset = attribute(dataset, "mapped_dataset") or dataset
    function = getattr(attribute(dataset, _function_attribute(dataset)), "function", None)
    graph = getattr(function, "graph", None)
    shown = ("inputs", "outputs", "control_outputs", "captures")
    return function if all(hasattr(graph, name) for name in shown) else None


def function_name(dataset: Any) -> str:
    """Returns the name of the Python function that a dataset calls, for people."""
    wrapper = attribute(dataset, _function_attribute(dataset))
    name = getattr(internals.attribute(wrapper, "func"), "__name__", "")
    return name or "..."


def _function_attribute(dataset: Any) -> str:
    making = _MAKINGS.get(kind(dataset))
    return making.function_attribute if making is not None else "map_func"


@dataclass(frozen=True)
class _Making:
    """The way in which TensorFlow makes a dataset from its inputs and attributes."""

    op: Any
    #: The op's argument for the traced function, and the attribute that keeps the function.
    function_argument: str = ""
    function_attribute: str = "map_func"
    #: Arguments that are not attributes of the same name.
    others: Callable[[Any], dict[str, Any]] = lambda _: {}

    def arguments(self, dataset: Any) -> dict[str, Any]:
        given = self.others(dataset)
        for name, parameter in inspect.signature(self.op).parameters.items():
            if name in _COMMON or name in given or name in _INPUTS:
                continue
            if internals.has_attribute(dataset, name):
                given[name] = internals.attribute(dataset, name)
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


_INPUTS = {
    "another_dataset",
    "data_input_datasets",
    "input_dataset",
    "input_datasets",
    "selector_input_dataset",
}


def _prefetch(dataset: Any) -> dict[str, Any]:
    chosen_by_runtime = (
        static_integer(internals.attribute(dataset, "buffer_size")) == tf.data.AUTOTUNE
    )
    return {"legacy_autotune": chosen_by_runtime, "slack_period": 0}


def _padded_batch(dataset: Any) -> dict[str, Any]:
    return {name: flattened(dataset, name) for name in ("padded_shapes", "padding_values")}


def _scan(dataset: Any) -> dict[str, Any]:
    """Returns the arguments of a scan() in a tf.function's loop. Only its op shows some of them."""
    made = internals.variant_of(dataset)
    state = tf.nest.flatten(internals.attribute(dataset, "initial_state"))
    if not tf.is_symbolic_tensor(made) or not all(map(tf.is_tensor, state)):
        raise AttributeError("the dataset does not show how it was made")
    shown = ("preserve_cardinality", "use_default_device")
    return {"initial_state": state} | {name: made.op.get_attr(name) for name in shown}


def _options(dataset: Any) -> dict[str, Any]:
    return {"serialized_options": internals.serialized(internals.options_of(dataset))}


def _map_and_batch(dataset: Any) -> dict[str, Any]:
    names = ("batch_size", "num_parallel_calls", "drop_remainder")
    return {
        **{name: internals.attribute(dataset, f"{name}_t") for name in names},
        "preserve_cardinality": True,
    }


def _group_by_window(dataset: Any) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name in ("key_func", "reduce_func", "window_size_func"):
        function = internals.attribute(internals.attribute(dataset, name), "function")
        given |= {name: function, f"{name}_other_arguments": function.captured_inputs}
    return given


def _ragged(input_dataset: Any, mapped_dataset: Any) -> Any:
    """Returns the map() with which ragged_batch() begins."""
    arguments = _MAKINGS["map"].arguments(mapped_dataset)
    return tf.raw_ops.MapDataset(
        input_dataset=input_dataset,
        **arguments,
        **internals.attribute(mapped_dataset, "common_args"),
    )


def _same(input_dataset: Any) -> Any:
    """Returns a dataset that differs only in its spec, which the Python object holds."""
    return input_dataset


_MAKINGS = {
    "assert_cardinality": _Making(
        tf.raw_ops.AssertCardinalityDataset,
        others=lambda dataset: {
            "cardinality": internals.attribute(dataset, "expected_cardinality")
        },
    ),
    "cache": _Making(
        tf.raw_ops.CacheDatasetV2, others=lambda _: {"cache": tf.raw_ops.DummyMemoryCache()}
    ),
    "batch": _Making(tf.raw_ops.BatchDatasetV2),
    "concatenate": _Making(tf.raw_ops.ConcatenateDataset),
    "ragged_batch": _Making(_ragged),
    "choose_from_datasets": _Making(tf.raw_ops.DirectedInterleaveDataset),
    "filter": _Making(tf.raw_ops.FilterDataset, "predicate", "predicate"),
    "flat_map": _Making(tf.raw_ops.FlatMapDataset, "f"),
    "group_by_window": _Making(tf.raw_ops.GroupByWindowDataset, others=_group_by_window),
    "ignore_errors": _Making(tf.raw_ops.IgnoreErrorsDataset),
    "interleave": _Making(tf.raw_ops.InterleaveDataset, "f"),
    "map_and_batch": _Making(tf.raw_ops.MapAndBatchDataset, "f", others=_map_and_batch),
    "map": _Making(tf.raw_ops.MapDataset, "f"),
    "with_options": _Making(tf.raw_ops.OptionsDataset, others=_options),
    "padded_batch": _Making(tf.raw_ops.PaddedBatchDatasetV2, others=_padded_batch),
    "batch in parallel": _Making(tf.raw_ops.ParallelBatchDataset),
    # Only the serialised graph shows whether the interleave() is deterministic. A fixed order is
    # right in both cases.
    "interleave in parallel": _Making(
        tf.raw_ops.ParallelInterleaveDatasetV4, "f", others=lambda _: {"deterministic": "true"}
    ),
    "map in parallel": _Making(tf.raw_ops.ParallelMapDatasetV2, "f"),
    "prefetch": _Making(tf.raw_ops.PrefetchDataset, others=_prefetch),
    "rebatch": _Making(tf.raw_ops.RebatchDatasetV2),
    "repeat": _Making(tf.raw_ops.RepeatDataset),
    "restructured": _Making(_same),
    "scan": _Making(tf.raw_ops.ScanDataset, "f", "scan_func", _scan),
    "shard": _Making(tf.raw_ops.ShardDataset),
    "shuffle": _Making(
        tf.raw_ops.ShuffleDatasetV3,
        others=lambda _: {"seed_generator": tf.raw_ops.DummySeedGenerator()},
    ),
    "skip": _Making(tf.raw_ops.SkipDataset),
    "take": _Making(tf.raw_ops.TakeDataset),
    "take_while": _Making(tf.raw_ops.TakeWhileDataset, "predicate", "predicate"),
    "unbatch": _Making(tf.raw_ops.UnbatchDataset),
    "unique": _Making(tf.raw_ops.UniqueDataset),
    "window": _Making(tf.raw_ops.WindowDataset),
    "zip": _Making(tf.raw_ops.ZipDataset),
}


def _copied_to_device(dataset: Any, given: Any) -> Any:
    """Returns copy_to_device(), with which prefetch_to_device() begins."""
    devices = (attribute(dataset, name) for name in ("target_device", "source_device_string"))
    return tf.data.experimental.copy_to_device(*devices)(given)


def _parsed_by_theirs(dataset: Any, given: Any) -> Any:
    """Returns parse_example_dataset(), whose class keeps sequences with a dimension more."""
    features = {
        name: each._replace(shape=each.shape[1:])
        if isinstance(each, tf.io.FixedLenSequenceFeature)
        else each
        for name, each in attribute(dataset, "features").items()
    }
    calls, order = attribute(dataset, "num_parallel_calls"), attribute(dataset, "deterministic")
    return type(dataset)(given, features, calls, _DETERMINISTIC[order])


_DETERMINISTIC = {"default": None, "true": True, "false": False}
#: Calls without a function of the user's.
_CALLED_AGAIN = {
    "parse_example": lambda dataset, given: ParsedDataset(given, dataset.features),
    "copy_to_device": _copied_to_device,
    "parse_example_dataset": _parsed_by_theirs,
}


def can_be_moved(dataset: Any) -> bool:
    """True if the same call can be made on other inputs."""
    if kind(dataset) in _CALLED_AGAIN:
        return True
    making = _MAKINGS.get(kind(dataset))
    if making is None:
        return False
    try:
        making.arguments(without_adapter(dataset))
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def moved(dataset: Any, new_inputs: list[Any]) -> Any:
    """Makes the same call on other inputs, whose elements have the same specs.

    An enumerate() takes one input, and keeps its numbers. Calls no Python function of the user's.
    """
    made = without_adapter(dataset)
    if again := _CALLED_AGAIN.get(kind(made)):
        return again(made, *new_inputs)
    making = _MAKINGS[kind(made)]
    if len(new_inputs) == 1 and is_enumeration(made):
        new_inputs = [inputs(made)[0], *new_inputs]
    nested = internals.attribute(made, "datasets")
    # The names under which TensorFlow's classes keep their inputs.
    kept = {
        "input_dataset": new_inputs[0],
        "dataset_to_concatenate": new_inputs[-1],
        "input_datasets": new_inputs,
        "selector_input": new_inputs[0],
        "data_inputs": new_inputs[1:],
        "datasets": nested and tf.nest.pack_sequence_as(nested, new_inputs),
    }
    has = internals.has_attribute
    attributes = {name: value for name, value in kept.items() if has(made, name)}
    # Some of TensorFlow's classes lack a name.
    again = internals.like(made, name=attribute(made, "name"), **attributes)
    variants = [internals.variant_of(each) for each in new_inputs]
    accepted = inspect.signature(making.op).parameters
    takes = [name for name in accepted if name in _INPUTS]
    if takes[-1].endswith("datasets"):  # a list of all others
        variants = [*variants[: len(takes) - 1], variants[len(takes) - 1 :]]
    given = dict(zip(takes, variants, strict=True))
    shown = internals.attribute(again, "common_args")
    common = {name: value for name, value in shown.items() if name in accepted}
    variant = making.op(**given, **making.arguments(made), **common)
    tf.data.Dataset.__init__(again, variant)
    if kind(made) == "with_options":
        internals.set_options(again, internals.options_of(made))
    return again


def map_of(dataset: Any) -> Any:
    """Returns the map() in a map_and_batch(), on the same input."""
    made = without_adapter(dataset)
    given = attribute(made, "input_dataset")
    mapped = internals.like(
        made,
        internals.ParallelMap,
        input_dataset=given,
        map_func=attribute(made, "map_func"),
        num_parallel_calls=attribute(made, "num_parallel_calls_t"),
        deterministic="default",
        use_inter_op_parallelism=True,
        preserve_cardinality=True,
        name=None,
    )
    return moved(mapped, [given])


def calling(dataset: Any, function: Any) -> Any:
    """Returns the same call with an equivalent ConcreteFunction. Pass the result to moved()."""
    made = without_adapter(dataset)
    called = internals.like(attribute(made, "map_func"), function=function)
    return internals.like(made, map_func=called)


def calls_on(dataset: Any, made: Any) -> list[Any]:
    """Returns the calls on `dataset` that gave `made`; none if a call is unknown, or takes several
    inputs.
    """
    calls: list[Any] = []
    while made is not dataset:
        given = before(made)
        if len(given) != 1 or not kind(made) or is_helper(made):
            return []
        calls = [*in_steps(made), *calls]
        (made,) = given
    return calls if len(calls) < 2 or all(map(can_be_moved, calls)) else []


def in_steps(dataset: Any) -> list[Any]:
    """Returns the calls that a dataset stands for, in order: two for shuffle_and_repeat(), and
    unbatch() for a flat_map() of slices.
    """
    made = without_adapter(dataset)
    if _slices(made):
        cut = inputs(made)[0].unbatch()
        return [cut if cut.element_spec == made.element_spec else made]
    if kind(made) != "shuffle_and_repeat":
        return [made]
    given, attributes = attribute(made, "input_dataset"), ("buffer_size", "seed", "seed2")
    shuffled = internals.like(
        made,
        internals.Shuffle,
        input_dataset=given,
        reshuffle_each_iteration=True,
        name=None,
        **{name: attribute(made, name) for name in attributes},
    )
    shuffled = moved(shuffled, [given])
    repeated = internals.like(
        made,
        internals.Repeat,
        input_dataset=shuffled,
        count=attribute(made, "count"),
        name=None,
    )
    return [shuffled, moved(repeated, [shuffled])]


def _slices(dataset: Any) -> bool:
    """True for `flat_map(tf.data.Dataset.from_tensor_slices)` of tensors."""
    function = function_of(dataset) if kind(dataset) == "flat_map" else None
    if function is None or len(function.graph.outputs) != 1:
        return False
    made = origin(internals.before_return(function.graph.outputs[0])).op
    sliced = [origin(each) for each in made.inputs]
    specs = tf.nest.flatten(inputs(dataset)[0].element_spec)
    return (
        made.type == "TensorSliceDataset"
        and all(each is made for each in function.graph.control_outputs)
        and len(sliced) == len(function.graph.inputs)
        and all(map(operator.is_, sliced, function.graph.inputs))
        and all(isinstance(each, tf.TensorSpec) and each.shape.rank for each in specs)
    )


def op_attribute(dataset: Any, op: str, name: str) -> str:
    """Returns a text attribute of the dataset's own op, which no Python object keeps.

    Reads the graph, and never runs it. Empty if the graph cannot be read.
    """
    try:
        text = tf.raw_ops.DatasetToGraphV2(
            input_dataset=internals.variant_of(without_adapter(dataset)), external_state_policy=1
        )
    except tf.errors.OpError:
        return ""
    graph = tf.compat.v1.GraphDef.FromString(text.numpy())
    found = [each.attr[name].s.decode() for each in graph.node if each.op == op]
    return found[-1] if found else ""
