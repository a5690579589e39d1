"""The datasets that TensorFlow makes for calls, and how to make them again.

If TensorFlow does not show how a dataset was made, the dataset stays unchanged.
"""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.columns import ParsedDataset
from tfrfast.tensorflow.lift.copying import origin

# The arguments that every dataset's op has, from `_common_args`, and those for its inputs.
_COMMON = {"name", "output_types", "output_shapes", "metadata"}
_INPUTS = {
    *("another_dataset", "data_input_datasets", "input_dataset", "input_datasets"),
    "selector_input_dataset",
}
# Calls on records that give records.
_SAME_ELEMENTS = {
    *("batch", "cache", "prefetch", "rebatch", "repeat", "shard", "shuffle", "skip", "take"),
    "with_options",
}


def method_of(dataset: Any) -> str:
    """Returns the method that made a dataset; "" for a dataset of another library."""
    made = without_adapter(dataset)
    if type(made) is ParsedDataset:
        return "parse_example"
    return "enumerate" if is_enumeration(made) else internals.maker_of(made).method


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
    takes_tensors = method_of(dataset) in ("rebatch", "unbatch")
    if takes_tensors and method_of(given[0]) == "restructured":
        made = inputs(*inputs(*given))
        specs = tf.nest.flatten([each.element_spec for each in made])
        return made if all(isinstance(each, tf.TensorSpec) for each in specs) else given
    return given


def is_helper(dataset: Any) -> bool:
    """True for a call that TensorFlow itself puts before a call of the user."""
    if method_of(dataset) == "restructured":
        return True
    if method_of(dataset) != "map":
        return False  # a user may give flat_map() a method of Dataset
    function = internals.attribute(attribute(dataset, "map_func"), "func")
    module = getattr(function, "__module__", None) or ""
    return module.startswith(internals.DATASET_MODULES)


def is_enumeration(dataset: Any) -> bool:
    """True for an enumerate(), which TensorFlow makes as a zip() of numbers and a dataset."""
    maker = internals.maker_of(without_adapter(dataset))
    given = inputs(dataset) if maker.method == "zip" else []
    if len(given) != 2 or method_of(given[0]) not in ("range", "from_variant"):
        return False
    return bool(given[0].element_spec == tf.TensorSpec([], tf.int64))


def numbers_of(dataset: Any) -> tuple[int, ...] | None:
    """Returns the arguments of take(), skip() or shard(); None if one is unknown here."""
    names = ("num_shards", "index") if method_of(dataset) == "shard" else ("count",)
    known = [static_integer(attribute(dataset, name)) for name in names]
    numbers = tuple(number for number in known if number is not None)
    return numbers if len(numbers) == len(known) else None


def takes_all(dataset: Any) -> bool:
    """True for a shard of one, for example in a single process, and for take(-1) and skip(0)."""
    all_of = {"shard": (1, 0), "skip": (0,), "take": (-1,)}
    return method_of(dataset) in all_of and numbers_of(dataset) == all_of[method_of(dataset)]


def is_memory_cache(dataset: Any) -> bool:
    """True for a cache() without a file."""
    if method_of(dataset) != "cache":
        return False
    name = tf.get_static_value(attribute(dataset, "filename"))
    return name is not None and not os.fsdecode(getattr(name, "item", lambda: name)())


def is_parallel(dataset: Any) -> bool:
    """True for a map() or an interleave() with a number of calls."""
    return attribute(dataset, "num_parallel_calls") is not None


def is_filter(dataset: Any) -> bool:
    return method_of(dataset) == "filter"


def is_map(dataset: Any) -> bool:
    """True for a call whose elements are not its input's."""
    return method_of(dataset) not in _SAME_ELEMENTS


def attribute(dataset: Any, name: str) -> Any:
    """Returns the value of a private attribute; None if the dataset has no such attribute."""
    return internals.attribute(without_adapter(dataset), name)


def flattened(dataset: Any, name: str) -> list[Any]:
    """Returns the tensors in a private attribute with the structure of the elements."""
    return tf.nest.flatten(attribute(dataset, name))


def function_of(dataset: Any) -> Any:
    """Returns the ConcreteFunction that a dataset calls; None if it calls none, or several."""
    # ragged_batch() keeps its function in an inner dataset.
    wrapper = _wrapper_of(attribute(dataset, "mapped_dataset") or dataset)
    return getattr(wrapper, "function", None)


def function_name(dataset: Any) -> str:
    """Returns the name of the Python function that a dataset calls, for people."""
    return getattr(internals.attribute(_wrapper_of(dataset), "func"), "__name__", "") or "..."


def _wrapper_of(dataset: Any) -> Any:
    return attribute(dataset, internals.maker_of(without_adapter(dataset)).kept_as)


def _prefetch(dataset: Any) -> dict[str, Any]:
    size = static_integer(internals.attribute(dataset, "buffer_size"))
    return {"legacy_autotune": size == tf.data.AUTOTUNE, "slack_period": 0}


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
    given = {name: internals.attribute(dataset, f"{name}_t") for name in names}
    return given | {"preserve_cardinality": True}


def _group_by_window(dataset: Any) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name in ("key_func", "reduce_func", "window_size_func"):
        function = internals.attribute(internals.attribute(dataset, name), "function")
        given |= {name: function, f"{name}_other_arguments": function.captured_inputs}
    return given


#: The arguments of ops that are not attributes of the same name.
_OTHERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "assert_cardinality": lambda dataset: {
        "cardinality": internals.attribute(dataset, "expected_cardinality")
    },
    "cache": lambda _: {"cache": tf.raw_ops.DummyMemoryCache()},
    "group_by_window": _group_by_window,
    # Only the serialised graph shows whether parallel calls are deterministic. A fixed order is
    # right in both cases.
    "interleave": lambda dataset: {"deterministic": "true"} if is_parallel(dataset) else {},
    "map_and_batch": _map_and_batch,
    "padded_batch": lambda dataset: {
        name: flattened(dataset, name) for name in ("padded_shapes", "padding_values")
    },
    "prefetch": _prefetch,
    "scan": _scan,
    "shuffle": lambda _: {"seed_generator": tf.raw_ops.DummySeedGenerator()},
    "with_options": _options,
}


def _keeping(dataset: Any) -> Any:
    """Returns the dataset that keeps the arguments: an inner one of ragged_batch()."""
    return internals.attribute(dataset, "mapped_dataset") or dataset


def _parameters(call: internals.Maker) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(getattr(tf.raw_ops, call.op)).parameters


def _arguments(dataset: Any) -> dict[str, Any]:
    """Returns the arguments of a dataset's op but its inputs. Raises AttributeError if the dataset
    does not show one.
    """
    call = internals.maker_of(dataset)
    others = _OTHERS.get(call.method)
    given = others(dataset) if others else {}
    if call.function:
        function = function_of(dataset)
        given |= {call.function: function, "other_arguments": function.captured_inputs}
    keeping = _keeping(dataset)
    for name, parameter in _parameters(call).items():
        if name in _COMMON or name in given or name in _INPUTS:
            continue
        if internals.has_attribute(keeping, name):
            given[name] = internals.attribute(keeping, name)
        elif parameter.default is inspect.Parameter.empty:
            raise AttributeError(f"{type(dataset).__name__} has no _{name}")
    return given


def _copied_to_device(dataset: Any, given: Any) -> Any:
    """Returns copy_to_device(), with which prefetch_to_device() begins."""
    devices = (attribute(dataset, name) for name in ("target_device", "source_device_string"))
    return tf.data.experimental.copy_to_device(*devices)(given)


def given_features(dataset: Any) -> dict[str, Any]:
    """Returns the features of a parse_example_dataset(), whose class keeps sequences with a
    dimension more.
    """
    return {
        name: each._replace(shape=each.shape[1:])
        if isinstance(each, tf.io.FixedLenSequenceFeature)
        else each
        for name, each in attribute(dataset, "features").items()
    }


def _parsed_by_theirs(dataset: Any, given: Any) -> Any:
    order = {"default": None, "true": True, "false": False}[attribute(dataset, "deterministic")]
    calls = attribute(dataset, "num_parallel_calls")
    return type(dataset)(given, given_features(dataset), calls, order)


#: Calls without a function of the user's.
_CALLED_AGAIN = {
    "parse_example": lambda dataset, given: ParsedDataset(given, dataset.features),
    "copy_to_device": _copied_to_device,
    "parse_example_dataset": _parsed_by_theirs,
}


def can_be_moved(dataset: Any) -> bool:
    """True if the same call can be made on other inputs."""
    if method_of(dataset) in _CALLED_AGAIN:
        return True
    made = without_adapter(dataset)
    if not internals.maker_of(made).op:
        return method_of(made) == "restructured"
    try:
        _arguments(made)
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def moved(dataset: Any, new_inputs: list[Any]) -> Any:
    """Makes the same call on other inputs, whose elements have the same specs.

    An enumerate() takes one input, and keeps its numbers. Calls no Python function of the user's.
    """
    made = without_adapter(dataset)
    if again := _CALLED_AGAIN.get(method_of(made)):
        return again(made, *new_inputs)
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
    variant = _variant(made, again, [internals.variant_of(each) for each in new_inputs])
    tf.data.Dataset.__init__(again, variant)
    if method_of(made) == "with_options":
        internals.set_options(again, internals.options_of(made))
    return again


def _variant(made: Any, again: Any, of_inputs: list[Any]) -> Any:
    """Returns the output of the op of `made` with other inputs, for the object `again`."""
    call = internals.maker_of(made)
    if not call.op:  # a dataset that differs only in its spec
        return of_inputs[0]
    accepted = _parameters(call)
    takes = [name for name in accepted if name in _INPUTS]
    if takes[-1].endswith("datasets"):  # a list of all others
        of_inputs = [*of_inputs[: len(takes) - 1], of_inputs[len(takes) - 1 :]]
    given = dict(zip(takes, of_inputs, strict=True)) | _arguments(made)
    shown = internals.attribute(_keeping(again), "common_args")
    given |= {name: value for name, value in shown.items() if name in accepted}
    return getattr(tf.raw_ops, call.op)(**given)


def calling(dataset: Any, function: Any) -> Any:
    """Returns the same call with an equivalent ConcreteFunction. Pass the result to moved()."""
    made = without_adapter(dataset)
    called = internals.like(attribute(made, "map_func"), function=function)
    return internals.like(made, map_func=called)


def is_made_again(made: Any, dataset: Any) -> bool:
    """True if the calls on `dataset` that gave `made` can be made again, or the call that joins."""
    while made is not dataset:
        if not all(map(can_be_moved, in_steps(made))):
            return False
        given = before(made)
        if len(given) != 1:
            return bool(given)
        (made,) = given
    return True


def in_steps(dataset: Any) -> list[Any]:
    """Returns the calls that a dataset stands for, in order: two for shuffle_and_repeat() and
    map_and_batch(), and unbatch() for a flat_map() of slices.
    """
    made = without_adapter(dataset)
    if _slices(made):
        cut = inputs(made)[0].unbatch()
        return [cut if cut.element_spec == made.element_spec else made]
    given = attribute(made, "input_dataset")

    def kept(*names: str) -> dict[str, Any]:
        return {"input_dataset": given, "name": None} | {n: attribute(made, n) for n in names}

    if method_of(made) == "shuffle_and_repeat":
        seeds = kept("buffer_size", "seed", "seed2")
        first = internals.like(made, internals.Shuffle, reshuffle_each_iteration=True, **seeds)
        first = moved(first, [given])
        return [first, first.repeat(attribute(made, "count"))]
    if method_of(made) == "map_and_batch":
        first = internals.like(
            made,
            internals.ParallelMap,
            num_parallel_calls=attribute(made, "num_parallel_calls_t"),
            deterministic="default",
            use_inter_op_parallelism=True,
            preserve_cardinality=True,
            **kept("map_func"),
        )
        first = moved(first, [given])
        sizes = attribute(made, "batch_size_t"), attribute(made, "drop_remainder_t")
        return [first, first.batch(*sizes)]
    return [made]


def with_rebatch(calls: list[Any]) -> tuple[Any, ...]:
    """Returns the calls, with rebatch() in place of unbatch() and batch() of rows of one shape."""
    made: list[Any] = []
    for call in calls:
        rows = attribute(call, "batch_size")
        is_batch = method_of(call) == "batch" and static_integer(rows) is not None
        is_again = is_batch and bool(made) and method_of(made[-1]) == "unbatch"
        if is_again and has_one_shape(made[-1].element_spec):
            (whole,) = inputs(made.pop())
            made.append(whole.rebatch(rows, attribute(call, "drop_remainder")))
        else:
            made.append(call)
    return tuple(made)


def has_one_shape(spec: Any) -> bool:
    """True if all components of elements are dense, and have one shape in all elements."""
    specs = tf.nest.flatten(spec)
    return all(isinstance(e, tf.TensorSpec) and e.shape.is_fully_defined() for e in specs)


def _slices(dataset: Any) -> bool:
    """True for `flat_map(tf.data.Dataset.from_tensor_slices)` of tensors."""
    function = function_of(dataset) if method_of(dataset) == "flat_map" else None
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
    variant = internals.variant_of(without_adapter(dataset))
    with tf.init_scope():  # reads an eager dataset inside a function, too
        if tf.is_symbolic_tensor(variant) or not tf.executing_eagerly():
            return ""
        try:
            text = tf.raw_ops.DatasetToGraphV2(input_dataset=variant, external_state_policy=1)
        except tf.errors.OpError:
            return ""
    graph = tf.compat.v1.GraphDef.FromString(text.numpy())
    found = [each.attr[name].s.decode() for each in graph.node if each.op == op]
    return found[-1] if found else ""


def static_integer(value: Any) -> int | None:
    static = tf.get_static_value(value)
    if static is None or getattr(static, "shape", ()) != () or isinstance(static, bool):
        return None
    try:
        return operator.index(static)
    except TypeError:
        return None
