"""Datasets of records: their files, the functions that open a file, and the order of reading."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrfast.base.codecs import CODECS
from tfrfast.storage.schemes import is_url
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.lift.copying import NotCopiedError, inlined
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.file_names import Names, names_of
from tfrfast.tensorflow.read.nodes import static_integer
from tfrfast.tensorflow.read.user_functions import has_seed, is_random, nodes_of
from tfrfast.tensorflow.reasons import Refusal, RefusedError
from tfrfast.tensorflow.source import Source

_TOLD = "_tfrfast_told"
_NOT_COPIED = Refusal("the map() in its function cannot be made one of all records")
# The runtime's number of threads for each file, if it chooses the number of interleaved files.
_THREADS_OF_A_FILE = 3
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
# The files of tfrfast's datasets that are made in functions, and how they are opened: by the
# function's graph, then by the name of the dataset's variant.
_noted: weakref.WeakKeyDictionary[Any, dict[str, tuple[Any, Opening]]] = weakref.WeakKeyDictionary()
#: The maps in the functions of datasets, traced once for each dataset.
_inner_calls: weakref.WeakKeyDictionary[Any, tuple[Any, ...]] = weakref.WeakKeyDictionary()


class AskedRecords(tf.data.Dataset):  # type: ignore[misc]
    """The records of files as TensorFlow's own reader gives them, and the options of tfrfast.

    A plan reads `source`. TensorFlow's calls are made on this dataset, which is only iterated where
    tfrfast does not read.
    """

    def __init__(
        self, theirs: Any, names: Any, source: Source | None, why: Refusal | None = None
    ) -> None:
        """`theirs` is TensorFlow's reader of `names`, a dataset, whose options hold here, too."""
        #: None if only TensorFlow can read the files; `why` says so.
        self.source, self.why = source, why or Refusal("")
        super().__init__(internals.variant_of(theirs))
        internals.set_options(self, internals.options_of(names))

    @property
    def is_theirs(self) -> bool:
        """True if TensorFlow's own reader reads the same records."""
        source = self.source
        if source is None:
            return True
        names = source.names.known
        if names is None or source.skip_damage:
            return False
        return not any(is_url(os.fsdecode(name)) for name in names)

    def _inputs(self) -> list[Any]:
        return []

    @property
    def element_spec(self) -> Any:
        return tf.TensorSpec([], tf.string)


def told_as(dataset: Any, description: str) -> Any:
    """Notes the description of a source that is built already, for explain()."""
    vars(dataset)[_TOLD] = description
    return dataset


def description_of(dataset: Any) -> str:
    found: str = vars(dataset).get(_TOLD, "")
    return found


class FilePart(NamedTuple):
    """Consecutive records of a file. Negative numbers stand for all, as in tf.data."""

    skip: int
    take: int


class Records(NamedTuple):
    """The records of files, one file after the other or interleaved."""

    names: Names
    opening: Opening
    #: The number of interleaved files.
    turns: int
    #: The number of records of a file in each turn.
    block: int = 1
    #: True if TensorFlow keeps the order of turns.
    keeps_turns: bool = True
    #: The part of each file that is read; None: the whole file.
    parts: tuple[FilePart, ...] | None = None
    #: Maps that are called on each record inside the function that opens the file.
    calls: tuple[Any, ...] = ()

    @property
    def has_order(self) -> bool:
        """True if TensorFlow has only one order of the records."""
        return self.keeps_turns and not self.names.shuffled


def records_of(dataset: Any, deterministic: bool) -> Records | None:
    """Returns the records that a dataset reads; None if the dataset opens no files.

    `deterministic` is the setting of the pipeline's options. Raises RefusedError.
    """
    method = nodes.method_of(dataset)
    if method == "TFRecordDataset":
        return _read_by_class(dataset)
    if method == "concatenate":
        try:
            return _concatenated(*(records_of(e, deterministic) for e in nodes.inputs(dataset)))
        except RefusedError:
            return None
    if method not in _INTERLEAVES:
        return None
    opening = opening_of(nodes.function_of(dataset))
    (given,) = nodes.inputs(dataset)
    records = _mixed(names_of(given), opening, _interleaved(dataset, deterministic))
    if not opening.maps:
        return records
    if dataset not in _inner_calls:
        in_parallel = nodes.is_parallel(dataset) or not records.keeps_turns
        parallel_calls = tf.data.AUTOTUNE if in_parallel else None
        _inner_calls[dataset] = _calls_of(opening.maps, dataset.element_spec, parallel_calls)
    return records._replace(calls=_inner_calls[dataset])


def _concatenated(first: Records | None, second: Records | None) -> Records | None:
    """Returns the records of both, if all files are read in one way, one after the other."""
    if first is None or second is None:
        return None
    names = Names(
        (*first.names.files, *second.names.files),
        first.names.shuffled or second.names.shuffled,
    )

    def of_all(records: Records) -> Records:
        return records._replace(names=names, turns=1, block=1, keeps_turns=True)

    for each in (first, second):
        is_in_turns = each.keeps_turns and each.turns > 1
        if each.parts is not None or each.names.epochs != 1 or is_in_turns:
            return None
    return of_all(first) if of_all(first) == of_all(second) else None


class _Mixing(NamedTuple):
    turns: int
    block: int = 1
    keeps_turns: bool = True


def _mixed(names: Names, opening: Opening, mixing: _Mixing) -> Records:
    rows = [each if isinstance(each, tuple) else (each,) for each in names.files]
    files = tuple(row[opening.name] for row in rows)
    if not all(isinstance(each, bytes) for each in files):
        raise RefusedError("the file names are not known before the program iterates")
    parts, skip, take = None, opening.skip, opening.take
    if not (skip is None and take is None):
        parts = tuple(
            FilePart(0 if skip is None else row[skip], -1 if take is None else row[take])
            for row in rows
        )
    if len(files) == 1 and names.epochs == 1:
        mixing = _Mixing(1)
    return Records(names._replace(files=files), opening, *mixing, parts=parts)


def _read_by_class(dataset: Any) -> Records:
    """Returns the records of a `tf.data.TFRecordDataset`."""
    compression = nodes.attribute(dataset, "compression_type")
    known = "" if compression is None else tf.get_static_value(tf.convert_to_tensor(compression))
    text = os.fsdecode(known) if isinstance(known, (str, bytes)) else str(known)
    size = nodes.attribute(dataset, "buffer_size")
    if why_not := why_judged(text, 0 if size is None else static_integer(size)):
        raise RefusedError(why_not)
    turns = turns_of(nodes.attribute(dataset, "num_parallel_reads"))
    if turns is None:
        raise RefusedError(_TURNS_UNKNOWN)
    return _mixed(names_of(nodes.attribute(dataset, "filenames")), Opening(text), _Mixing(turns))


def usable_processors() -> int:
    """Returns the number of processors that TensorFlow's runtime may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def turns_of_the_runtime() -> int:
    """Returns the number of interleaved files for AUTOTUNE."""
    return -(-usable_processors() // _THREADS_OF_A_FILE)


def turns_of(num_parallel_reads: Any) -> int | None:
    """Returns the number of files that TensorFlow interleaves; None if it is not known."""
    if num_parallel_reads is None:
        return 1
    turns = static_integer(num_parallel_reads)
    if turns == tf.data.AUTOTUNE:  # the runtime chooses by the processors that it may use
        turns = turns_of_the_runtime()
    return None if turns is None or turns < 1 else turns


def _interleaved(dataset: Any, deterministic: bool) -> _Mixing:
    """Returns the order of flat_map(), interleave() or parallel_interleave(), whose order differs
    from run to run, even with sloppy=False.
    """
    method = nodes.method_of(dataset)
    if method == "flat_map":
        return _Mixing(1)
    cycle = static_integer(nodes.attribute(dataset, "cycle_length"))
    block = static_integer(nodes.attribute(dataset, "block_length"))
    in_parallel, given = nodes.is_parallel(dataset), tf.data.AUTOTUNE
    if in_parallel:
        given = static_integer(nodes.attribute(dataset, "num_parallel_calls"))
        if given is None:
            raise RefusedError("the number of files that are read at once is not known")
    chosen = given == tf.data.AUTOTUNE
    usual = usable_processors() if chosen else min(given, usable_processors())
    if chosen and in_parallel:
        usual = turns_of_the_runtime()
    if cycle is None or block is None:
        raise RefusedError(_TURNS_UNKNOWN)
    turns = usual if cycle == tf.data.AUTOTUNE else cycle
    if turns < 1 or block < 1:
        raise RefusedError("TensorFlow chooses the number of interleaved files")
    mixing = _Mixing(turns, block if turns > 1 else 1, method != "parallel_interleave")
    if not in_parallel:
        return mixing
    if not chosen and given > turns:
        raise RefusedError("TensorFlow refuses more calls than interleaved files")
    asked = nodes.op_attribute(dataset, "ParallelInterleaveDatasetV4", "deterministic")
    if not asked:
        raise RefusedError("TensorFlow does not show whether the order is kept")
    keeps_turns = asked == "true" or (asked == "default" and deterministic)
    return mixing._replace(keeps_turns=keeps_turns)


_INTERLEAVES = {"flat_map", "interleave", "parallel_interleave"}
_TURNS_UNKNOWN = Refusal("the number of interleaved files is not known")


def _calls_of(maps: Sequence[InnerMap], element_spec: Any, calls: Any) -> tuple[Any, ...]:
    """Returns the same maps as calls on records.

    `element_spec` is the spec of the last map's elements. `calls` is the `num_parallel_calls` of
    each map.
    """
    dataset, made = internals.TheirTFRecordDataset([]), []
    for number, each in enumerate(maps):
        is_last = number == len(maps) - 1
        mapped = _call_of(dataset, each, element_spec if is_last else None, calls)
        if mapped is None:
            raise RefusedError(_NOT_COPIED)
        made.append(mapped)
        dataset = mapped
    return tuple(made)


def _call_of(dataset: Any, inner: InnerMap, element_spec: Any, calls: Any) -> Any:
    """Makes a map() of a dataset; None if impossible. Without a spec, it makes flat tuples."""
    results = inner.graph.outputs
    leaves = results if element_spec is None else tf.nest.flatten(element_spec)
    tensors_alone = element_spec is None or all(isinstance(e, tf.TensorSpec) for e in leaves)
    if len(leaves) != len(results) or not tensors_alone:
        return None
    if any(each.dtype == tf.variant for each in (*results, *inner.graph.inputs)):
        return None

    def run(*tensors: Any) -> Any:
        made = inlined(inner.graph, (*tensors, *inner.captured))
        structure = tuple(made) if len(made) > 1 else 0
        return tf.nest.pack_sequence_as(structure if element_spec is None else element_spec, made)

    run.__name__ = _name_of(inner.graph)
    try:
        return dataset.map(tf.autograph.experimental.do_not_convert(run), calls)
    except (NotCopiedError, NotImplementedError, TypeError, ValueError):
        return None


def _name_of(graph: Any) -> str:
    """Returns the name of the Python function, which is part of the traced function's name."""
    found = re.search("Dataset_map_(.+?)(_[0-9]+)?$", graph.name)
    name = found[1] if found else "..."
    return "<lambda>" if name == "lambda" else name


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
