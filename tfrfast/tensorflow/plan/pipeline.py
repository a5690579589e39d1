"""The pipeline that is read at once: a source, the requested records, and the calls after the read.

Maps, filters, prefetches and options commute with planned calls, so they wait at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.lift.lifted import Lifted
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.user_functions import decodes_media, parses_examples
from tfrfast.tensorflow.sequence import Batched, SeededOrder, Sequence
from tfrfast.tensorflow.source import Source


class Elements(NamedTuple):
    """Single elements, like a spec, of decoded blocks, and maps and filters that follow."""

    spec: Any
    calls: tuple[Any, ...]


@dataclass(frozen=True)
class Pipeline:
    source: Source
    sequence: Sequence | None = None  # None: the order of the files is unknown here
    features: TensorFeatures | None = None  # the decoded features of batches
    lifted: Lifted | None = None  # the maps whose batches are decoded
    #: The number of batches that are decoded as one block, and cut from it.
    batches_in_block: int = 1
    #: The batches of rows of blocks that pass the filters.
    filtered_batch: Batched | None = None
    #: The single elements that blocks become; None: batches are requested.
    elements: Elements | None = None
    cached: bool = False  # True for records in memory, until a planned call needs other records
    #: Maps and filters of single records, which wait for a batch() or are made by tf.data.
    record_calls: tuple[Any, ...] = ()
    # True if checkpoints of a shuffle hold positions, which takes time for each element.
    saves_positions: bool = True
    prefetched: int | None = None
    #: All options of the chain, also those of the file names.
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

    @property
    def filtered(self) -> bool:
        return any(map(nodes.is_filter, self.record_calls))

    @property
    def decodes(self) -> bool:
        """True if batches are columns."""
        return self.features is not None or self.lifted is not None

    @property
    def in_blocks(self) -> bool:
        """True if decoded blocks become single elements or other batches."""
        return self.elements is not None or self.filtered_batch is not None

    @property
    def lifted_calls(self) -> tuple[Any, ...]:
        """The calls on single records that are made on whole batches or blocks."""
        if self.lifted is None:
            return ()
        after = len(self.elements.calls) if self.elements else 0
        return self.record_calls[: len(self.record_calls) - after]

    @property
    def decodes_media(self) -> bool:
        return any(map(decodes_media, self.record_calls))

    @property
    def parses_needlessly(self) -> bool:
        """True if single records are parsed, though batches could be."""
        parses = self.lifted is None and any(map(parses_examples, self.record_calls))
        return parses and not self.decodes_media

    def saved_whole(self) -> Pipeline:
        """Returns the pipeline with checkpoints that hold all elements that are read ahead."""
        whole = tf.data.Options()
        whole.experimental_symbolic_checkpoint = False
        return replace(self, options=whole if self.options is None else self.options.merge(whole))
