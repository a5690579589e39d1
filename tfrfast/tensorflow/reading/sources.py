"""Datasets of records: their files, and the order of reading."""

from __future__ import annotations

import os
import weakref
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.base.codecs import CODECS
from tfrfast.tensorflow import processors
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.integers import static_integer
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.reading.inner_maps import calls_of
from tfrfast.tensorflow.reading.names import Names, names_of
from tfrfast.tensorflow.reading.opening import Opening, opening_of

_READER = "TFRecordDataset"

#: The maps in the functions of datasets, traced once for each dataset.
_inner_calls: weakref.WeakKeyDictionary[Any, tuple[Any, ...] | Refusal]
_inner_calls = weakref.WeakKeyDictionary()


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


def records_of(dataset: Any, deterministic: bool) -> Records | Refusal | None:
    """Returns the records that a dataset reads; None if the dataset opens no files.

    `deterministic` is the setting of the pipeline's options.
    """
    kind = nodes.kind(dataset)
    if kind == _READER:
        return _read_by_class(dataset)
    if kind == "concatenate":
        return _concatenated(*(records_of(each, deterministic) for each in nodes.inputs(dataset)))
    mixing = _MIXINGS.get(kind)
    if mixing is None:
        return None
    function = nodes.function_of(dataset)
    opening = (
        Refusal("TensorFlow does not show its function")
        if function is None
        else opening_of(function)
    )
    if isinstance(opening, Refusal):
        return opening
    (given,) = nodes.inputs(dataset)
    records = _mixed(names_of(given), opening, mixing(dataset, deterministic))
    if isinstance(records, Refusal) or not opening.maps:
        return records
    if dataset not in _inner_calls:
        in_parallel = (
            not records.keeps_turns or nodes.attribute(dataset, "num_parallel_calls") is not None
        )
        parallel_calls = tf.data.AUTOTUNE if in_parallel else None
        _inner_calls[dataset] = calls_of(opening.maps, dataset.element_spec, parallel_calls)
    calls = _inner_calls[dataset]
    return calls if isinstance(calls, Refusal) else records._replace(calls=calls)


def _concatenated(
    first: Records | Refusal | None, second: Records | Refusal | None
) -> Records | None:
    """Returns the records of both, if all files are read in one way, one after the other."""
    if not isinstance(first, Records) or not isinstance(second, Records):
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


def _mixed(
    names: Names | Refusal, opening: Opening, mixing: _Mixing | Refusal
) -> Records | Refusal:
    if isinstance(names, Refusal):
        return names
    if isinstance(mixing, Refusal):
        return mixing
    rows = [each if isinstance(each, tuple) else (each,) for each in names.files]
    files = tuple(row[opening.name] for row in rows)
    if not all(isinstance(each, bytes) for each in files):
        return Refusal("the file names are not known before the program iterates")
    parts = None
    if opening.skip is not None or opening.take is not None:
        parts = tuple(
            FilePart(
                0 if opening.skip is None else row[opening.skip],
                -1 if opening.take is None else row[opening.take],
            )
            for row in rows
        )
    if len(files) == 1 and names.epochs == 1:
        mixing = _Mixing(1)
    return Records(names._replace(files=files), opening, *mixing, parts=parts)


def _read_by_class(dataset: Any) -> Records | Refusal:
    """Returns the records of a `tf.data.TFRecordDataset`."""
    compression = nodes.attribute(dataset, "compression_type")
    known = "" if compression is None else tf.get_static_value(tf.convert_to_tensor(compression))
    text = os.fsdecode(known) if isinstance(known, (str, bytes)) else str(known)
    if text not in ("", *CODECS):
        return Refusal(f"TensorFlow judges the compression {text!r}")
    size = nodes.attribute(dataset, "buffer_size")
    bytes_buffered = 0 if size is None else static_integer(size)
    if bytes_buffered is None or bytes_buffered < 0:
        return Refusal("TensorFlow judges the buffer's size")
    reads = nodes.attribute(dataset, "num_parallel_reads")
    turns = 1 if reads is None else static_integer(reads)
    if turns == tf.data.AUTOTUNE:
        turns = processors.turns_of_the_runtime()
    if turns is None or turns < 1:
        return Refusal("the number of interleaved files is not known")
    return _mixed(names_of(nodes.attribute(dataset, "filenames")), Opening(text), _Mixing(turns))


def _one_by_one(_: Any, __: bool) -> _Mixing:
    return _Mixing(1)


def _interleaved(dataset: Any, _: bool) -> _Mixing | Refusal:
    """interleave() without `num_parallel_calls`, on the consumer's thread."""
    return _turns(dataset, processors.usable())


def _parallel(dataset: Any, deterministic: bool) -> _Mixing | Refusal:
    """interleave(num_parallel_calls=...)."""
    calls = static_integer(nodes.attribute(dataset, "num_parallel_calls"))
    if calls is None:
        return Refusal("the number of files that are read at once is not known")
    usual = (
        processors.turns_of_the_runtime()
        if calls == tf.data.AUTOTUNE
        else min(calls, processors.usable())
    )
    turns = _turns(dataset, usual)
    if isinstance(turns, Refusal):
        return turns
    if calls != tf.data.AUTOTUNE and calls > turns.turns:
        return Refusal("TensorFlow refuses more calls than interleaved files")
    asked = nodes.op_attribute(dataset, "ParallelInterleaveDatasetV4", "deterministic")
    if asked == "false" or (asked == "default" and not deterministic):
        return turns._replace(keeps_turns=False)
    return turns if asked else Refusal("TensorFlow does not show whether the order is kept")


def _turns(dataset: Any, usual: int) -> _Mixing | Refusal:
    cycle = static_integer(nodes.attribute(dataset, "cycle_length"))
    block = static_integer(nodes.attribute(dataset, "block_length"))
    if cycle is None or block is None:
        return Refusal("the number of interleaved files is not known")
    turns = usual if cycle == tf.data.AUTOTUNE else cycle
    if turns < 1 or block < 1:
        return Refusal("TensorFlow chooses the number of interleaved files")
    return _Mixing(turns, block if turns > 1 else 1)


def _in_any_order(dataset: Any, _: bool) -> _Mixing | Refusal:
    """parallel_interleave(). Its order differs from run to run, even with sloppy=False."""
    turns = _turns(dataset, processors.usable())
    return turns if isinstance(turns, Refusal) else turns._replace(keeps_turns=False)


_MIXINGS = {
    "parallel_interleave": _in_any_order,
    "flat_map": _one_by_one,
    "interleave": _interleaved,
    "interleave in parallel": _parallel,
}
