"""TensorFlow's private names, each only here, as in TensorFlow 2.15 to 2.21.

`missing()` lists the names that another TensorFlow lacks. Only `reading` also has names of dataset
classes, by which it recognises calls.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

_missing: list[str] = []


def _named(place: str, other: Any = None) -> Any:
    """Returns TensorFlow's object of a private name, or `other` if the name is missing."""
    module, _, name = place.rpartition(".")
    try:
        return getattr(importlib.import_module(f"tensorflow.python.{module}"), name)
    except (ImportError, AttributeError):
        if other is None:
            _missing.append(f"tensorflow.python.{place}")
        return other


def _needed(place: str) -> Any:
    found = _named(place)
    if found is None:
        raise ImportError(
            f"TensorFlow {tf.__version__} has no tensorflow.python.{place}, which "
            "tfrfast.tensorflow needs. Use a TensorFlow from 2.15 to 2.21."
        )
    return found


# Classes of datasets and iterators.
Dataset: Any = _needed("data.ops.dataset_ops.DatasetV2")
TheirTFRecordDataset: Any = _needed("data.ops.readers.TFRecordDatasetV2")
OwnedIterator: Any = _needed("data.ops.iterator_ops.OwnedIterator")
DenseToRagged: Any = _needed("data.ops.ragged_batch_op._DenseToRaggedDataset")
ParallelMap: Any = _named("data.ops.map_op._ParallelMapDataset")
Repeat: Any = _named("data.ops.repeat_op._RepeatDataset")
Shuffle: Any = _named("data.ops.shuffle_op._ShuffleDataset")

# Functions about file names and features.
dataset_of_names: Any = _needed("data.ops.readers._create_or_validate_filenames_dataset")
dataset_of_files: Any = _needed("data.ops.readers._create_dataset_reader")
composite_features: Any = _needed("ops.parsing_config._construct_tensors_for_composite_features")
#: The default arguments of `tf.data.TFRecordDataset`'s op.
default_buffer_bytes: int = _named("data.ops.readers._DEFAULT_TF_RECORD_BUFFER_SIZE_BYTES", 0)

# Elements as flat lists of tensors.
flat_shapes: Any = _needed("data.util.structure.get_flat_tensor_shapes")
flat_specs: Any = _needed("data.util.structure.get_flat_tensor_specs")
flat_types: Any = _needed("data.util.structure.get_flat_tensor_types")
flat_tensors: Any = _needed("data.util.structure.to_tensor_list")
spec_of: Any = _needed("data.util.structure.type_spec_from_value")

# Tracing and running of functions.
eager_mode: Any = _needed("eager.context.eager_mode")
_concrete_function: Any = _named("eager.polymorphic_function.concrete_function.ConcreteFunction")
_function_type_of: Any = _named("eager.polymorphic_function.function_type_utils.derive_from_graph")
_graph_of_python: Any = _named("framework.func_graph.func_graph_from_py_func")
_definition_of_op: Any = _named("framework.op_def_registry.get")

#: The modules whose classes make datasets.
DATASET_MODULES = "tensorflow.python.data."
#: The module and the name of the function in `tf.data.experimental.parse_example_dataset`.
PARSE_EXAMPLE_DATASET = (
    "tensorflow.python.data.experimental.ops.parsing_ops",
    "parse_example_dataset.<locals>._apply_fn",
)
#: Callers of `_apply_debug_options` that serialise a dataset, or drop the result.
SERIALISING = frozenset(
    [
        "tensorflow.python.data.experimental.ops.data_service_ops",
        "tensorflow.python.data.experimental.ops.distribute",
        "tensorflow.python.data.experimental.ops.prefetching_ops",
        "tensorflow.python.data.experimental.ops.writers",
        "tensorflow.python.data.ops.save_op",
        "tensorflow.python.distribute.coordinator.values",
    ]
)

# Methods and attributes that tfrfast uses or overrides.
_OF_DATASETS = (
    *("_apply_debug_options", "_functions", "_inputs", "_options_attr", "_trace_variant_creation"),
    *("_trackable_children", "_variant_tensor", "_variant_tensor_attr"),
)
_OF_ITERATORS = ("_restore_from_tensors",)
_OF_GRAPHS = ("_add_function_recursive", "_get_function", "capture", "captures", "control_outputs")


def traced(
    name: str, run: Callable[..., Any], given: tuple[Any, ...], attributes: dict[str, Any]
) -> Any:
    """Returns the ConcreteFunction of a body whose ops need no order, without ops that the results
    do not need; None if this TensorFlow makes functions in another way.
    """
    if None in (_concrete_function, _function_type_of, _graph_of_python):
        return None
    try:
        graph = _graph_of_python(name, run, given, {}, add_control_dependencies=False)
        return _concrete_function.from_func_graph(graph, _function_type_of(graph), attributes)
    except (AttributeError, TypeError):
        return None


def missing() -> list[str]:
    """Returns the private names that this TensorFlow lacks."""
    function = tf.function(lambda given: given).get_concrete_function(tf.TensorSpec([], tf.int64))
    dataset = tf.data.Dataset.range(1)
    groups = (
        (dataset, _OF_DATASETS),
        (OwnedIterator, _OF_ITERATORS),
        (function.graph, _OF_GRAPHS),
        (tf.TensorSpec([], tf.int64), ("_batch",)),
        (tf.data.Dataset.from_tensors(0), ("_tensors",)),
        (dataset.map(lambda number: number), ("_map_func",)),
    )
    lacking = [
        f"{type(owner).__name__}.{name}"
        for owner, names in groups
        for name in names
        if not hasattr(owner, name)
    ]
    return [*_missing, *lacking]


def attribute(dataset: Any, name: str) -> Any:
    """Returns the value that a dataset keeps of an argument; None without such an attribute.

    TensorFlow's classes keep an argument of their op under its name with a `_` before it.
    """
    return getattr(dataset, f"_{name}", None)


def has_attribute(dataset: Any, name: str) -> bool:
    return hasattr(dataset, f"_{name}")


def like(dataset: Any, kind: Any = None, **attributes: Any) -> Any:
    """Returns a dataset object of the same class with other attributes, which is not set up yet.

    With a `kind`, returns an object of that class with only these attributes.
    """
    made = object.__new__(type(dataset) if kind is None else kind)
    if kind is None:  # saved attributes must not be shared between objects
        vars(made).update({k: v for k, v in vars(dataset).items() if not k.startswith("_self_")})
    vars(made).update({f"_{name}": value for name, value in attributes.items()})
    return made


def variant_of(dataset: Any) -> Any:
    """Returns the tensor that stands for a dataset."""
    return dataset._variant_tensor


def inputs_of(dataset: Any) -> list[Any]:
    return list(dataset._inputs())


def functions_of(dataset: Any) -> list[Any]:
    """Returns the ConcreteFunctions that a dataset calls, and the structures of their results."""
    return list(dataset._functions())


def options_of(dataset: Any) -> Any:
    """Returns a dataset's own options; options() warns in graphs."""
    return dataset._options_attr


def set_options(dataset: Any, options: Any) -> None:
    dataset._options_attr = options


def serialized(options: Any) -> bytes:
    text: bytes = options._to_proto().SerializeToString()
    return text


def captured(tensor: Any, graph: Any) -> Any:
    """Returns the tensor of a FuncGraph that stands for an outer tensor."""
    return graph.capture(tensor)


def captures_of(graph: Any) -> list[tuple[Any, Any]]:
    """Returns each captured tensor of a FuncGraph, with its placeholder."""
    return list(graph.captures)


def body_of(call: Any) -> Any:
    """Returns the graph of the function that an operation calls; None if unavailable."""
    find = getattr(call.graph, "_get_function", None)
    return None if find is None else getattr(find(call.get_attr("f").name), "graph", None)


def share_function(name: str, graph: Any, other: Any) -> bool:
    """Lets another graph call a function that a graph knows. Returns True on success."""
    find: Callable[[str], Any] | None = getattr(graph, "_get_function", None)
    add = getattr(other, "_add_function_recursive", None)
    function = None if find is None else find(name)
    if add is None or function is None:
        return False
    add(function)
    return True


def is_stateful(kind: str) -> bool:
    """True if ops of this type have effects or a state, according to TensorFlow."""
    definition = None if _definition_of_op is None else _definition_of_op(kind)
    return definition is None or definition.is_stateful


# Ops that TensorFlow does not count as state.
_WITHOUT_STATE = ("Assert", "HashTableV2", "LookupTableFindV2", "LookupTableSizeV2", "PrintV2")
# The functions of ops that have a state if one of their functions has.
_BODIES = {"If": ("then_branch", "else_branch"), "While": ("cond", "body")}


def has_state(function: Any) -> bool:
    """True if a function has ops with a state, such as random numbers.

    TensorFlow saves symbolic positions at each element, and logs each function with a state then.
    """
    definition = function.graph.as_graph_def()
    known = {each.signature.name: each.node_def for each in definition.library.function}

    def any_has(nodes: Any) -> bool:
        for node in nodes:
            if bodies := _BODIES.get(node.op):
                if any(any_has(known[node.attr[body].func.name]) for body in bodies):
                    return True
            elif node.op not in _WITHOUT_STATE and is_stateful(node.op):
                return True
        return False

    return any_has(definition.node)


def batched(spec: Any, rows: int | None) -> Any:
    """Returns the spec of batches of elements with this spec, like batch()."""
    return spec._batch(rows)


def before_return(tensor: Any) -> Any:
    """Returns the result before the identity that waits for necessary operations."""
    operation = tensor.op
    waits = operation.control_inputs
    if operation.type == "Identity" and all(each.type == "NoOp" for each in waits):
        return operation.inputs[0]
    return tensor
