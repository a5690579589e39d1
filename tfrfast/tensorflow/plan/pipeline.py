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


class Single(NamedTuple):
    """Single elements that are made in blocks, and maps and filters that follow."""

    element_spec: Any
    calls: tuple[Any, ...]


@dataclass(frozen=True)
class Pipeline:
    source: Source
    sequence: Sequence | None = None  # None: the order of the files is unknown here
    features: TensorFeatures | None = None  # the decoded features of batches
    lifted: Lifted | None = None  # the maps whose batches are decoded
    together: int = 1  # the number of batches that are decoded as one block, and cut from it
    selected: Batched | None = None  # the batches of rows that pass the filters
    single: Single | None = None  # the purpose of unbatching; None: batches are requested
    cached: bool = False  # True for records in memory, until a planned call needs other records
    elementwise: tuple[Any, ...] = ()  # maps and filters of single records, made by tf.data
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
        return any(map(nodes.is_filter, self.elementwise))

    @property
    def decodes(self) -> bool:
        """True if batches are columns."""
        return self.features is not None or self.lifted is not None

    @property
    def in_blocks(self) -> bool:
        """True if decoded blocks become single elements or other batches."""
        return self.single is not None or self.selected is not None

    @property
    def decodes_media(self) -> bool:
        return any(map(decodes_media, self.elementwise))

    @property
    def parses_needlessly(self) -> bool:
        """True if single records are parsed, though batches could be."""
        parses = self.lifted is None and any(map(parses_examples, self.elementwise))
        return parses and not self.decodes_media

    def saved_whole(self) -> Pipeline:
        """Returns the pipeline with checkpoints that hold all elements that are read ahead."""
        whole = tf.data.Options()
        whole.experimental_symbolic_checkpoint = False
        return replace(self, options=whole if self.options is None else self.options.merge(whole))
