"""Datasets whose calls add to what is read at once, for as long as they fit in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import tensorflow as tf

from tfrfast.order import BlockShuffle
from tfrfast.tensorflow.building import build, build_one_by_one
from tfrfast.tensorflow.element_calls import ElementCall
from tfrfast.tensorflow.history import OF_EACH, History, Refusal, call_text
from tfrfast.tensorflow.integers import static_integer, static_integers
from tfrfast.tensorflow.parsing import ParsingDataset
from tfrfast.tensorflow.pipeline import Pipeline
from tfrfast.tensorflow.recognition import (
    features_of_map,
    features_of_transformation,
    parses_examples,
)
from tfrfast.tensorflow.remembering import ENDED
from tfrfast.tensorflow.sequence import Progression
from tfrfast.tensorflow.slow_paths import warn_once

_LEAVES_OUT = "ignore_errors() after it leaves out single elements"


class FusedDataset(ParsingDataset):
    """A dataset whose methods add to the pipeline for as long as they fit its grammar
    (docs/tensorflow.md). The first call that does not fit is plain tf.data on what has been built
    so far.
    """

    def _new(self) -> FusedDataset:
        return FusedDataset.__new__(FusedDataset)

    def _narrowed(
        self, method: Literal["take", "skip", "shard"], name: str | None, *arguments: Any
    ) -> Any:
        pipeline = self._pipeline
        fused = ENDED if pipeline is None else pipeline.narrowed(method, *arguments)
        length, numbers = self._length, static_integers(arguments)
        if length is not None and numbers is not None and method != "shard":
            length = getattr(Progression(0, 1, length), method)(*numbers).count
        else:
            length = None

        def plain(dataset: Any) -> Any:
            return getattr(tf.data.Dataset, method)(dataset, *arguments, name=name)

        return self._fused_or(plain, fused, call_text(method, *arguments), length=length)

    def take(self, count: Any, name: str | None = None) -> Any:
        return self._narrowed("take", name, count)

    def skip(self, count: Any, name: str | None = None) -> Any:
        return self._narrowed("skip", name, count)

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Any:
        shuffle = self._pipeline and self._pipeline.shuffle
        if shuffle and not shuffle.seeded:
            raise ValueError(
                "shard() after a shuffle() without a seed: every process draws an order of its "
                "own, so that their shards would overlap and miss records. Give shuffle() a seed, "
                "the same everywhere, or call shard() first."
            )
        return self._narrowed("shard", name, num_shards, index)

    def repeat(self, count: Any = None, name: str | None = None) -> Any:
        call = call_text("repeat", *([] if count is None else [count]))
        fused = ENDED if self._pipeline is None else self._pipeline.repeated(count)
        number, length = None if count is None else static_integer(count), self._length
        if length is not None:
            length = None if number is None or number < 0 else length * number

        def plain(dataset: Any) -> Any:
            return tf.data.Dataset.repeat(dataset, count, name=name)

        return self._fused_or(plain, fused, call, length=length)

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

        If the file names are not known, or after calls that leave the plan, it is tf.data's shuffle
        through a buffer; the first time, a warning says so. `order=tfr.BlockShuffle(...)` is for
        storage where seeks are slow.
        """
        call = call_text("shuffle", *([] if buffer_size is None else [buffer_size]), seed=seed)
        pipeline = self._pipeline
        fused: Pipeline | Refusal = ENDED
        if not _is_buffer(buffer_size):  # TensorFlow says so
            fused = Refusal("it has no buffer")
        elif pipeline is not None:
            fused = pipeline.shuffled(seed, reshuffle_each_iteration, order)
        if isinstance(fused, Pipeline):
            why = "an exact order of all records that are left"
            if pipeline is not None and pipeline.cached:
                why += "; cache() is left out, as the system keeps the files in memory"
            return self._fused(fused, call, why)
        if order is not None:
            raise ValueError(
                "shuffle(order=...) needs file names that are known when the dataset is made, and "
                "only take, skip, shard and map before it."
            )
        if buffer_size is None:
            raise TypeError("shuffle() of this dataset needs a buffer_size.")
        shuffled = tf.data.Dataset.shuffle(
            self._saved_whole(), buffer_size, seed, reshuffle_each_iteration, name=name
        )
        if not self._history.is_ordered:
            _warn_of_a_buffer(call, self._history.why_ended or fused)
        return self._plain(shuffled, call, fused)

    def batch(
        self,
        batch_size: Any,
        drop_remainder: Any = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Any:
        call = _batch_text("batch", batch_size, drop_remainder)

        def plain(dataset: Any) -> Any:
            return tf.data.Dataset.batch(
                dataset, batch_size, drop_remainder, num_parallel_calls, deterministic, name=name
            )

        return self._batched(batch_size, drop_remainder, plain, call)

    def _batched(
        self, rows: Any, drop_remainder: Any, plain: Callable[[Any], Any], call: str
    ) -> Any:
        pipeline, drop = self._pipeline, tf.get_static_value(drop_remainder)
        length = _batch_count(self._length, rows, drop)
        if pipeline is None:
            return self._plain(plain(self), call, ENDED, length, plain)
        fused = pipeline.batched(rows, drop)
        if isinstance(fused, Refusal) and pipeline.parses_needlessly and pipeline.lifts:
            warn_once("parse", f"Records are parsed one by one before {call}", fused)
        return self._fused_or(plain, fused, call, length=length)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: Any = False,
        name: str | None = None,
    ) -> Any:
        call = _batch_text("padded_batch", batch_size, drop_remainder)

        def padded(dataset: Any) -> Any:
            return tf.data.Dataset.padded_batch(
                dataset, batch_size, padded_shapes, padding_values, drop_remainder, name=name
            )

        if padding_values is None and _is_no_padding(padded_shapes) and self._has_records:
            return self._batched(batch_size, drop_remainder, padded, call)
        if self._pipeline is not None and self._pipeline.parses_needlessly:
            refusal = self._pipeline.batched(batch_size, False)
            if isinstance(refusal, Refusal):
                warn_once("parse", f"Records are parsed one by one before {call}", refusal)
        ended = ENDED if self._pipeline is None else Refusal("it pads single elements")
        return self._plain(padded(self), call, ended, again=padded)

    @property
    def _has_records(self) -> bool:
        return self.element_spec == tf.TensorSpec([], tf.string)

    def rebatch(self, batch_size: Any, drop_remainder: Any = False, name: str | None = None) -> Any:
        call = _batch_text("rebatch", batch_size, drop_remainder)
        drop = tf.get_static_value(drop_remainder)
        fused = ENDED if self._pipeline is None else self._pipeline.rebatched(batch_size, drop)

        def plain(dataset: Any) -> Any:
            whole = dataset._saved_whole() if dataset is self else dataset
            return tf.data.Dataset.rebatch(whole, batch_size, drop_remainder, name=name)

        return self._fused_or(plain, fused, call)

    def cache(self, filename: Any = "", name: str | None = None) -> Any:
        in_memory = isinstance(filename, str) and not filename
        plain, call = super().cache, call_text("cache", *([] if in_memory else [filename]))
        fused = ENDED if self._pipeline is None else self._pipeline.in_memory(filename)
        why = "in memory, until records are read in another order or in batches"
        return self._kept_or_plain(
            fused, call, why, lambda: plain(filename, name=name), self._length
        )

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Any:
        def plain(dataset: Any) -> Any:
            return tf.data.Dataset.prefetch(dataset, buffer_size, name=name)

        call, pipeline = call_text("prefetch", buffer_size), self._pipeline
        fused = ENDED if pipeline is None else pipeline.with_prefetch(buffer_size)
        if isinstance(fused, Refusal):
            return self._plain(plain(self), call, fused, self._length, plain)
        why = "after what is planned"
        return self._kept(fused, call, why, lambda: plain(self), self._known_spec)

    def with_options(self, options: Any, name: str | None = None) -> Any:
        call, plain, pipeline = "with_options(...)", super().with_options, self._pipeline
        if pipeline is None:
            return self._plain(plain(options, name=name), call, ENDED, self._length)
        options = tf.data.Options().merge(options)  # the user may go on to change them
        fused = pipeline.with_options(options)

        def make() -> Any:
            cuts_otherwise = options.experimental_symbolic_checkpoint is not None
            return build(fused) if cuts_otherwise else plain(options, name=name)

        return self._kept(fused, call, "for the whole pipeline", make, self._known_spec)

    def map(self, map_func: Any, *arguments: Any, **options: Any) -> Any:
        mapping, call = ElementCall("map", map_func, arguments, options), call_text("map", map_func)
        pipeline = self._pipeline
        if pipeline is None:
            return self._plain(mapping(self), call, ENDED, self._length)
        mapped = mapping.traced(self)
        if pipeline.batch is not None:
            parsed = self._parsed_as(mapped, call, features_of_map(mapped))
            return parsed or self._plain(mapping(self), call, _why_not_parsed(mapped), self._length)
        # One element in, one out, so what reorders or leaves out elements can go first.
        fused = pipeline.with_map(mapping, mapped)
        return self._kept_or_plain(
            fused, call, OF_EACH, lambda: mapping(self), self._length, mapped.element_spec
        )

    def apply(self, transformation_func: Any) -> Any:
        applied = super().apply(transformation_func)
        call = call_text("apply", transformation_func)
        features = features_of_transformation(transformation_func)
        parsed = self._parsed_as(applied, call, features)
        if parsed is not None or isinstance(applied, FusedDataset):
            return applied if parsed is None else parsed
        if type(applied).__iter__ is not tf.data.Dataset.__iter__:
            return applied  # it is more than a dataset
        ended = ENDED if self._pipeline is None else Refusal("it is TensorFlow's")
        return self._plain(applied, call, ended)

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        pipeline = self._pipeline
        if pipeline is None or pipeline.lifted is None:
            return super().ignore_errors(log_warning, name=name)
        # Which elements are lost with a bad one depends on where tf.data's batches begin after it.
        one_by_one = self._new()
        history = self._history.one_by_one(_LEAVES_OUT)
        one_by_one._set_up(None, history, make=lambda: build_one_by_one(pipeline))
        return one_by_one.ignore_errors(log_warning, name=name)

    def filter(self, predicate: Any, name: str | None = None) -> Any:
        filtering = ElementCall("filter", predicate, (), {"name": name})
        call = call_text("filter", predicate)
        if self._pipeline is None:
            return self._plain(filtering(self), call, ENDED)
        filtering.traced(self)
        # It leaves out the same elements in any order.
        fused = self._pipeline.with_filter(filtering)
        return self._kept_or_plain(fused, call, OF_EACH, lambda: filtering(self))

    def _kept_or_plain(
        self,
        fused: Pipeline | Refusal,
        call: str,
        why: str,
        make: Callable[[], Any],
        length: int | None = None,
        element_spec: Any = None,
    ) -> Any:
        """`element_spec` is given where the call changes it."""
        if isinstance(fused, Refusal):
            return self._plain(make(), call, fused, length)
        spec = self._known_spec if element_spec is None else element_spec
        return self._kept(fused, call, why, make, spec)


def remembered(built: Any, history: History) -> FusedDataset:
    """A dataset of ours that is made already. Nothing is planned of the calls on it."""
    dataset = FusedDataset.__new__(FusedDataset)
    dataset._set_up(None, history, built=built)
    return dataset


def _warn_of_a_buffer(call: str, refusal: Refusal) -> None:
    warn_once("shuffle", f"{call} shuffles through a buffer", refusal)


def _is_buffer(size: Any) -> bool:
    number = None if size is None else static_integer(size)
    return number is None or number > 0 or number == tf.data.UNKNOWN_CARDINALITY


def _why_not_parsed(mapped: Any) -> Refusal:
    if parses_examples(mapped):
        instead = ".parse_example(features) first, and then map() for the rest"
        return Refusal("it does more than parse batches", instead)
    return Refusal("it is given batches")


def _batch_count(length: int | None, rows: Any, drop_remainder: Any) -> int | None:
    number = static_integer(rows)
    if length is None or number is None or number < 1 or drop_remainder is None:
        return None
    return length // number if drop_remainder else -(-length // number)


def _batch_text(method: str, rows: Any, drop_remainder: Any) -> str:
    drops = tf.get_static_value(drop_remainder)
    return call_text(method, rows, drop_remainder=True if drops else None)


def _is_no_padding(padded_shapes: Any) -> bool:
    if isinstance(padded_shapes, tf.TensorShape):
        return bool(padded_shapes.rank == 0)
    return padded_shapes is None or (isinstance(padded_shapes, list) and not padded_shapes)
