"""Batches in any order, each record exactly once, read ahead by threads that never touch Python."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple, SupportsIndex

from tfrfast import _native
from tfrfast._arguments import IntegerArrayLike, Remainder, epoch_number
from tfrfast._paths import Paths
from tfrfast._schema import compile_features
from tfrfast.block_shuffle import BlockShuffle
from tfrfast.columns import Batch
from tfrfast.features import Features
from tfrfast.plan import Plan
from tfrfast.reader import Reader

_STATE_FORMAT = "tfrfast.Loader"
_STATE_VERSION = 1


class LoaderStats(NamedTuple):
    """Sums since the loader was made."""

    #: Delivered, padding not counted.
    records: int
    #: Of the delivered payloads.
    bytes: int
    batches: int
    #: The consumer waited so long for batches: if this grows, the input is the bottleneck.
    consumer_waited_s: float
    #: The workers together waited so long for the consumer: if this grows, it is not.
    workers_waited_s: float
    #: What the kernel was asked for early, because the data were not in memory.
    read_ahead_bytes: int


class Loader:
    """Iterates over the batches of a data set, one epoch a `for` loop.

    Args:
      source: a Reader, or anything that Reader takes.
      batch_size: rows of a batch of this rank.
      features: without, batches are RecordBatches; a feature dict, as for `parse_example`, makes
        them Batches of columns, decoded by the workers.
      shuffle, seed, rank, world, remainder, indices: as in Plan.
      threads: workers that read ahead; by default one for each processor this process may use.
      prefetch: batches read, or being read, ahead of the consumer; by default two more than threads.

    What a batch holds depends on neither `threads` nor `prefetch`. Each `for` is the next epoch; the
    first batches of the next one are read before this one ends. A batch that cannot be read raises
    at its place in the order and does not count as received: `next()` tries it again.

    One thread at a time may iterate. A forked child has its own workers and stands where the parent
    stood.
    """

    def __init__(
        self,
        source: Reader | Paths,
        batch_size: SupportsIndex,
        *,
        features: Features | None = None,
        shuffle: bool | BlockShuffle = True,
        seed: SupportsIndex = 0,
        rank: SupportsIndex = 0,
        world: SupportsIndex = 1,
        remainder: Remainder = "keep",
        indices: IntegerArrayLike | None = None,
        threads: int | None = None,
        prefetch: int | None = None,
    ) -> None:
        for name, value in (("threads", threads), ("prefetch", prefetch)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}.")
        reader = source if isinstance(source, Reader) else Reader(source)
        plan = Plan(
            len(reader),
            batch_size,
            shuffle=shuffle,
            seed=seed,
            rank=rank,
            world=world,
            remainder=remainder,
            indices=indices,
        )
        self._set_up(reader, plan, features, threads, prefetch)

    def _set_up(
        self,
        reader: Reader,
        plan: Plan,
        features: Features | None,
        threads: int | None,
        prefetch: int | None,
    ) -> None:
        self.reader = reader
        self.plan = plan
        self._threads = threads
        self._prefetch = prefetch
        threads = threads or _native.usable_processors()
        self.features = features
        self._compiled = None if features is None else compile_features(features)
        feature_plan = None if self._compiled is None else self._compiled.parser.plan
        self._native = _native.Loader(
            reader, plan._core, threads, prefetch or threads + 2, feature_plan
        )
        # Workers are joined before the interpreter goes, whoever still holds the loader then.
        self._finalizer = weakref.finalize(self, self._native.close)
        self._iterations = 0
        self._stands_at_beginning = True  # of what the next `for` is to deliver

    def __len__(self) -> int:
        """Steps of a whole epoch."""
        return self.plan.steps

    def __iter__(self) -> Iterator[Any]:
        if not self._stands_at_beginning:
            self._native.next_epoch()
        self._stands_at_beginning = False
        self._iterations += 1
        return _Epoch(self, self._iterations)

    @property
    def epoch(self) -> int:
        """The epoch that is being delivered, or that the next `for` will deliver."""
        return self._native.epoch

    @property
    def step(self) -> int:
        """Batches of this epoch received, since its beginning or since a state was loaded."""
        return self._native.step

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Makes the next `for` deliver this epoch, from its beginning."""
        self._native.seek(epoch_number(epoch), 0)
        self._stands_at_beginning = True

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer stands: a few hundred bytes, JSON-able, the same for every rank.

        Counts what has been received, not what has been read ahead.
        """
        return {
            "format": _STATE_FORMAT,
            "version": _STATE_VERSION,
            "data": f"{self.reader.fingerprint:016x}",
            "order": self.plan.order,
            "epoch": self._native.epoch,
            "position": self._native.position,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to where `state_dict` was taken; the next `for` finishes that epoch first.

        World, rank, batch size, remainder, threads and prefetch may differ. Other data, another
        seed or another shuffle would not continue the same epoch: ValueError.
        """
        self._check_state(state)
        self._native.seek(int(state["epoch"]), int(state["position"]))
        self._stands_at_beginning = True

    def _check_state(self, state: dict[str, Any]) -> None:
        mine = self.state_dict()
        missing = [key for key in mine if key not in state]
        if missing or state["format"] != _STATE_FORMAT:
            raise ValueError(f"This is no state of a Loader (without: {', '.join(missing)}).")
        if state["version"] != _STATE_VERSION:
            raise ValueError(
                f"The state has version {state['version']}, and this tfrfast reads version "
                f"{_STATE_VERSION}."
            )
        if state["order"] != mine["order"]:
            raise ValueError(
                f"The state was taken of {state['order']!r}, but this loader is of "
                f"{mine['order']!r}. Make the loader with the same arguments."
            )
        if state["data"] != mine["data"]:
            raise ValueError(
                f"The state was taken of data with fingerprint {state['data']}, but this loader's "
                f"have {mine['data']}: shards were added, removed, renamed, reordered or rewritten."
            )

    def to_tf_dataset(
        self, *, epochs: int | None = 1, with_indices: bool = False, with_valid: bool = False
    ) -> Any:
        """The batches as a `tf.data.Dataset`, in the order in which iterating gives them.

        It begins where the loader stands now, with the rest of that epoch, and goes on for `epochs`
        of them; `None` never ends. Every iteration of the dataset begins there again. RecordBatches
        become vectors of strings, Batches dicts of dense, ragged and sparse tensors. With
        `with_indices` or `with_valid` elements are tuples: the batch, its record numbers, which of
        its rows are real. Reading happens in TensorFlow's threads; the loader does not move.
        """
        from tfrfast._tensorflow.loading import dataset_of

        if epochs is not None and operator.index(epochs) < 1:
            raise ValueError(f"epochs must be at least 1, or None, not {epochs}.")
        return dataset_of(self, epochs, with_indices, with_valid)

    def stats(self) -> LoaderStats:
        """Who waits for whom: whether the input is the bottleneck."""
        return LoaderStats(**self._native.stats())

    def close(self) -> None:
        """Stops the workers and lets go of what they have read ahead. The reader stays open."""
        self._finalizer()

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (
            self.reader,
            self.plan,
            self.features,
            self._threads,
            self._prefetch,
            self.state_dict(),
        )

    def __repr__(self) -> str:
        return f"Loader({self.reader!r}, {self.plan!r}, epoch={self.epoch}, step={self.step})"


class _Epoch:
    """One `for` loop's iterator."""

    def __init__(self, loader: Loader, iteration: int) -> None:
        self._loader = loader
        self._next = loader._native.next
        self._iteration = iteration
        self._ended = False

    def __iter__(self) -> _Epoch:
        return self

    def __next__(self) -> _native.RecordBatch | Batch:
        if self._ended:
            raise StopIteration
        if self._iteration != self._loader._iterations:
            raise RuntimeError("Another iteration of this loader has begun; this one has ended.")
        batch = self._next()
        if batch is None:
            self._ended = True
            self._loader._native.next_epoch()
            self._loader._stands_at_beginning = True
            raise StopIteration
        compiled = self._loader._compiled
        if compiled is None:
            records: _native.RecordBatch = batch
            return records
        columns, indices, valid = batch
        return Batch(compiled.assemble(columns), indices, valid)


def _restore(
    reader: Reader,
    plan: Plan,
    features: Features | None,
    threads: int | None,
    prefetch: int | None,
    state: dict[str, Any],
) -> Loader:
    loader = Loader.__new__(Loader)
    loader._set_up(reader, plan, features, threads, prefetch)
    loader.load_state_dict(state)
    return loader
