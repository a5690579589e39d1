"""An IterableDataset that shards itself over ranks and workers."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import Any, SupportsIndex

import torch.utils.data

from tfrfast.base.arguments import Remainder, check_transform, checked_threads, epoch_number
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.features import AnyFeatures, Features
from tfrfast.features.compiling import compile_features
from tfrfast.loading.loader import LoaderStats
from tfrfast.loading.packing import settled_batching
from tfrfast.loading.records import Counted, RecordsByNumber, order_of, read_step
from tfrfast.loading.states import check_state
from tfrfast.order import Batching, Mixture, Order, Plan
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths
from tfrfast.torch.batch import tensors_of
from tfrfast.torch.epochs import EpochCounter, SharedSums
from tfrfast.torch.share import Share, share_of_processors

__all__ = ["IterableDataset"]

_FORMAT = "tfrfast.torch.IterableDataset"
_VERSION = 1
_SECONDS_BETWEEN_SUMS = 0.1


class IterableDataset(torch.utils.data.IterableDataset[Any]):
    """Batches of tensors for `DataLoader(dataset, batch_size=None, num_workers=...)`.

    Worker w of n yields batches w, w + n, ... of its rank. A DataLoader asks its workers in turn,
    so it delivers a Loader's batches in the Loader's order, with any number of workers.

    Args:
      source: a Reader, anything that Reader takes, or a Mixture.
      batch_size: rows of a batch of this rank, or a ByTokens, or a Packed.
      features: as in `tfrfast.Loader`. With None, batches are RecordBatches.
      transform: a function of a Batch, whose result is delivered.
      order, shuffle, seed: as in `tfrfast.Loader`.
      rank, world: by default torch.distributed's; 0 and 1 without it.
      remainder: as in Plan; by default "keep" with one rank, and "pad" with several.
      threads: the number of threads that read and transform ahead in each process; by default one
        in a worker, and a Loader's default without workers.
      reader_options: options of Reader.

    Each iteration is the next epoch, in all workers alike; `set_epoch` chooses an epoch. All ranks
    must iterate equally often, or choose the epoch.
    """

    @explains_arguments
    def __init__(
        self,
        source: Reader | Mixture | Paths,
        batch_size: Batching,
        *,
        features: AnyFeatures | None,
        transform: Callable[[Any], Any] | None = None,
        order: Order | None = None,
        shuffle: bool | None = None,
        seed: SupportsIndex | None = None,
        rank: int | None = None,
        world: int | None = None,
        remainder: Remainder | None = None,
        threads: int | None = None,
        **reader_options: Any,
    ) -> None:
        check_transform(transform, "a batch")
        threads = checked_threads(threads)
        chosen = order_of(source, order, shuffle, seed)
        self._share = Share(rank, world, remainder)
        self._records = RecordsByNumber(source, features, reader_options)
        self._transform = transform
        self._threads = threads
        self._epochs = EpochCounter()
        self._sums = SharedSums(dict.fromkeys(LoaderStats._fields, 0))
        compiled = None if self.features is None else compile_features(self.features)
        # Raises here if an argument is wrong.
        self._plan = Plan(
            chosen,
            settled_batching(batch_size, self.reader, chosen, compiled),
            num_records=len(self.reader),
            **self._share.so_far(),
        )

    @property
    def reader(self) -> Reader:
        """The Reader of the records."""
        return self._records.reader

    @property
    def features(self) -> Features | None:
        """The features that are decoded."""
        return self._records.features

    @property
    def plan(self) -> Plan:
        """The record numbers of each batch of this rank."""
        self._plan = self._share.of(self._plan)
        return self._plan

    def __len__(self) -> int:
        """The number of batches of a whole epoch, of all workers together."""
        return self.plan.steps

    def __iter__(self) -> Iterator[Any]:
        return _IterableEpoch(self)

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Makes the next iteration deliver this epoch, also in running workers.

        Call this before the iteration begins. A running iteration keeps its own epoch.
        """
        self._epochs.choose(epoch_number(epoch))

    def stats(self) -> LoaderStats:
        """Sums of all iterations, in this process and in workers of a DataLoader.

        Workers add theirs ten times a second. In workers, `workers_waited_s` grows while training
        is slower than the input; a DataLoader does not tell how long its consumer waited. Batches
        of a Packed count no bytes.
        """
        return LoaderStats(**self._sums.now())

    def _batch(self, plan: Plan, epoch: int, step: int, counted: Counted) -> Any:
        batch = tensors_of(read_step(self.reader, self.features, plan, epoch, step, counted))
        return batch if self._transform is None else self._transform(batch)

    def __repr__(self) -> str:
        return f"IterableDataset({self.reader!r}, batch_size={self._plan.batching})"


class _IterableEpoch:
    """One process's share of an epoch. A StatefulDataLoader saves the share's state."""

    def __init__(self, dataset: IterableDataset) -> None:
        worker = torch.utils.data.get_worker_info()
        self._dataset = dataset
        self._plan = dataset.plan
        self._workers = 1 if worker is None else worker.num_workers
        self._worker = 0 if worker is None else worker.id
        self._workers_wait = worker is not None
        self._threads = dataset._threads or (1 if worker else share_of_processors())
        self._epoch = dataset._epochs.take(worker)
        self._step = self._worker
        self._batches: Iterator[Any] | None = None
        self._read: list[tuple[int, int]] = []  # records and bytes of batches that were read
        self._new: dict[str, float] = dict.fromkeys(LoaderStats._fields, 0)
        self._added = self._left = perf_counter()

    def __iter__(self) -> _IterableEpoch:
        return self

    def __next__(self) -> Any:
        asked = perf_counter()
        if self._workers_wait:
            self._new["workers_waited_s"] += asked - self._left
        if self._batches is None:
            self._batches = self._from_here()
        try:
            batch = next(self._batches)
        except StopIteration:
            self._add()
            raise
        except BaseException:
            self._batches = None  # the next call tries this batch again
            raise
        self._step += self._workers
        self._left = perf_counter()
        self._new["batches"] += 1
        if not self._workers_wait:
            self._new["consumer_waited_s"] += self._left - asked
        if self._left - self._added > _SECONDS_BETWEEN_SUMS:
            self._add()
        return batch

    def _add(self) -> None:
        read, self._read[:] = [*self._read], []
        for records, size in read:
            self._new["records"] += records
            self._new["bytes"] += size
        self._dataset._sums.add(self._new)
        self._new = dict.fromkeys(self._new, 0)
        self._added = self._left

    def _from_here(self) -> Iterator[Any]:
        plan, epoch = self._plan, self._epoch
        steps = range(self._step, plan.steps, self._workers)

        def batch_of(step: int) -> Any:
            return self._dataset._batch(plan, epoch, step, self._read.append)

        if self._threads > 1:
            return _in_order(batch_of, steps, self._threads)
        # A worker process is itself ahead of the training loop. With `map`, a StopIteration of the
        # transform would end the epoch.
        return (batch_of(step) for step in steps)

    def state_dict(self) -> dict[str, Any]:
        """Returns the place of this process, after its delivered batches."""
        plan = self._plan
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "data": f"{self._dataset.reader._fingerprint:016x}",
            "order": plan.order_text,
            "rank": plan.rank,
            "world": plan.world,
            "batch_size": plan.batch_size,
            "remainder": plan.remainder,
            "worker": self._worker,
            "workers": self._workers,
            "epoch": self._epoch,
            "step": self._step,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        mine = self.state_dict()
        fixed = [key for key in mine if key not in ("rank", "epoch", "step")]
        check_state("IterableDataset", state, mine, fixed)
        step = operator.index(state["step"])
        # Another rank may have a step more.
        if step not in range(self._worker, self._plan.steps + 1 + self._workers, self._workers):
            raise ValueError(f"Not a state of IterableDataset: this worker has no step {step}.")
        self._epoch, self._step, self._batches = operator.index(state["epoch"]), step, None
        self._dataset._epochs.choose(self._epoch + 1)


def _in_order(work: Callable[[int], Any], steps: range, threads: int) -> Iterator[Any]:
    """Yields `work(step)` for each step. Threads work up to `threads` + 1 steps ahead."""
    waiting: deque[Future[Any]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="tfrfast")
    try:
        for step in steps:
            waiting.append(pool.submit(work, step))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
