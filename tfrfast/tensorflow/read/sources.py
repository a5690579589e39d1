"""Datasets of records: their files, and the order of reading."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.storage.schemes import is_url
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.lift.copying import NotCopiedError, inlined
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.file_names import Names, names_of
from tfrfast.tensorflow.read.nodes import static_integer
from tfrfast.tensorflow.read.user_functions import InnerMap, Opening, opening_of, why_judged
from tfrfast.tensorflow.reasons import Refusal, RefusedError
from tfrfast.tensorflow.source import Source

_TOLD = "_tfrfast_told"
_NOT_COPIED = Refusal("the map() in its function cannot be made one of all records")
# The runtime's number of threads for each file, if it chooses the number of interleaved files.
_THREADS_OF_A_FILE = 3
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
