"""TensorFlow's private names, each only here and with its purpose, as in TensorFlow 2.15 to 2.21.

If another TensorFlow lacks one, tfrfast leaves all datasets to TensorFlow: see `missing()`.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import tensorflow as tf

#: The purpose of each private name of a module or a class in tensorflow.python.
PURPOSES: dict[str, str] = {}


def found(place: str) -> Any:
    """Returns TensorFlow's object of a name in tensorflow.python; None if it is missing."""
    module, *names = re.split(r"\.(?=_*[A-Z]|[^.]*$)", place)
    try:
        owner = importlib.import_module(f"tensorflow.python.{module}")
        return functools.reduce(getattr, names, owner)
    except (ImportError, AttributeError):
        return None


def _named(place: str, purpose: str) -> Any:
    PURPOSES[place] = purpose
    return found(place)


@functools.cache
def missing() -> tuple[str, ...]:
    """Returns the names that this TensorFlow lacks."""
    return tuple(f"tensorflow.python.{each}" for each in PURPOSES if found(each) is None)


Dataset: Any = _named("data.ops.dataset_ops.DatasetV2", "install() replaces its method")
TheirTFRecordDataset: Any = _named(
    "data.ops.readers.TFRecordDatasetV2", "TensorFlow's class, also if a program replaced it"
)
OwnedIterator: Any = _named("data.ops.iterator_ops.OwnedIterator", "a base of iterators") or object
DenseToRagged: Any = _named(
    "data.ops.ragged_batch_op._DenseToRaggedDataset", "lists of any length in one block"
)
ParallelMap: Any = _named("data.ops.map_op._ParallelMapDataset", "the map() in a map_and_batch()")
Shuffle: Any = _named(
    "data.ops.shuffle_op._ShuffleDataset", "the shuffle() in a shuffle_and_repeat()"
)
dataset_of_names: Any = _named(
    "data.ops.readers._create_or_validate_filenames_dataset", "TensorFlow's check of file names"
)
dataset_of_files: Any = _named(
    "data.ops.readers._create_dataset_reader", "TensorFlow's order of num_parallel_reads"
)
#: The default buffer of `tf.data.TFRecordDataset`'s op; TensorFlow 2.15 has no name for it.
default_buffer_bytes: int = found("data.ops.readers._DEFAULT_TF_RECORD_BUFFER_SIZE_BYTES") or 0
composite_features: Any = _named(
    "ops.parsing_config._construct_tensors_for_composite_features",
    "SparseFeature and partitions made of flat features",
)
flat_shapes: Any = _named("data.util.structure.get_flat_tensor_shapes", "outputs of dataset ops")
flat_specs: Any = _named("data.util.structure.get_flat_tensor_specs", "arguments of functions")
flat_types: Any = _named("data.util.structure.get_flat_tensor_types", "outputs of dataset ops")
flat_tensors: Any = _named("data.util.structure.to_tensor_list", "elements as lists of tensors")
spec_of: Any = _named("data.util.structure.type_spec_from_value", "the spec of an element")
eager_mode: Any = _named("eager.context.eager_mode", "datasets made while a model is saved")
_concrete_function: Any = _named(
    "eager.polymorphic_function.concrete_function.ConcreteFunction", "functions without tf.function"
)
_function_type_of: Any = _named(
    "eager.polymorphic_function.function_type_utils.derive_from_graph", "the same"
)
_graph_of_python: Any = _named("framework.func_graph.func_graph_from_py_func", "the same")
_definition_of_op: Any = _named("framework.op_def_registry.get", "whether an op has a state")

for _name, _purpose in {
    "data.ops.dataset_ops.DatasetV2._apply_debug_options": "called before every iterator",
    "data.ops.dataset_ops.DatasetV2._functions": "the functions that a dataset calls",
    "data.ops.dataset_ops.DatasetV2._inputs": "the datasets that a dataset is made of",
    "data.ops.dataset_ops.DatasetV2._trace_variant_creation": "what a SavedModel holds",
    "data.ops.dataset_ops.DatasetV2._trackable_children": "what a SavedModel holds",
    "data.ops.dataset_ops.DatasetV2._variant_tensor": "the tensor that stands for a dataset",
    "data.ops.iterator_ops.OwnedIterator._restore_from_tensors": "errors of checkpoints",
    "framework.func_graph.FuncGraph._add_function_recursive": "calls functions of another graph",
    "framework.func_graph.FuncGraph._get_function": "finds functions that a graph calls",
    "framework.func_graph.FuncGraph.capture": "uses outer tensors in a copied function",
    "framework.func_graph.FuncGraph.captures": "the outer tensors that a function uses",
    "framework.tensor.TensorSpec._batch": "the spec of batches",
}.items():
    PURPOSES[_name] = _purpose

#: Private attributes that only objects have: of a dataset, of one of given tensors, of a map() and
#: of a function's graph.
OF_OBJECTS = {
    "_options_attr": "a dataset's own options",
    "_tensors": "given file names",
    "_map_func": "a map()'s function as traced",
    "control_outputs": "what a function must run",
}

#: The modules whose classes make datasets.
DATASET_MODULES = "tensorflow.python.data."
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

#: The function by which distribution strategies ask for the rows of a batch.
_BATCH_SIZE = ("tensorflow.python.data.experimental.ops.distribute", "compute_batch_size")


def asks_for_batch_size(frame: FrameType) -> bool:
    """True if TensorFlow wants the dataset of this frame to see the size of its batches."""
    return (frame.f_globals.get("__name__"), frame.f_code.co_name) == _BATCH_SIZE


class Call(NamedTuple):
    """What is known of a class of datasets: the call that makes them, and how to make it again."""

    name: str
    #: The op in tf.raw_ops; "" if the call cannot be made again.
    op: str = ""
    #: True if TensorFlow can save a symbolic position, on each TensorFlow from 2.15 on.
    bears: bool = False
    #: The op's argument for the traced function, and the attribute that keeps the function.
    function: str = ""
    kept_as: str = "map_func"
    #: The arguments that tell the call.
    shown: tuple[str, ...] = ()


# The calls that made datasets, by the classes of TensorFlow.
_CALLS = {
    "_AssertCardinalityDataset": Call("assert_cardinality", "AssertCardinalityDataset"),
    "_BatchDataset": Call("batch", "BatchDatasetV2", True, shown=("batch_size",)),
    "CacheDataset": Call("cache", "CacheDatasetV2"),
    "_ConcatenateDataset": Call("concatenate", "ConcatenateDataset", True),
    "_CopyToDeviceDataset": Call("copy_to_device"),
    "_DenseToRaggedDataset": Call("ragged_batch", "MapDataset", function="f"),
    "_DirectedInterleaveDataset": Call("choose_from_datasets", "DirectedInterleaveDataset"),
    "_FilterDataset": Call("filter", "FilterDataset", True, "predicate", "predicate"),
    "_FlatMapDataset": Call("flat_map", "FlatMapDataset", function="f"),
    "_GroupByWindowDataset": Call("group_by_window", "GroupByWindowDataset"),
    "_IgnoreErrorsDataset": Call("ignore_errors", "IgnoreErrorsDataset"),
    "_InterleaveDataset": Call("interleave", "InterleaveDataset", function="f"),
    "_MapAndBatchDataset": Call("map_and_batch", "MapAndBatchDataset", True, "f"),
    "_MapDataset": Call("map", "MapDataset", True, "f"),
    "_OptionsDataset": Call("with_options", "OptionsDataset", True),
    "_PaddedBatchDataset": Call(
        "padded_batch", "PaddedBatchDatasetV2", True, shown=("batch_size",)
    ),
    "_ParallelBatchDataset": Call("batch in parallel", "ParallelBatchDataset", True),
    "_ParallelInterleaveDataset": Call(
        "interleave in parallel", "ParallelInterleaveDatasetV4", function="f"
    ),
    "ParallelInterleaveDataset": Call("parallel_interleave"),
    "_ParallelMapDataset": Call("map in parallel", "ParallelMapDatasetV2", True, "f"),
    "_ParseExampleDataset": Call("parse_example_dataset"),
    "_PrefetchDataset": Call("prefetch", "PrefetchDataset", True, shown=("buffer_size",)),
    "_RangeDataset": Call("range", bears=True),
    "_RebatchDataset": Call("rebatch", "RebatchDatasetV2", shown=("batch_sizes",)),
    "_RepeatDataset": Call("repeat", "RepeatDataset", True, shown=("count",)),
    "_RestructuredDataset": Call("restructured", bears=True),
    "_ScanDataset": Call("scan", "ScanDataset", True, "f", "scan_func"),
    "_ShardDataset": Call("shard", "ShardDataset", True, shown=("num_shards", "index")),
    "_ShuffleAndRepeatDataset": Call("shuffle_and_repeat"),
    "_ShuffleDataset": Call("shuffle", "ShuffleDatasetV3", shown=("buffer_size",)),
    "_SkipDataset": Call("skip", "SkipDataset", True, shown=("count",)),
    "_SnapshotDataset": Call("snapshot"),
    "TFRecordDatasetV1": Call("TFRecordDataset"),
    "TFRecordDatasetV2": Call("TFRecordDataset"),
    "_TakeDataset": Call("take", "TakeDataset", True, shown=("count",)),
    "_TakeWhileDataset": Call("take_while", "TakeWhileDataset", True, "predicate", "predicate"),
    "_TensorDataset": Call("from_tensors", bears=True),
    "_TensorSliceDataset": Call("from_tensor_slices", bears=True),
    "_UnbatchDataset": Call("unbatch", "UnbatchDataset", True),
    "_UniqueDataset": Call("unique", "UniqueDataset"),
    "_VariantDataset": Call("from_variant"),
    "_WindowDataset": Call("window", "WindowDataset"),
    "_ZipDataset": Call("zip", "ZipDataset", True),
}


def call_of(dataset: Any) -> Call:
    """Returns the call that made a dataset, by its class if that is unknown; a call without a name
    if the dataset is not TensorFlow's.
    """
    own = type(dataset)
    name = own.__name__ if own.__module__.startswith(DATASET_MODULES) else ""
    return _CALLS.get(name) or Call(name)


def graph_of(run: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """Returns the traced graph of a body whose ops need no order."""
    return _graph_of_python("run", run, given, {}, add_control_dependencies=False)


def traced(run: Callable[..., Any], given: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """Returns the ConcreteFunction of a body whose ops need no order, without ops that the results
    do not need. Takes less time than tf.function.
    """
    if None in (_concrete_function, _function_type_of, _graph_of_python):
        return traced_in_order(run, given, attributes)
    try:
        graph = graph_of(run, given)
        return _concrete_function.from_func_graph(graph, _function_type_of(graph), attributes)
    except (AttributeError, TypeError):  # this TensorFlow makes functions in another way
        return traced_in_order(run, given, attributes)


def traced_in_order(
    run: Callable[..., Any], given: tuple[Any, ...], attributes: dict[str, Any]
) -> Any:
    """Returns the ConcreteFunction of a body with any ops."""
    function = tf.function(run, given, autograph=False, experimental_attributes=attributes)
    return function.get_concrete_function()


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
