"""The pipeline that is read at once: a source, the requested records, and the calls after the read.

Each method returns the pipeline with one more call, or the reason why the call does not fit. Maps,
filters, prefetches and options commute with planned calls, so they wait at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import tensorflow as tf

from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.errors import exception_from
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.integers import static_integer, static_integers
from tfrfast.tensorflow.lifting.elements import with_ragged
from tfrfast.tensorflow.lifting.lifted import Lifted, lift
from tfrfast.tensorflow.lifting.padding import Padding
from tfrfast.tensorflow.purity import impurity
from tfrfast.tensorflow.recognition import decodes_media, parses_examples
from tfrfast.tensorflow.sequence import EVERYTHING, Batched, SeededOrder, Sequence
from tfrfast.tensorflow.source import Source

_LEAVE_IT_OUT = "no num_parallel_reads, or shuffle() first"
_SHUFFLE_FIRST = "shuffle() before it, or no num_parallel_reads"
# Single elements are made in blocks of so many rows and bytes: a call costs little beside a block.
_BLOCK_ROWS = 256
_BLOCK_BYTES = 4 << 20
# Smaller blocks gain nothing.
_MIN_BLOCK_ROWS = 8
_UNKNOWN = Refusal("an argument is known only in the graph", "give Python integers")


class Single(NamedTuple):
    """Single elements that are made in blocks, and maps and filters that follow."""

    element_spec: Any
    calls: tuple[Any, ...]


@dataclass(frozen=True)
class Pipeline:
    source: Source
    sequence: Sequence | None = None  # None: the order of the files is unknown here
    features: TensorFeatures | None = None  # the decoded features of batches
    unlifted: str = ""  # why no parse may be lifted out of maps; "" if it may
    lifted: Lifted | None = None  # the maps whose batches are decoded
    selected: Batched | None = None  # the batches of rows that pass the filters
    parallel_batch: bool = False  # True for batch(num_parallel_calls=...)
    single: Single | None = None  # the purpose of unbatching; None: batches are requested
    cached: bool = False  # True for records in memory, until a planned call needs other records
    elementwise: tuple[Any, ...] = ()  # maps and filters of single records, made by tf.data
    filtered: bool = False
    parses: bool = False  # True if a map parses single records
    decodes_media: bool = False
    # True if checkpoints of a shuffle hold positions, which takes time for each element.
    saves_positions: bool = True
    prefetched: int | None = None
    options: Any = None

    @property
    def length(self) -> int | None:
        """Returns the number of elements; None if unknown or endless."""
        plan = self.source.plan
        if self.sequence is not None and self.sequence.epochs == 0:
            return 0
        if self.sequence is None or plan is None or plan.damage or self.filtered:
            return None
        if self.sequence.shuffle is not None:
            return self.sequence.length
        if self.source.skip_damage:  # the number of good records is unknown
            return None
        return self.sequence.over(plan.record_count).length

    @property
    def batch(self) -> Batched | None:
        return None if self.sequence is None else self.sequence.batch

    @property
    def shuffle(self) -> SeededOrder | None:
        return None if self.sequence is None else self.sequence.shuffle

    def narrowed(
        self, method: Literal["take", "skip", "shard"], *arguments: Any
    ) -> Pipeline | Refusal:
        numbers = static_integers(arguments)
        if numbers is None:
            return _UNKNOWN
        if method == "shard" and not 0 <= numbers[1] < numbers[0]:
            return Refusal("the number of the shard is not known here")
        if self.filtered:
            return Refusal("it counts what filter() lets through")
        if self.sequence is None:
            return _streams(self.source)
        if method != "take" and (impure := next(filter(None, map(impurity, self.elementwise)), "")):
            return Refusal(f"a map() before it {impure}", f"{method}() before map()")
        sequence = getattr(self.sequence, method)(*numbers)
        if sequence is not None:
            return replace(self, sequence=sequence)
        if self.batch is not None:
            return Refusal("it counts batches", f"{method}() of records, before batch()")
        return Refusal("it counts records of all repetitions")

    def repeated(self, count: Any) -> Pipeline | Refusal:
        number = -1 if count is None else static_integer(count)
        if number is None:
            return _UNKNOWN
        if self.sequence is None:
            return _streams(self.source)
        if number == 1:
            return self
        if self.filtered:
            return Refusal("it repeats what filter() lets through")
        sequence = self.sequence.repeat(number)
        if sequence is None:
            return Refusal("there is a repeat() before it")
        return replace(self, sequence=sequence, cached=False)

    def counted(self, count: Any) -> Pipeline | Refusal:
        """Declares `count` elements. May build indexes."""
        source = self.source.planned(build_indexes=True)
        if source is None:
            return _streams(self.source)
        counted = replace(self, source=source)
        if counted.length is None or counted.length != static_integer(count):
            return Refusal("TensorFlow says at the end whether there are so many elements")
        return counted

    def shuffled(self, shuffle: SeededOrder) -> Pipeline | Refusal:
        """Adds a shuffle. May build indexes. Raises for structural damage."""
        sequence = self.sequence or EVERYTHING
        if sequence.shuffled(shuffle) is None:
            return _refused_shuffle(sequence)
        if self.source.takes_turns and sequence.records != EVERYTHING.records:
            if self.source.names.shuffle is not None:
                return Refusal("each iteration shuffles other records", "shuffle() before it")
            return Refusal("only some records of interleaved files are shuffled", _SHUFFLE_FIRST)
        source = self.source.planned(build_indexes=True)
        if source is None or source.plan is None:
            return _streams(self.source)
        if source.plan.damage:
            raise exception_from(source.plan.damage)
        return replace(
            self,
            source=source,
            sequence=sequence.over(source.plan.record_count).shuffled(shuffle),
            cached=False,
        )

    def batched(
        self, rows: Any, drop_remainder: Any, padding: Padding | None = None
    ) -> Pipeline | Refusal:
        number = static_integer(rows)
        if number is None or drop_remainder is None:
            return _UNKNOWN
        if self.filtered and self.batch is None and padding is None:
            return self._selected(number, bool(drop_remainder))
        lifted = self._lifted(padding) if self.elementwise and self.batch is None else None
        if isinstance(lifted, Refusal):
            return lifted
        if self.sequence is None:
            return _streams(self.source)
        drop = bool(drop_remainder)
        sequence = self.sequence.batched(number, drop)
        if sequence is None:
            return Refusal("there is a batch() before it" if number > 0 else "it has no rows")
        if drop and self.source.skip_damage and sequence.shuffle is not None:
            return Refusal('a record that on_corruption="skip" leaves out makes a batch too short')
        if self.source.shuffles_files and self.shuffle is None:
            return self._in_turns(sequence, number, lifted)
        return self._in_batches(sequence, number, lifted)

    def of_blocks(self) -> Pipeline | Refusal:
        """Reads single elements, parsed in whole blocks. May build indexes."""
        if not self.elementwise or self.batch is not None or self.decodes_media:
            return Refusal("it handles elements one by one")
        for count in range(len(self.elementwise), 0, -1):
            made = self._in_blocks(self.elementwise[:count])
            if isinstance(made, Pipeline):
                spec = self.elementwise[count - 1].element_spec
                single = Single(spec, self.elementwise[count:])
                return replace(made, single=single, prefetched=self.prefetched)
        return made

    def _in_blocks(self, calls: tuple[Any, ...]) -> Pipeline | Refusal:
        """Reads blocks of the results of maps and filters."""
        mapped = replace(self, elementwise=with_ragged(calls), filtered=False)
        made = mapped.batched(_BLOCK_ROWS, False)
        if isinstance(made, Refusal):
            return made
        if made.sequence is None or made.lifted is None or made.lifted.by_element:
            return Refusal("its elements are made row by row")
        record_bytes = self.source.record_bytes or _BLOCK_BYTES // _BLOCK_ROWS
        row_bytes = max(1, record_bytes, made.lifted.row_bytes(record_bytes))
        rows = min(_BLOCK_ROWS, _BLOCK_BYTES // row_bytes)
        if rows < _MIN_BLOCK_ROWS:
            return Refusal("its elements are too large for blocks")
        sequence = replace(made.sequence, batch=Batched(rows, False))
        return replace(made, sequence=sequence, filtered=self.filtered)

    def _selected(self, rows: int, drop_remainder: bool) -> Pipeline | Refusal:
        """Reads batches of the rows that pass the filters. May build indexes."""
        made = self._in_blocks(self.elementwise)
        if isinstance(made, Refusal):
            why = f"filter() before it makes single elements: {made.why}"
            return Refusal(why, "batch() first, and then map() on batches")
        if rows < 1:
            return Refusal("it has no rows")
        if not all(map(_has_one_shape, tf.nest.flatten(self.elementwise[-1].element_spec))):
            return Refusal("filter() before it selects rows of different shapes")
        batched = self._in_batches(made.sequence or EVERYTHING, rows)
        selected = Batched(rows, drop_remainder)
        return replace(made, selected=selected, prefetched=batched.prefetched)

    @property
    def in_blocks(self) -> bool:
        """True if decoded blocks become single elements or other batches."""
        return self.single is not None or self.selected is not None

    def _in_turns(self, sequence: Sequence, rows: int, lifted: Lifted | None) -> Pipeline | Refusal:
        """Reads batches of interleaved files. May build indexes."""
        if self.source.skip_damage:
            return Refusal('on_corruption="skip" changes whose turn it is', _LEAVE_IT_OUT)
        turns = self.source.in_turns()
        if turns is None:
            return Refusal("interleaved files are missing or damaged", _LEAVE_IT_OUT)
        in_turns = sequence.in_turns(turns[1], self.source.names.shuffle)
        return replace(self._in_batches(in_turns, rows, lifted), source=turns[0])

    def _lifted(self, padding: Padding | None) -> Lifted | Refusal:
        """Lifts the maps before a batch(), if they can run on whole batches."""
        if self.filtered:
            return Refusal(
                "filter() before it makes single elements",
                "batch() first, and then map() on batches",
            )
        lifted = lift(self.elementwise, self.unlifted, padding)
        if isinstance(lifted, Lifted):
            return lifted
        instead = lifted.instead or "batch() first, and then map() on batches"
        if self.parses_needlessly and not lifted.instead:
            instead = ".batch(n).parse_example(features), or tf.io.parse_example on batches"
        return Refusal(f"map() before it makes single elements: {lifted.why}", instead)

    def rebatched(self, rows: Any, drop_remainder: Any) -> Pipeline | Refusal:
        number, batch = static_integer(rows), self.batch
        if number is None or number < 1 or drop_remainder is None:
            return _UNKNOWN
        if self.sequence is None or batch is None or self._decodes:
            return Refusal("it follows no batch() of strings in the plan")
        if batch.drop_remainder:
            return Refusal("drop_remainder=True before it leaves records out")
        if self.source.skip_damage:
            return Refusal('a record that on_corruption="skip" leaves out makes a batch too short')
        batch = Batched(number, bool(drop_remainder))
        return self._in_batches(replace(self.sequence, batch=batch), number)

    def _in_batches(self, sequence: Sequence, rows: int, lifted: Lifted | None = None) -> Pipeline:
        prefetched = self.prefetched
        if prefetched is not None and self.batch is None:
            prefetched = -(-prefetched // rows) if prefetched > 0 else prefetched
        made = replace(self, sequence=sequence, cached=False, prefetched=prefetched)
        if lifted is None:
            return made
        saves_positions = self.saves_positions and not lifted.has_state
        return replace(made, lifted=lifted, saves_positions=saves_positions)

    def parsed(self, features: TensorFeatures) -> Pipeline | Refusal:
        if self.batch is None:
            return _streams(self.source)
        if self._decodes:
            return Refusal("records are decoded already")
        return replace(self, features=features)

    @property
    def _decodes(self) -> bool:
        return self.features is not None or self.lifted is not None

    def in_memory(self, filename: Any) -> Pipeline | Refusal:
        if not isinstance(filename, str) or filename:
            return Refusal("it writes a file")
        if self.source.names.shuffle is not None:
            return Refusal("it keeps the order of shuffled files")
        if self.source.compression:
            return Refusal("it keeps records that would be inflated again in each epoch")
        if self.elementwise:
            return Refusal("it keeps what map() or filter() made", "cache() before them, or none")
        if self.sequence is not None and (
            self.shuffle or self.batch is not None or self.sequence.repeated
        ):
            return Refusal("it keeps what the plan gave the first time")
        return replace(self, cached=True)

    def with_map(self, call: Any) -> Pipeline | Refusal:
        if self.batch is not None:
            return Refusal("it is given batches")
        return replace(
            self,
            elementwise=(*self.elementwise, call),
            parses=self.parses or parses_examples(call),
            decodes_media=self.decodes_media or decodes_media(call),
        )

    def with_filter(self, call: Any) -> Pipeline | Refusal:
        if self.batch is not None:
            return Refusal("it is given batches")
        return replace(self, elementwise=(*self.elementwise, call), filtered=True)

    @property
    def parses_needlessly(self) -> bool:
        """True if single records are parsed, though batches could be."""
        return self.parses and not self.decodes_media and self.lifted is None

    def with_prefetch(self, buffer_size: Any) -> Pipeline | Refusal:
        number = -1 if buffer_size is None else static_integer(buffer_size)
        if number is None or number < -1:
            return _UNKNOWN
        return replace(self, prefetched=number)

    def with_options(self, options: Any) -> Pipeline:
        return replace(self, options=_merged(self.options, options))

    def saved_whole(self) -> Pipeline:
        """Returns the pipeline with checkpoints that hold all elements that are read ahead."""
        options = tf.data.Options()
        options.experimental_symbolic_checkpoint = False
        return self.with_options(options)


def _has_one_shape(spec: Any) -> bool:
    return isinstance(spec, tf.TensorSpec) and spec.shape.is_fully_defined()


def _streams(source: Source) -> Refusal:
    """Returns the reason why a source is not planned."""
    if source.names.known is None:
        return Refusal(
            source.names.why_unknown, "tfr.TFRecordDataset of a list of names or a pattern"
        )
    if source.num_parallel_reads is not None:
        return Refusal("num_parallel_reads is known only in the graph", "give a Python integer")
    return Refusal("it is not given batches of records", "batch() before it")


def _refused_shuffle(sequence: Sequence) -> Refusal:
    if sequence.shuffle is not None and sequence.shuffle.turns is None:
        return Refusal("there is a shuffle() before it, which is exact", "leave it out")
    return Refusal("it is given batches", "shuffle() before batch()")


def _merged(before: Any, options: Any) -> Any:
    """Returns a copy, as the user may still change `options`. Later options take precedence."""
    return (tf.data.Options() if before is None else before).merge(options)
