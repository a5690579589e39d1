"""What functions of users do, by the graphs that TensorFlow traced: whether they have effects, and
how they open a TFRecord file.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrfast.base.codecs import CODECS
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.lift.parses import PARSERS
from tfrfast.tensorflow.reasons import Refusal, RefusedError

# The functions that these ops call are judged themselves.
CALLING = frozenset(["Case", "If", "PartitionedCall", "StatefulPartitionedCall", "While"])
# Ops that only read a state.
_READING = frozenset(
    ["HashTableV2", "LookupTableFindV2", "LookupTableSizeV2", "ReadVariableOp", "ResourceGather"]
)
_EFFECTS = {
    "Assert": "checks each element",
    "CheckNumerics": "checks each element",
    "EagerPyFunc": "calls Python for each element",
    "PrintV2": "prints each element",
    "PyFunc": "calls Python for each element",
    "PyFuncStateless": "calls Python for each element",
}
# Ops that TensorFlow does not count as state when it saves an iterator, and ops whose functions
# decide.
_WITHOUT_STATE = {
    *("Assert", "HashTableV2", "LookupTableFindV2", "LookupTableSizeV2", "PrintV2"),
    *("If", "While"),
}

# Decoding ops that give tensors of different shapes, or take longer than parsing.
_MEDIA = {
    *("DecodeAndCropJpeg", "DecodeBmp", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng"),
    *("DecodeWav", "DecodeWebP"),
}

# Ops on a name, or on a dataset in a function, whose result equals the input.
_SAME_NAME = {"Identity", "Reshape", "Pack", "ExpandDims", "Squeeze"}
_SAME_RECORDS = {"Identity", "PrefetchDataset", "OptionsDataset", "EnsureShape"}
# Ops that call a function for each file name.
_OPENS_EACH = {
    "FlatMapDataset",
    "InterleaveDataset",
    "LegacyParallelInterleaveDatasetV2",
    "ParallelInterleaveDatasetV4",
}
# Ops that read a part of a file.
_PARTS = {"SkipDataset", "TakeDataset"}
_MAPS = {"MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2"}
_NOT_ONE_FILE = Refusal(
    "tfrfast does not plan a function that does more than open one TFRecord file"
)
_impurities: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
# The files of tfrfast's datasets that are made in functions, and how they are opened: by the
# function's graph, then by the name of the dataset's variant.
_noted: weakref.WeakKeyDictionary[Any, dict[str, tuple[Any, Opening]]] = weakref.WeakKeyDictionary()


def impurity(call: Any) -> str:
    """Returns why a call's functions must run even for elements that nobody wants; "" if they need
    not.

    A parse, which fails for some records, counts as pure. So do random numbers without a seed.
    """
    functions = (each.function for each in internals.functions_of(call))
    return next(filter(None, map(_impurity_of, functions)), "")


def _impurity_of(function: Any) -> str:
    if function not in _impurities:
        of_nodes = map(_impurity_of_node, nodes_of(function.graph))
        _impurities[function] = next(filter(None, of_nodes), "")
    return _impurities[function]


def nodes_of(graph: Any) -> Iterator[Any]:
    """Yields the nodes of a function's graph, and of all functions that it calls."""
    definition = graph.as_graph_def()
    yield from definition.node
    for each in definition.library.function:
        yield from each.node_def


def _impurity_of_node(node: Any) -> str:
    if node.op in _EFFECTS:
        return _EFFECTS[node.op]
    if node.op in CALLING or node.op in _READING or not internals.is_stateful(node.op):
        return ""
    if is_random(node) and not has_seed(node):
        return ""
    return f"changes a state ({node.op})"


def is_random(node: Any) -> bool:
    """True if an op draws numbers of its own, in the order of its calls if it has a seed."""
    return {"seed", "seed2"} <= node.attr.keys() and internals.is_stateful(node.op)


def has_seed(node: Any) -> bool:
    return bool(node.attr["seed"].i or node.attr["seed2"].i)


def is_constant(function: Any) -> bool:
    """True if a function always makes the same of the same arguments."""
    if any(each.dtype in (tf.resource, tf.variant) for each in function.captured_inputs):
        return False
    return not any(internals.is_stateful(each.type) for each in function.graph.get_operations())


def has_state(function: Any) -> bool:
    """True if a function has ops with a state, such as random numbers.

    TensorFlow saves symbolic positions at each element, and logs each function with a state then.
    """
    ops = {node.op for node in nodes_of(function.graph)} - _WITHOUT_STATE
    return any(map(internals.is_stateful, ops))


def parses_examples(call: Any) -> bool:
    """True if the function of a map() parses Examples, among other work."""
    return not PARSERS.isdisjoint(_ops_of(call))


def decodes_media(call: Any) -> bool:
    """True if the function of a map() must see single records, because of images or sounds."""
    return not _MEDIA.isdisjoint(_ops_of(call))


def _ops_of(call: Any) -> set[str]:
    graphs = (each.function.graph for each in internals.functions_of(call))
    return {operation.type for graph in graphs for operation in graph.get_operations()}


class InnerMap(NamedTuple):
    """A map() of a file's records, inside the function that opens the file."""

    #: The graph of the map's function. Its arguments are an element's tensors, then `captured`.
    graph: Any
    captured: tuple[Any, ...]


class Opening(NamedTuple):
    """How a function of a file name reads the file."""

    compression: str
    skip_damage: bool = False
    #: The positions of the function's arguments for the file's name, and for the numbers of records
    #: to skip and to take. None: skips none, or takes all.
    name: int = 0
    skip: int | None = None
    take: int | None = None
    #: The calls on the file's records, in order.
    maps: tuple[InnerMap, ...] = ()


def note_opening(dataset: Any, names: Any, opening: Opening) -> None:
    """Notes the files of a dataset that is being made in a function."""
    variant = internals.variant_of(dataset)
    _noted.setdefault(variant.graph, {})[variant.name] = names, opening


def why_judged(compression: Any, buffer_bytes: int | None) -> Refusal | None:
    """Returns why TensorFlow must judge a reader's arguments itself; None if they are usual."""
    if compression not in ("", *CODECS):
        return Refusal(f"TensorFlow judges the compression {compression!r}")
    if buffer_bytes is None or buffer_bytes < 0:
        return Refusal("TensorFlow judges the buffer's size")
    return None


def opening_of(function: Any) -> Opening:
    """Returns how a function of a file name reads the file: whole, or consecutive records.

    Raises RefusedError.
    """
    graph = function.graph
    if len(graph.outputs) != 1:
        raise RefusedError(_NOT_ONE_FILE)
    given = graph.inputs[: len(graph.inputs) - len(graph.captures)]
    outside = {inside.name: value for value, inside in internals.captures_of(graph)}
    variant = _before_same(graph, graph.outputs[0])
    places, maps = dict[str, int](), list[InnerMap]()
    while variant.name not in _noted.get(graph, {}):
        operation = variant.op
        # A map() whose results are skipped must run, too.
        if operation.type in _MAPS and "SkipDataset" not in places:
            maps.insert(0, _inner_map(operation, outside))
        elif operation.type in _PARTS - places.keys() and "SkipDataset" not in places:
            count = _origin(operation.inputs[1])
            place = next((i for i, each in enumerate(given) if each is count), None)
            if place is None:
                raise RefusedError(_NOT_ONE_FILE)
            places[operation.type] = place
        else:
            break
        variant = _before_same(graph, operation.inputs[0])
    why = _NOT_ONE_FILE
    for place, name in enumerate(given):
        if name.dtype != tf.string:
            continue
        try:
            found = _opening(graph, variant, name, outside)
        except RefusedError as refused:
            why = refused.refusal
        else:
            take, skip = places.get("TakeDataset"), places.get("SkipDataset")
            return found._replace(name=place, skip=skip, take=take, maps=tuple(maps))
    raise RefusedError(why)


def _inner_map(operation: Any, outside: dict[str, Any]) -> InnerMap:
    others = operation.inputs[1 : 1 + len(operation.get_attr("Targuments"))]
    captured = [_captured(each, outside) for each in others]
    function = internals.body_of(operation)
    if function is None or any(each is None for each in captured):
        raise RefusedError("the map() in its function uses what is known only for each file")
    # With a seed, the random numbers begin again with each file.
    if any(is_random(node) and has_seed(node) for node in nodes_of(function)):
        raise RefusedError("the map() in its function draws random numbers from a seed")
    return InnerMap(function, tuple(captured))


def _captured(tensor: Any, outside: dict[str, Any]) -> Any:
    """Returns the tensor outside all functions, or the constant; None for any other tensor."""
    tensor = outside.get(tensor.name, tensor)
    if not tf.is_symbolic_tensor(tensor):
        return tensor
    value = tf.get_static_value(tensor)
    return None if value is None else tf.constant(value, tensor.dtype)


def _before_same(graph: Any, variant: Any) -> Any:
    """Returns the dataset before datasets with the same records."""
    noted = _noted.get(graph, {})
    while variant.name not in noted and variant.op.type in _SAME_RECORDS:
        variant = variant.op.inputs[0]
    return variant


def _opening(graph: Any, variant: Any, name: Any, outside: dict[str, Any]) -> Opening:
    """Returns how a dataset in a function reads the file `name`.

    `outside` holds the value of each graph input that stands for a known tensor.
    """
    noted = _noted.get(graph, {})
    if any(_has_effects(each) for each in graph.control_outputs) and not noted:
        raise RefusedError("its function does more than open files, whenever it is called")
    variant = _before_same(graph, variant)
    if variant.name in noted:
        names, opening = noted[variant.name]
        if _origin(names) is not name:
            raise RefusedError(_NOT_ONE_FILE)
        return opening
    operation = variant.op
    if operation.type in ("TFRecordDataset", "TFRecordDatasetV2"):
        return _read(operation, name, outside)
    if operation.type not in _OPENS_EACH:
        raise RefusedError(_NOT_ONE_FILE)
    source, *others = operation.inputs
    while source.op.type in _SAME_RECORDS:
        source = source.op.inputs[0]
    if source.op.type not in ("TensorSliceDataset", "TensorDataset"):
        raise RefusedError(_NOT_ONE_FILE)
    if len(source.op.inputs) != 1 or _origin(source.op.inputs[0]) is not name:
        raise RefusedError(_NOT_ONE_FILE)
    inner = internals.body_of(operation)
    if inner is None or len(inner.outputs) != 1 or not inner.inputs:
        raise RefusedError(_NOT_ONE_FILE)
    # The captured inputs of the inner function follow the file name.
    captured = zip(inner.inputs[1:], others, strict=False)
    known = {inside.name: outside.get(given.name, given) for inside, given in captured}
    return _opening(inner, inner.outputs[0], inner.inputs[0], known)


def _read(operation: Any, name: Any, outside: dict[str, Any]) -> Opening:
    """Returns the arguments of an op that reads a file."""
    names, compression, buffer_size, *offsets = operation.inputs
    if _origin(names) is not name:
        raise RefusedError(_NOT_ONE_FILE)
    if offsets and tf.get_static_value(offsets[0]) is None:
        raise RefusedError("tfrfast does not read files from an offset on")
    known, size = _known(compression, outside), _known(buffer_size, outside)
    if known is None:
        raise RefusedError("the compression is known only in the graph")
    text = known.decode(errors="replace")
    usual = 0 if size == internals.default_buffer_bytes else size
    if why_not := why_judged(text, usual):
        raise RefusedError(why_not)
    return Opening(text)


def _has_effects(operation: Any) -> bool:
    """True if an op that must run has other effects than making a dataset."""
    return "Dataset" not in operation.type and operation.type not in ("Identity", "NoOp")


def _known(tensor: Any, outside: dict[str, Any]) -> Any:
    """Returns the number or string of a tensor; None if it is known only in the graph."""
    tensor = _origin(tensor)
    value = tf.get_static_value(outside.get(tensor.name, tensor))
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value


def _origin(tensor: Any) -> Any:
    """Returns the tensor before ops that keep its single value unchanged."""
    while tensor.op.type in _SAME_NAME and (tensor.op.type != "Pack" or len(tensor.op.inputs) == 1):
        tensor = tensor.op.inputs[0]
    return tensor
