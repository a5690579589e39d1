"""The beginning of a plan: all records of a chain, before any call on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import tensorflow as tf

from tfrfast.storage.remote.options import Storage
from tfrfast.tensorflow.plan.call_rules import MAPS, Planning
from tfrfast.tensorflow.plan.pipeline import Pipeline
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.chain import call_text
from tfrfast.tensorflow.read.file_names import FileNames, is_ours, reach_urls
from tfrfast.tensorflow.read.shuffles import is_kept, order_of
from tfrfast.tensorflow.read.sources import AskedRecords, FilePart, Records
from tfrfast.tensorflow.reasons import RefusedError, Step
from tfrfast.tensorflow.sequence import EVERYTHING, SeededOrder
from tfrfast.tensorflow.source import Source

# An open file takes memory, and each turn of a file opens it.
_MOST_TURNS = 16

# After these calls, a shuffle still covers all records.
_ALL_BEFORE_A_SHUFFLE = {
    *("assert_cardinality", "cache", "filter", "prefetch", "repeat", "with_options"),
    *MAPS,
}
_BEFORE_A_SHUFFLE = {"shard", "skip", "take", *_ALL_BEFORE_A_SHUFFLE}


def begin(planning: Planning, records: Records | AskedRecords) -> Pipeline:
    """Returns the pipeline of all records, in their order. May build indexes."""
    if isinstance(records, AskedRecords):
        asked = records.source
        assert asked is not None
        return Pipeline(asked, EVERYTHING if asked.has_known_order else None)
    names = records.names
    if not names.files:
        raise RefusedError("there are no files")
    if any(b"://" in name and not _is_reached(name) for name in names.files):
        raise RefusedError("only TensorFlow can read names with such a scheme")
    if names.epochs != 1 and records.has_order and records.turns != 1 and records.parts is None:
        # A file may still be read when its next turn begins, so each turn opens it.
        repeated = None if records.opening.compression else names.repeated
        if repeated is not None and len(repeated) <= _MOST_TURNS * len(names.files):
            names = names._replace(files=tuple(repeated), epochs=1)
            records = records._replace(names=names)
    order_of_files = None
    # Without an order of turns, file after file is an order that TensorFlow could have given.
    planning.in_order = not names.shuffled
    if not _comes_shuffle(planning, of_all=names.shuffled):
        # An order that all iterations keep stays TensorFlow's, because TensorFlow may read another
        # dataset in the same order.
        if names.shuffle is not None and not is_kept(names.shuffle):
            order_of_files = order_of(names.shuffle)
            planning.in_order = order_of_files is not None
            why = "each iteration has another order of the files"
            planning.of_names.append(
                Step(f"{call_text(names.shuffle)} of the file names", True, why)
            )
        if names.shuffled and (order_of_files is None or records.parts is not None):
            raise RefusedError("its files come in a random order", "shuffle() of the records")
        if names.epochs != 1 and records.keeps_turns and records.turns != 1:
            raise RefusedError(
                "tfrfast does not interleave so many repeated files", "repeat() after the records"
            )
    pipeline = Pipeline(_source(records, order_of_files), EVERYTHING)
    if records.parts is not None:
        pipeline = _of_parts(planning, pipeline, records.parts)
    if names.epochs != 1:
        assert pipeline.sequence is not None
        pipeline = replace(pipeline, sequence=pipeline.sequence.repeat(names.epochs))
    return planning.counted(pipeline) if any(map(is_ours, names.files)) else pipeline


def _is_reached(name: bytes) -> bool:
    try:
        return is_ours(name)
    except ModuleNotFoundError:  # TensorFlow reports the error of the name
        return False


def _comes_shuffle(planning: Planning, of_all: bool) -> bool:
    """True if a shuffle of records follows; with `of_all`, of all records in each iteration."""
    passed = _ALL_BEFORE_A_SHUFFLE if of_all else _BEFORE_A_SHUFFLE
    for call in planning.left:
        method = nodes.method_of(call)
        if method == "shuffle":
            return True
        if method not in passed and not nodes.takes_all(call):
            return False
    return False


def _source(records: Records, order_of_files: SeededOrder | None) -> Source:
    names = list(records.names.files)
    tensor = tf.constant(names, tf.string)
    dataset = tf.data.Dataset.from_tensor_slices(tensor)
    turns = records.turns if records.has_order or order_of_files is not None else 1
    storage = Storage(None)
    reach_urls(names, storage)
    return Source(
        FileNames(dataset, tensor, names, shuffle=order_of_files),
        skip_damage=records.opening.skip_damage,
        compression=records.opening.compression,
        storage=storage,
        num_parallel_reads=None if turns == 1 else turns,
        turns=turns,
        block_records=records.block,
    )


def _of_parts(planning: Planning, pipeline: Pipeline, parts: Sequence[FilePart]) -> Pipeline:
    """Returns the records of partly read files, if they are consecutive. May build indexes."""
    if len(parts) == 1:
        wanted = EVERYTHING.narrowed("skip", parts[0].skip).narrowed("take", parts[0].take)
        return replace(pipeline, sequence=wanted)
    takes_turns = pipeline.source.takes_turns
    if takes_turns and not _comes_shuffle(planning, of_all=True):
        raise RefusedError("tfrfast does not interleave parts of files", "shuffle() of the records")
    planning.in_order = not takes_turns
    counted = planning.counted(pipeline)
    source = replace(counted.source, turns=1, num_parallel_reads=None).planned(True)
    if source is None or source.plan is None or source.plan.damage:
        raise RefusedError("files that are read in part are missing or damaged")
    wanted_records = _in_a_row(parts, source.plan.file_records(len(parts)))
    if wanted_records is None:
        raise RefusedError("tfrfast does not plan parts of files with records between them")
    return replace(pipeline, source=source, sequence=replace(EVERYTHING, records=wanted_records))


def _in_a_row(parts: Sequence[FilePart], file_records: Sequence[int]) -> range | None:
    """Returns the range of read records among all; None if they are not consecutive."""
    wanted, file_first = range(0), 0
    for part, count in zip(parts, file_records, strict=True):
        of_file = EVERYTHING.over(count).narrowed("skip", part.skip).narrowed("take", part.take)
        first, taken = file_first + of_file.records.start, len(of_file.records)
        if taken and wanted and first != wanted.stop:
            return None
        if taken:
            wanted = range(wanted.start if wanted else first, first + taken)
        file_first += count
    return wanted
