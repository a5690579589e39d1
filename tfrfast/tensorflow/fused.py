"""Datasets whose calls add to a plan, for as long as they fit its grammar."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast._features.compiling import compile_features
from tfrfast._features.inference import settle
from tfrfast._features.samples import Sample
from tfrfast.block_shuffle import BlockShuffle
from tfrfast.features import AnyFeatures, Features
from tfrfast.tensorflow import graphs
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.errors import exception_from
from tfrfast.tensorflow.planning import OpenPlan
from tfrfast.tensorflow.seeds import draw_seed
from tfrfast.tensorflow.sequence import Progression, Sequence, Shuffle
from tfrfast.tensorflow.source import Source

Build = Callable[[Any], Any]


class Narrowing(NamedTuple):
    """A call of take, skip or shard."""

    method: str
    arguments: tuple[int, ...]


class FusedDataset(tf.data.Dataset):  # type: ignore[misc]
    """A source, what has been asked of it so far, and maps that come after the read.

    Its methods add to the plan for as long as they fit its grammar (docs/tensorflow.md). The first
    call that does not fit is plain tf.data on what has been built so far.
    """

    _source: Source | None  # None: plain tf.data from here on
    _sequence: Sequence | None
    _narrowings: tuple[Narrowing, ...]  # of a stream; shuffle() adds them to the plan
    _maps: tuple[Build, ...]
    _features: TensorFeatures | None  # what batches are decoded into

    def _set_up(
        self,
        source: Source | None,
        sequence: Sequence | None = None,
        *,
        narrowings: tuple[Narrowing, ...] = (),
        maps: tuple[Build, ...] = (),
        features: TensorFeatures | None = None,
        element_spec: Any = None,
        built: Any = None,
    ) -> None:
        self._source = source
        self._sequence = sequence
        self._narrowings = narrowings
        self._maps = maps
        self._features = features
        self._known_spec = element_spec
        if built is not None:
            self._built = built
        elif not tf.executing_eagerly():
            self._built = self._build()  # here and now: a graph's tensors belong to it
        super().__init__(None)
        if sequence is not None and sequence.shuffle is not None:
            self._options_attr = graphs.small_checkpoints()

    @functools.cached_property
    def _built(self) -> Any:
        # Built when it is used: a chain of calls costs one graph, not one for each link.
        with tf.init_scope():
            return self._build()

    def _build(self) -> Any:
        assert self._source is not None
        if self._sequence is None:
            built = self._source.stream()
            for narrowing in self._narrowings:
                built = getattr(built, narrowing.method)(*narrowing.arguments)
        else:
            assert self._source.plan is not None
            built = graphs.planned(self._source.plan, self._sequence, self._features)
        for apply in self._maps:
            built = apply(built)
        return built

    # DatasetV2 keeps its variant tensor here.
    @property
    def _variant_tensor_attr(self) -> Any:
        return self._built._variant_tensor

    @_variant_tensor_attr.setter
    def _variant_tensor_attr(self, _: None) -> None:
        pass

    def _inputs(self) -> list[Any]:
        return [self._built] if self._source is None else []

    @property
    def element_spec(self) -> Any:
        if self._known_spec is None:
            if self._source is None or self._maps or self._features is not None:
                self._known_spec = self._built.element_spec
            else:
                self._known_spec = _spec_of(self._sequence)
        return self._known_spec

    def _derived(
        self,
        sequence: Sequence | None,
        source: Source | None = None,
        narrowings: tuple[Narrowing, ...] = (),
        features: TensorFeatures | None = None,
    ) -> FusedDataset:
        """A dataset of another sequence. Its maps and features stay."""
        dataset = FusedDataset.__new__(FusedDataset)
        dataset._set_up(
            source or self._source,
            sequence,
            narrowings=narrowings,
            maps=self._maps,
            features=features or self._features,
            element_spec=self.element_spec if self._maps else None,
        )
        return dataset

    def _fuse(self, method: str, *arguments: Any) -> FusedDataset | None:
        """The dataset with `method` added to its sequence; None if it does not fit."""
        known = [static_integer(argument) for argument in arguments]
        numbers = tuple(number for number in known if number is not None)
        if self._source is None or len(numbers) < len(known):
            return None
        if self._sequence is not None:
            sequence = getattr(self._sequence, method)(*numbers)
            return sequence and self._derived(sequence)
        if method == "repeat":
            return None
        return self._derived(None, narrowings=(*self._narrowings, Narrowing(method, numbers)))

    def take(self, count: Any, name: str | None = None) -> Any:
        return self._fuse("take", count) or _plain(super().take(count, name=name))

    def skip(self, count: Any, name: str | None = None) -> Any:
        return self._fuse("skip", count) or _plain(super().skip(count, name=name))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Any:
        shuffle = self._sequence and self._sequence.shuffle
        if shuffle and not shuffle.seeded:
            raise ValueError(
                "shard() after a shuffle() without a seed: every process draws an order of its "
                "own, so that their shards would overlap and miss records. Give shuffle() a seed, "
                "the same everywhere, or call shard() first."
            )
        many, which = static_integer(num_shards), static_integer(index)
        fused = None
        if many is not None and which is not None and 0 <= which < many:
            fused = self._fuse("shard", many, which)
        return fused or _plain(super().shard(num_shards, index, name=name))

    def repeat(self, count: Any = None, name: str | None = None) -> Any:
        fused = self._fuse("repeat", -1 if count is None else count)
        return fused or _plain(super().repeat(count, name=name))

    def shuffle(
        self,
        buffer_size: Any = None,
        seed: Any = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
        *,
        order: BlockShuffle | None = None,
    ) -> Any:
        """Shuffles all records, exactly, whatever `buffer_size` says.

        Only where the sources are symbolic, or after calls that leave the plan, is it tf.data's
        shuffle through a buffer. `order=tfr.BlockShuffle(...)` is for storage where seeks are slow.
        """
        fused = self._fused_shuffle(seed, reshuffle_each_iteration, order)
        if fused is not None:
            return fused
        if order is not None:
            raise ValueError(
                "shuffle(order=...) needs file names that are known when the dataset is made, and "
                "only take, skip, shard and map before it."
            )
        if buffer_size is None:
            raise TypeError("shuffle() of this dataset needs a buffer_size.")
        return _plain(super().shuffle(buffer_size, seed, reshuffle_each_iteration, name=name))

    def _fused_shuffle(
        self, seed: Any, reshuffles: bool | None, order: BlockShuffle | None
    ) -> FusedDataset | None:
        known_seed = None if seed is None else static_integer(seed)
        if self._source is None or (seed is not None and known_seed is None):
            return None
        source = self._source.planned(build_indexes=True)
        if source is None or source.plan is None:
            return None
        sequence = self._sequence or everything(source.plan)
        for narrowing in self._narrowings:
            sequence = getattr(sequence, narrowing.method)(*narrowing.arguments)
        shuffled = sequence.shuffled(
            Shuffle(draw_seed(known_seed), reshuffles is not False, order, seed is not None)
        )
        if shuffled is None:
            return None
        if source.plan.damage:
            raise exception_from(source.plan.damage)
        return self._derived(shuffled, source)

    def batch(
        self,
        batch_size: Any,
        drop_remainder: Any = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Any:
        fused = self._fused_batch(static_integer(batch_size), tf.get_static_value(drop_remainder))
        if fused is not None:
            return fused
        return _plain(
            super().batch(batch_size, drop_remainder, num_parallel_calls, deterministic, name=name)
        )

    def _fused_batch(self, rows: int | None, drop_remainder: Any) -> Any:
        source = self._source
        if source is None or self._maps or rows is None or rows < 1 or drop_remainder is None:
            return None
        drop = bool(drop_remainder)
        if self._sequence is None:
            blocks = None if self._narrowings else source.file_order_blocks()
            return blocks and _plain(blocks.rebatch(rows, drop))
        sequence = self._sequence.batched(rows, drop)
        if sequence is None or (drop and source.skip_damage):
            return None  # a record that is left out would make a batch too short
        if sequence.shuffle is None and source.plan is not None and source.plan.damage:
            return None  # damage between records has a place in blocks, but not in batches
        return self._derived(sequence)

    def map(self, map_func: Any, *arguments: Any, **options: Any) -> Any:
        def apply(dataset: Any) -> Any:
            return dataset.map(map_func, *arguments, **options)

        mapped = super().map(map_func, *arguments, **options)
        if self._source is None or (self._sequence and self._sequence.batch):
            return _plain(mapped)
        # One element in, one out, so what reorders or leaves out elements can go first.
        dataset = FusedDataset.__new__(FusedDataset)
        dataset._set_up(
            self._source,
            self._sequence,
            narrowings=self._narrowings,
            maps=(*self._maps, apply),
            built=mapped,
        )
        return dataset

    def parse_example(self, features: AnyFeatures) -> Any:
        """Parses tf.train.Examples to what `tf.io.parse_example` gives: a dict of tensors.

        `features` are specs of tfrfast or of tf.io; or, executing eagerly, a list of names or
        "infer" for all: then the specs are inferred here, once, from the first records. After
        batch(), records are decoded where they are read and never become strings. Single records
        are parsed by TensorFlow, which is slow, and takes specs of tf.io.
        """
        spec = self.element_spec
        if (
            not isinstance(spec, tf.TensorSpec)
            or spec.dtype != tf.string
            or spec.shape.rank is None
        ):
            raise TypeError(f"parse_example() needs serialized records, but elements are {spec}.")
        features = settle(features, self._first_records)
        if spec.shape.rank == 0:
            return self.map(_parse_single(features), tf.data.AUTOTUNE)
        compiled = TensorFeatures(compile_features(features))
        if self._source is not None and self._sequence is not None and self._sequence.batch:
            return self._derived(self._sequence, features=compiled)
        return _plain(graphs.parallel_map(self, compiled.parse))

    def _first_records(self, count: int) -> Sample:
        """Records in file order where that is known, else as the dataset gives them."""
        if not tf.executing_eagerly():
            raise ValueError("Features are only inferred eagerly. Give a dict of specs in a graph.")
        records = self if self._source is None or self._maps else self._source.stream()
        if records.element_spec.shape.rank:
            records = records.unbatch()
        found = list(records.take(count).as_numpy_iterator())
        return Sample(found, range(len(found)))


def _plain(dataset: Any) -> FusedDataset:
    """Wraps what tf.data made, so that it still has parse_example()."""
    wrapper = FusedDataset.__new__(FusedDataset)
    wrapper._set_up(None, built=dataset)
    return wrapper


def _parse_single(features: Features) -> Callable[[Any], Any]:
    if any(type(spec).__module__.startswith("tfrfast.") for spec in features.values()):
        raise TypeError(
            "Single records are parsed by TensorFlow, with specs of tf.io. Use batch() first."
        )
    return lambda record: tf.io.parse_single_example(record, features)


def everything(plan: OpenPlan) -> Sequence:
    return Sequence(Progression(0, 1, plan.record_count))


def _spec_of(sequence: Sequence | None) -> Any:
    batch = sequence and sequence.batch
    if not batch:
        return tf.TensorSpec([], tf.string)
    return tf.TensorSpec([batch.rows if batch.drop_remainder else None], tf.string)


def static_integer(value: Any) -> int | None:
    static = tf.get_static_value(value)
    if static is None or getattr(static, "shape", ()) != () or isinstance(static, bool):
        return None
    try:
        return operator.index(static)
    except TypeError:
        return None
