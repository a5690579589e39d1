"""Batches in any order, each record exactly once, read ahead by threads that never touch Python."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import EllipsisType
from typing import Any, NamedTuple, SupportsIndex, get_args

from tfrfast import _native
from tfrfast.base.arguments import (
    Remainder,
    check_transform,
    checked_threads,
    epoch_number,
    integer,
)
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.sizes import said_of_append
from tfrfast.base.tables import html_table
from tfrfast.base.warning import show_core_warnings
from tfrfast.features import AnyFeatures, Features
from tfrfast.features.compiled import CompiledFeatures
from tfrfast.features.compiling import compile_features
from tfrfast.loading.counters import Counters
from tfrfast.loading.packing import packed_features, settled_batching
from tfrfast.loading.planned_features import planned_features
from tfrfast.loading.records import open_reader, order_of
from tfrfast.loading.shuffle_costs import warn_of_costs
from tfrfast.loading.stage import Core, Stage
from tfrfast.loading.states import (
    Appended,
    before_append,
    check_loader_state,
    loader_state,
    weights_of_state,
)
from tfrfast.loading.timeline import Timeline
from tfrfast.loading.worker_share import WorkerShare
from tfrfast.order import Batching, Mixture, Order, Packed, Plan, Weight
from tfrfast.order.counted import CountedBatching
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths

_MOST_BATCHES = 1 << 16
_FOR_GOOD = 1 << 64  # no epoch has this number
_MOST_STEPS_NOTED = 100_000


class LoaderStats(NamedTuple):
    """Sums since the loader was made."""

    records: int
    """Delivered records, without padding."""
    bytes: int
    """Bytes of the delivered payloads."""
    batches: int
    """Delivered batches."""
    consumer_waited_s: float
    """Seconds that the consumer waited for batches. If this grows, the input is the bottleneck."""
    workers_waited_s: float
    """Seconds that all workers together waited for the consumer. If this grows, the input is fast
    enough.
    """
    read_ahead_bytes: int
    """Bytes that were requested early because they were not in memory."""

    def _repr_html_(self) -> str:
        rows = [
            (name, f"{value:,.3f}" if isinstance(value, float) else value)
            for name, value in zip(self._fields, self, strict=True)
        ]
        return html_table("LoaderStats: sums since the loader was made", ["", "so far"], rows)


class Delivery(NamedTuple):
    """The work of an adapter's stage, and the options of the Stage."""

    work: Callable[[Any], Any]
    options: dict[str, Any]


class BatchLoader:
    """The base of tfrfast's Loader and of the frameworks' Loaders."""

    reader: Reader
    #: The features that are decoded.
    features: Features | None
    #: The last epoch without the appended records, and the reader and the plan with them.
    _later: tuple[int, Reader, Plan] | None = None
    _timeline: Timeline | None = None
    #: A native loader whose counters this one's next native loader adds to.
    _counts_with: _native.Loader | None = None
    _elsewhere: Counters
    _share = WorkerShare(None)
    #: The stage of an adapter, after the transform.
    _delivery: Delivery | None = None
    #: True if an epoch begins when its first batch is requested, because DataLoader and Lightning
    #: make iterators that they never use.
    _begins_late = False
    #: The attributes of a subclass that a pickle keeps.
    _kept: tuple[str, ...] = ()

    def _open(
        self,
        source: Reader | Mixture | Paths,
        reader_options: dict[str, Any],
        order: Order,
        batch_size: Batching,
        features: AnyFeatures | None,
        share: dict[str, Any],
        transform: Callable[[Any], Any] | None,
        threads: SupportsIndex | None,
        prefetch: SupportsIndex | None,
    ) -> None:
        """Sets up a new loader. `share` has the arguments of a Plan that name a rank."""
        check_transform(transform, "a batch")
        threads = checked_threads(threads)
        if prefetch is not None:
            prefetch = integer("prefetch", prefetch, 1, _MOST_BATCHES)
        reader = open_reader(source, reader_options)
        compiled = None
        if isinstance(batch_size, CountedBatching):
            compiled = planned_features(features, reader, order)
        batching = settled_batching(batch_size, reader, order, compiled)
        plan = Plan(order, batching, num_records=len(reader), **share)
        warn_of_costs(reader, plan)
        if compiled is None:
            compiled = planned_features(features, reader, order)
        self._set_up(reader, plan, compiled, transform, threads, prefetch)

    def _set_up(
        self,
        reader: Reader,
        plan: Plan,
        compiled: CompiledFeatures | None,
        transform: Callable[[Any], Any] | None,
        threads: int | None,
        prefetch: int | None,
    ) -> None:
        self.reader = reader
        self._plan = plan
        self._threads = threads
        self._prefetch = prefetch
        threads = threads or self._usual_threads()
        if isinstance(plan.batching, Packed) and compiled is not None:
            compiled = packed_features(compiled, plan.batching)
        self._elsewhere = getattr(self, "_elsewhere", None) or Counters()
        self._compiled = compiled
        self.features = None if compiled is None else compiled.specs
        core = _native.Loader(
            reader._core,
            plan._core,
            threads,
            prefetch or threads + 2,
            None if compiled is None else compiled.schema,
            self._counts_with,
        )
        self._counts_with = core
        self.transform = transform
        self._core: Core = core
        #: Makes a batch of what the core delivers; None: the core delivers batches.
        self._batch_of = None if compiled is None else _batches_of(compiled, reader)
        self._transforming: Stage | None = None
        if transform is not None:
            work = _transforming(transform)
            self._transforming = self._add_stage(work, threads=threads, ahead=threads)
        if self._delivery is not None:
            self._add_stage(self._delivery.work, **self._delivery.options)
        self._watch()

    def _add_stage(self, work: Callable[[Any], Any], **options: Any) -> Stage:
        """Adds a stage, which makes batches of what the core delivers."""
        stage = Stage(self._core, _after(self._batch_of, work), **options)
        self._core, self._batch_of = stage, None
        return stage

    def _deliver_through(self, work: Callable[[Any], Any], **options: Any) -> None:
        """Adds the last stage, of an adapter: see Stage."""
        self._delivery = Delivery(work, options)
        self._add_stage(work, **options)

    def _usual_threads(self) -> int:
        return _native.usable_processors()

    def _settle(self) -> None:
        """Called before the plan is used, which an adapter may then change."""

    @property
    def plan(self) -> Plan:
        """The record numbers of each batch of this rank."""
        self._settle()
        return self._plan

    @property
    def _mixture(self) -> Mixture | None:
        return self._plan.order if isinstance(self._plan.order, Mixture) else None

    @explains_arguments
    def change_weights(self, weights: Mapping[str, Weight]) -> None:
        """Changes the weights of a Mixture from the consumer's place on.

        Every rank must call this at the same place, while no other thread takes a batch from this
        loader: that batch might come again. The change is part of the state from then on. A running
        `for` ends with RuntimeError at its next batch. The next `for` continues from here with the
        new weights.
        """
        if self._mixture is None:
            raise ValueError("Only a Loader of a Mixture has weights.")
        epoch, _, position = self._core.place()
        self._mix(self._mixture.with_weights(weights, epoch=epoch, position=position))
        self._core.seek(epoch, position)

    def _mix(self, mixture: Mixture) -> None:
        """Continues with another mixture of the same sources, from the caller's place."""
        if mixture != self._mixture:
            plan = self._plan
            self._exchange(self.reader, Plan(mixture, plan.batching, **plan._share()))

    def _take_share(self, share_of: Callable[[Plan], Plan]) -> None:
        """Continues with this rank's share of the plan, if that has changed."""
        plan = share_of(self._plan)
        if plan is self._plan:
            return
        if self._later is not None:
            until, reader, whole = self._later
            self._later = until, reader, share_of(whole)
        epoch, _, position = self._core.place()
        self._exchange(self.reader, plan)
        self._core.seek(epoch, position)

    def _exchange(self, reader: Reader, plan: Plan) -> None:
        """Continues with other records or another order, from the caller's place."""
        old = self._core
        self._set_up_again(reader, plan)
        old.seek(old.place()[0] + 1, 0)  # ends a running `for`

    def _set_up_again(self, reader: Reader, plan: Plan) -> None:
        rest = self._compiled, self.transform, self._threads, self._prefetch
        self._set_up(reader, plan, *rest)

    def _take_appended(self) -> None:
        """Goes over to all records, if the epoch that began without the appended ones has ended."""
        if self._later is not None and self._core.place()[0] > self._later[0]:
            epoch = self._core.place()[0]
            (_, reader, plan), self._later = self._later, None
            self._set_up_again(reader, plan)
            self._core.seek(epoch, 0)

    def __len__(self) -> int:
        """Steps of a whole epoch."""
        return self.plan.steps

    def __iter__(self) -> Iterator[Any]:
        self._settle()
        return _LateEpoch(self) if self._begins_late else self._begin()

    def _begin(self) -> Iterator[Any]:
        self._share.check(self._plan)
        begun = _LoaderEpoch(self)  # after the end of an epoch, moves to the next one
        if self._later is None:
            return begun
        self._take_appended()
        return _LoaderEpoch(self) if self._later is None else begun

    @property
    def epoch(self) -> int:
        """The current epoch: in delivery, or delivered by the next `for`."""
        return self._core.place()[0]

    @property
    def step(self) -> int:
        """Batches of this epoch received, since its beginning or since a state was loaded."""
        return self._core.place()[1]

    @explains_arguments
    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Makes the next `for` deliver this epoch, from its beginning.

        A running `for` ends with RuntimeError at its next batch.
        """
        self._core.seek(epoch_number(epoch), 0)

    def state_dict(self) -> dict[str, Any]:
        """The consumer's place: a few hundred bytes, JSON-able, the same for every rank.

        Counts the received batches, not the batches that were read ahead.
        """
        self._take_appended()
        epoch, _, position = self._core.place()
        state = loader_state(self.reader._fingerprint, self._plan.order_text, epoch, position)
        if self._mixture is not None:
            segments = self._mixture.segments
            state["weights"] = [[*each[:2], [*each[2].values()]] for each in segments]
        return state

    @explains_arguments
    def load_state_dict(self, state: dict[str, Any], *, appended: Appended = "refuse") -> None:
        """Moves to the place of `state_dict`. The next `for` finishes that epoch first.

        World, rank, batch size, remainder, threads and prefetch may differ. Raises ValueError for
        other data, another seed or another shuffle, which cannot continue the same epoch. A running
        `for` ends with RuntimeError at its next batch. A Mixture takes the weights of the state.

        If shards were appended after those of the state, `appended="leave"` goes on with the old
        records alone, and `"next epoch"` takes all records once that epoch has ended. The choice
        holds for later states of the same old records.
        """
        if not isinstance(appended, str) or appended not in get_args(Appended):
            raise ValueError(
                f'appended is {appended!r}, but must be "refuse", "leave" or "next epoch".'
            )
        mine = self.state_dict()
        kept_until, reader, plan = self._later or (0, self.reader, self._plan)
        mixture = self._mixture_of(state)
        whole = plan if mixture is None else Plan(mixture, plan.batching)
        old, old_plan = before_append(state, reader, plan) or (reader, whole)
        check_loader_state(state, mine | _facts(old, old_plan))
        old_plan.rest_after(state["position"])  # raises before any change
        epoch, position = operator.index(state["epoch"]), operator.index(state["position"])
        later = None
        if len(old) < len(reader):
            if appended == "refuse" and old._fingerprint != self.reader._fingerprint:
                raise ValueError(
                    f"{said_of_append(len(old), len(reader), reader._paths[len(old._paths)])} "
                    'load_state_dict(state, appended="leave") goes on with the old records alone, '
                    'and appended="next epoch" takes all once the epoch has ended.'
                )
            leaves = appended == "leave" or (appended == "refuse" and kept_until == _FOR_GOOD)
            if leaves or position > 0:
                later = (_FOR_GOOD if leaves else epoch, reader, plan)
                reader, plan = old, old_plan
        if mixture is not None:
            self._mix(mixture)
        elif reader is not self.reader:
            self._exchange(reader, plan)
        self._later = later
        self._core.seek(epoch, position)

    def _mixture_of(self, state: dict[str, Any]) -> Mixture | None:
        if self._mixture is None or "weights" not in state:
            return None
        return self._mixture._with_all_weights(weights_of_state(state))

    def _settled_state(self) -> dict[str, Any]:
        """Returns the state of a loader whose later epochs have the same records."""
        state = self.state_dict()
        if self._later is not None and self._later[0] != _FOR_GOOD:
            raise ValueError(
                "This epoch began without the appended records. Finish it in a `for` loop first."
            )
        return state

    def stats(self) -> LoaderStats:
        """Counters that tell whether the input is the bottleneck.

        Adapters' batches count, too. Of `to_tf_dataset()`, batches count when TensorFlow has read
        them, and the consumer's waiting if TensorFlow can tell it (`tfr.explain`).
        """
        sums = self._core.stats()
        sums["consumer_waited_s"] += self._elsewhere.consumer_waited_s
        for read in self._elsewhere.read.values():
            for name, count in read().items():
                sums[name] += count
        return LoaderStats(**sums)

    @explains_arguments
    def timeline(self, steps: SupportsIndex = 300) -> Timeline:
        """Notes what happens in the next steps: reading, decoding, transforms, waiting, training.

            timeline = loader.timeline()
            for batch in loader:
                train_step(batch)
            timeline.save("run.svg")

        Takes effect with the next `for`. A notebook shows the picture. Keras and `to_tf_dataset()`
        take their batches elsewhere, where no timeline sees them.
        """
        number = integer("steps", steps, 1, _MOST_STEPS_NOTED)
        self._timeline = Timeline(number)
        self._watch()
        return self._timeline

    def _watch(self) -> None:
        """Lets the timeline note what the threads do."""
        if self._timeline is not None:
            assert self._counts_with is not None
            self._timeline._watch(self._counts_with)
            if self._transforming is not None:
                self._transforming.note_work(self._timeline._transforming)

    def close(self) -> None:
        """Stops the workers and drops the batches that were read ahead. The reader stays open.

        Any thread may close. Threads that wait for a batch get ValueError at once.
        """
        self._core.close()

    def __reduce__(self) -> tuple[object, ...]:
        state = self.state_dict()
        return _restore, (
            self.reader,
            self._plan,
            self.features,
            self.transform,
            self._threads,
            self._prefetch,
            state,
            self._later,
            type(self),
            {name: getattr(self, name) for name in self._kept},
        )

    def __repr__(self) -> str:
        if not hasattr(self, "_core"):
            return "Loader(not made)"
        return f"Loader({self.reader!r}, {self._plan!r}, epoch={self.epoch}, step={self.step})"


class Loader(BatchLoader):
    """Iterates over the batches of a data set, one epoch a `for` loop.

        for batch in tfr.Loader("data/train-*", 256, features=["image", "label"], seed=1):
            train_step(batch["image"], batch["label"])

    Raises what Reader raises, and FeatureError for features that the records do not have.

    Args:
      source: a Reader, anything that Reader takes, or a Mixture, which is an order, too.
      batch_size: rows of a batch of this rank, or a ByTokens, or a Packed.
      features: the features to decode. By default nothing is decoded, and batches are
        RecordBatches. With a dict, as for `parse_example`, batches are Batches of columns. A list
        of names, or "infer" for all features, does the same with specs inferred from some records,
        which `loader.features` keeps.
      order: a Shuffle, InOrder, BlockShuffle or Weighted.
      shuffle, seed: the short way: `Shuffle(seed)`, as by default, or with `shuffle=False`
        `InOrder()`.
      rank, world, remainder: as in Plan; `world` is 1 by default. In a worker of PyTorch's
        DataLoader, `rank` and `world` must name that worker's share. Otherwise iterating is an
        error.
      transform: a function of a batch, called in threads ahead of the consumer. Its results are
        delivered in order. Its error is raised at the batch's place. Decoding an image goes here.
        To pickle the Loader, the function must pickle.
      threads: the number of workers that read ahead, and of threads that transform; by default the
        number of processors that this process may use.
      prefetch: batches that are read ahead of the consumer; by default two more than threads.

      reader_options: options of Reader.

    The content of a batch depends on neither `threads` nor `prefetch`. Each `for` is the next
    epoch. The first batches of the next epoch are read before this epoch ends; from a URL only from
    the second `for` on, because there may be no second epoch. A batch that cannot be read raises at
    its place in the order and does not count as received: `next()` tries the batch again.

    Threads may share an iterator: each batch goes to one thread, and the end of the epoch ends all
    loops. A second `for` ends the first loop, with RuntimeError. A forked child has its own
    workers. Like a pickled copy, the child continues from the parent's place: its first `for`
    finishes that epoch.
    """

    @explains_arguments
    def __init__(
        self,
        source: Reader | Mixture | Paths,
        batch_size: Batching,
        *,
        features: AnyFeatures | None = None,
        order: Order | None = None,
        shuffle: bool | None = None,
        seed: SupportsIndex | None = None,
        rank: SupportsIndex = 0,
        world: SupportsIndex | None = None,
        remainder: Remainder = "keep",
        transform: Callable[[Any], Any] | None = None,
        threads: SupportsIndex | None = None,
        prefetch: SupportsIndex | None = None,
        **reader_options: Any,
    ) -> None:
        self._open(
            source,
            reader_options,
            order_of(source, order, shuffle, seed),
            batch_size,
            features,
            {"rank": rank, "world": 1 if world is None else world, "remainder": remainder},
            transform,
            threads,
            prefetch,
        )
        self._share = WorkerShare(world)

    @property
    def mixture(self) -> Mixture | None:
        """The loaded Mixture, with all changes of weights; None for a single data set."""
        return self._mixture

    def _counted_copy(self) -> Loader:
        """Returns a copy whose batches count in this loader's stats."""
        copied = Loader.__new__(Loader)
        self._copy_to(copied)
        return copied

    def _copy_to(self, copied: BatchLoader) -> None:
        """Sets up a new loader at this loader's place, whose batches count in this one's stats."""
        copied._counts_with, copied._elsewhere = self._counts_with, self._elsewhere
        rest = self._compiled, self.transform, self._threads, self._prefetch
        copied._set_up(self.reader, self.plan, *rest)
        copied.load_state_dict(self._settled_state())

    def to_tf_dataset(
        self,
        *,
        epochs: int | EllipsisType | None = ...,
        with_indices: bool = False,
        with_valid: bool = False,
        with_sources: bool = False,
        with_crops: bool = False,
    ) -> Any:
        """Returns the batches as a `tf.data.Dataset`, in the loader's order.

        The dataset begins at the loader's place, with the rest of that epoch, and has `epochs`
        epochs; `None` never ends. RecordBatches become vectors of strings, Batches dicts of dense,
        ragged and sparse tensors. With `with_indices`, `with_valid`, `with_sources` or
        `with_crops`, elements are tuples: the batch, its record numbers, a bool that is False for
        padding rows, the number of each row's source in a Mixture, and `Batch.crops` as tensors.
        TensorFlow's threads read; the loader does not move.

        With `world` 1, `epochs` is 1 by default, and each further iteration of the dataset has as
        many batches in another order. These orders are not epochs of the loader, and are the same
        in each run. With `world` above 1, `epochs` must be given. Every iteration is then the same,
        so that the records of a rank do not depend on the number of its iterations.
        """
        from tfrfast.tensorflow.build.loading import dataset_of

        if self.transform is not None:
            raise TypeError(
                "TensorFlow reads these batches itself, and cannot call transform. Leave it out, "
                "and call its function in the dataset's map(); or use to_keras()."
            )
        if isinstance(epochs, EllipsisType):
            if self.plan.world > 1:
                raise ValueError(
                    "epochs must be given where world is above 1. Every iteration of the dataset "
                    "is the same there, so that its order does not depend on how often a rank has "
                    "iterated. epochs=None never ends; with Keras, also give steps_per_epoch."
                )
            epochs = 1
        if epochs is not None and operator.index(epochs) < 1:
            raise ValueError(f"epochs must be at least 1, or None, not {epochs}.")
        return dataset_of(self, epochs, with_indices, with_valid, with_sources, with_crops)

    def to_keras(self, *, features: str | Sequence[str], label: str | None = None) -> Any:
        """Returns the epochs for Keras's `fit`: a `keras.utils.PyDataset`, in Keras 2 a `Sequence`.

            model.fit(loader.to_keras(features=["image", "size"], label="label"), epochs=10)

        Batches are `(inputs, labels)`. `features` names the columns that become inputs: one name
        gives the array itself, several names give a dict of arrays. `label` names the column of
        labels; without a label, batches are `(inputs,)`, as `predict` takes them. With
        `remainder="pad"` sample weights follow, which are 0 for padding. If TensorFlow is Keras's
        backend, columns may be strings, ragged or sparse.

        Each epoch of Keras is an epoch of the loader, from its current epoch on, with each record
        once. The loader does not move. Leave `steps_per_epoch` out. The result serves one purpose:
        make another for evaluation or prediction.
        """
        from tfrfast.keras import keras_epochs

        return keras_epochs(self, features, label)


class _LoaderEpoch:
    """The iterator of one `for` loop."""

    def __init__(self, loader: BatchLoader) -> None:
        self._batch_of = loader._batch_of
        self._next = loader._core.begin().next
        self._timeline = loader._timeline

    def __iter__(self) -> _LoaderEpoch:
        return self

    def __next__(self) -> Any:
        if self._timeline is not None:
            return self._timeline._taking(self._take)
        return self._take()

    def _take(self) -> Any:
        batch = self._next()
        if batch is None:
            show_core_warnings()
            raise StopIteration
        return batch if self._batch_of is None else self._batch_of(batch)


class _LateEpoch:
    """The iterator of one `for` loop, which begins when its first batch is requested. Threads may
    share the iterator: each batch goes to one thread.
    """

    def __init__(self, loader: BatchLoader) -> None:
        self._loader = loader
        self._batches: Iterator[Any] | None = None  # until the first batch is requested
        self._beginning = threading.Lock()
        self._home = _native.HomeProcess()

    def __iter__(self) -> _LateEpoch:
        return self

    def __next__(self) -> Any:
        return next(self._batches or self._begun())

    def _begun(self) -> Iterator[Any]:
        if not self._home.is_this_one():  # another thread may have held the lock at the fork
            self._beginning, self._home = threading.Lock(), _native.HomeProcess()
        with self._beginning:
            if self._batches is None:
                self._loader._settle()
                self._batches = self._loader._begin()
            return self._batches


def _batches_of(compiled: CompiledFeatures, reader: Reader) -> Callable[[Any], Any]:
    starts = reader._source_starts

    def batch_of(delivered: Any) -> Any:
        columns, indices, valid = delivered
        return compiled.batch(columns, indices, valid, starts)

    return batch_of


def _after(first: Callable[[Any], Any] | None, work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return work if first is None else lambda delivered: work(first(delivered))


def _transforming(transform: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def work(batch: Any) -> Any:
        result = transform(batch)
        if result is None:
            raise TypeError("transform returned None. It must return the batch to deliver.")
        return result

    return work


def _restore(
    reader: Reader,
    plan: Plan,
    features: Features | None,
    transform: Callable[[Any], Any] | None,
    threads: int | None,
    prefetch: int | None,
    state: dict[str, Any],
    later: tuple[int, Reader, Plan] | None = None,
    kind: type[BatchLoader] = Loader,
    kept: dict[str, Any] | None = None,
) -> BatchLoader:
    loader = kind.__new__(kind)
    vars(loader).update(kept or {})
    compiled = None if features is None else compile_features(features)
    loader._set_up(reader, plan, compiled, transform, threads, prefetch)
    loader.load_state_dict(state)
    loader._later = later
    return loader


def _facts(reader: Reader, plan: Plan) -> dict[str, str]:
    return {"data": f"{reader._fingerprint:016x}", "order": plan.order_text}
