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
#: What TensorFlow knows of the times of an iterator. Older releases than 2.17 or so do not tell.
ModelProto: Any = getattr(
    found("data.experimental.ops.iterator_model_ops.model_pb2"), "ModelProto", None
)
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


class WatchedIterator(OwnedIterator):  # type: ignore[misc]
    """An iterator that calls `_watch` with itself before each request for an element: TensorFlow
    looks up this attribute for each, also where Keras gives the iterator to a function.
    """

    _watch: Callable[[Any], None] | None = None
    _resource: Any

    @property
    def _iterator_resource(self) -> Any:
        if self._watch is not None:
            self._watch(self._resource)
        return self._resource

    @_iterator_resource.setter
    def _iterator_resource(self, resource: Any) -> None:
        self._resource = resource


def model_of(resource: Any) -> Any:
    """Returns the model of an iterator; None if its parts are not timed."""
    try:
        return ModelProto.FromString(tf.raw_ops.IteratorGetModelProto(iterator=resource).numpy())
    except tf.errors.OpError:
        return None


class Maker(NamedTuple):
    """What makes a class of datasets: a method, and how to call it again."""

    #: A name of `tf.data`, whether its calls are parallel or not.
    method: str
    #: The op in tf.raw_ops; "" if the method cannot be called again.
    op: str = ""
    #: True if TensorFlow can save a symbolic position, on each TensorFlow from 2.15 on.
    bears: bool = False
    #: The op's argument for the traced function, and the attribute that keeps the function.
    function: str = ""
    kept_as: str = "map_func"
    #: The arguments that tell the call.
    shown: tuple[str, ...] = ()


# By the classes of TensorFlow.
_MAKERS = {
    "_AssertCardinalityDataset": Maker("assert_cardinality", "AssertCardinalityDataset"),
    "_BatchDataset": Maker("batch", "BatchDatasetV2", True, shown=("batch_size",)),
    "CacheDataset": Maker("cache", "CacheDatasetV2"),
    "_ConcatenateDataset": Maker("concatenate", "ConcatenateDataset", True),
    "_CopyToDeviceDataset": Maker("copy_to_device"),
    "_DenseToRaggedDataset": Maker("ragged_batch", "MapDataset", function="f"),
    "_DirectedInterleaveDataset": Maker("choose_from_datasets", "DirectedInterleaveDataset"),
    "_FilterDataset": Maker("filter", "FilterDataset", True, "predicate", "predicate"),
    "_FlatMapDataset": Maker("flat_map", "FlatMapDataset", function="f"),
    "_GroupByWindowDataset": Maker("group_by_window", "GroupByWindowDataset"),
    "_IgnoreErrorsDataset": Maker("ignore_errors", "IgnoreErrorsDataset"),
    "_InterleaveDataset": Maker("interleave", "InterleaveDataset", function="f"),
    "_MapAndBatchDataset": Maker("map_and_batch", "MapAndBatchDataset", True, "f"),
    "_MapDataset": Maker("map", "MapDataset", True, "f"),
    "_OptionsDataset": Maker("with_options", "OptionsDataset", True),
    "_PaddedBatchDataset": Maker(
        "padded_batch", "PaddedBatchDatasetV2", True, shown=("batch_size",)
    ),
    "_ParallelBatchDataset": Maker("batch", "ParallelBatchDataset", True),
    "_ParallelInterleaveDataset": Maker("interleave", "ParallelInterleaveDatasetV4", function="f"),
    "ParallelInterleaveDataset": Maker("parallel_interleave"),
    "_ParallelMapDataset": Maker("map", "ParallelMapDatasetV2", True, "f"),
    "_ParseExampleDataset": Maker("parse_example_dataset"),
    "_PrefetchDataset": Maker("prefetch", "PrefetchDataset", True, shown=("buffer_size",)),
    "_RangeDataset": Maker("range", bears=True),
    "_RebatchDataset": Maker("rebatch", "RebatchDatasetV2", shown=("batch_sizes",)),
    "_RepeatDataset": Maker("repeat", "RepeatDataset", True, shown=("count",)),
    "_RestructuredDataset": Maker("restructured", bears=True),
    "_ScanDataset": Maker("scan", "ScanDataset", True, "f", "scan_func"),
    "_ShardDataset": Maker("shard", "ShardDataset", True, shown=("num_shards", "index")),
    "_ShuffleAndRepeatDataset": Maker("shuffle_and_repeat"),
    "_ShuffleDataset": Maker("shuffle", "ShuffleDatasetV3", shown=("buffer_size",)),
    "_SkipDataset": Maker("skip", "SkipDataset", True, shown=("count",)),
    "_SnapshotDataset": Maker("snapshot"),
    "TFRecordDatasetV1": Maker("TFRecordDataset"),
    "TFRecordDatasetV2": Maker("TFRecordDataset"),
    "_TakeDataset": Maker("take", "TakeDataset", True, shown=("count",)),
    "_TakeWhileDataset": Maker("take_while", "TakeWhileDataset", True, "predicate", "predicate"),
    "_TensorDataset": Maker("from_tensors", bears=True),
    "_TensorSliceDataset": Maker("from_tensor_slices", bears=True),
    "_UnbatchDataset": Maker("unbatch", "UnbatchDataset", True),
    "_UniqueDataset": Maker("unique", "UniqueDataset"),
    "_VariantDataset": Maker("from_variant"),
    "_WindowDataset": Maker("window", "WindowDataset"),
    "_ZipDataset": Maker("zip", "ZipDataset", True),
}


def maker_of(dataset: Any) -> Maker:
    """Returns what made a dataset; a maker without a method if the dataset is not TensorFlow's."""
    own = type(dataset)
    if not own.__module__.startswith(DATASET_MODULES):
        return Maker("")
    return _MAKERS.get(own.__name__) or Maker(in_words(own.__name__))


def in_words(name: str) -> str:
    """Returns the name of a class of datasets, or of their op, as a method: map_and_batch."""
    bare = re.sub("^_|Parallel|Experimental|Dataset(?=V|$)|(V[0-9]+)?$", "", name)
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", bare).lower()


def graph_of(run: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """Returns the traced graph of a body whose ops need no order."""
    return _graph_of_python("run", run, given, {}, add_control_dependencies=False)


def traced(run: Callable[..., Any], given: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """Returns the ConcreteFunction of a body whose ops need no order, without ops that the results
    do not need. Takes less time than tf.function.
    """
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
    return getattr(call.graph._get_function(call.get_attr("f").name), "graph", None)


def share_function(name: str, graph: Any, other: Any) -> bool:
    """Lets another graph call a function that a graph knows. Returns True on success."""
    function = graph._get_function(name)
    if function is not None:
        other._add_function_recursive(function)
    return function is not None


def is_stateful(kind: str) -> bool:
    """True if ops of this type have effects or a state, according to TensorFlow."""
    definition = _definition_of_op(kind)
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
