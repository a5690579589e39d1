"""The methods of tf.data on planned datasets, and the methods that only tfrfast has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.features import AnyFeatures, Features
from tfrfast.features.compiling import compile_features
from tfrfast.features.inference import settle
from tfrfast.features.samples import Sample
from tfrfast.order import BlockShuffle
from tfrfast.tensorflow.building import build_on_theirs, build_one_by_one
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.functions import parallel_map
from tfrfast.tensorflow.history import History, Refusal, Step, call_text
from tfrfast.tensorflow.integers import static_integer
from tfrfast.tensorflow.planned import ENDED, Planned, ending, stand_in
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.reading.grammar import LEAVES_OUT, Taken, history_of
from tfrfast.tensorflow.reading.shuffles import note_order, order_of
from tfrfast.tensorflow.recognition import features_of_transformation
from tfrfast.tensorflow.seeds import draw_seed
from tfrfast.tensorflow.sequence import SeededOrder

_ONE_BY_ONE = Refusal("it handles elements one by one", "batch() first, if batches will do")
_READ_BY_THEIRS = Refusal(
    "TensorFlow's own reader reads for it, so that it finds in each run what it has written"
)
_WRITTEN_AGAIN = Refusal(
    "it writes its files again in each run",
    "snapshot() of files on a disk, before shuffle(), and tf.data's other methods after it",
)
# Methods with a rule in the grammar. Each rule allows certain arguments.
_PLANNED = (
    "batch",
    "cache",
    "filter",
    "map",
    "padded_batch",
    "prefetch",
    "ragged_batch",
    "rebatch",
    "repeat",
    "shard",
    "skip",
    "take",
    "with_options",
)
_OTHERS = {
    "bucket_by_sequence_length": _ONE_BY_ONE,
    "concatenate": Refusal("it joins two datasets", "one TFRecordDataset of all files"),
    "enumerate": _ONE_BY_ONE,
    "flat_map": _ONE_BY_ONE,
    "group_by_window": _ONE_BY_ONE,
    "ignore_errors": Refusal("it leaves out what fails", 'on_corruption="skip"'),
    "interleave": _ONE_BY_ONE,
    "rejection_resample": _ONE_BY_ONE,
    "scan": _ONE_BY_ONE,
    "sparse_batch": Refusal("it makes sparse batches", "batch() and parse_example()"),
    "take_while": _ONE_BY_ONE,
    "unbatch": Refusal("it makes single elements"),
    "unique": _ONE_BY_ONE,
    "window": _ONE_BY_ONE,
}


class PlannedDataset(Planned):
    """A planned dataset with all methods of `tf.data.Dataset`."""

    def _blank(self) -> PlannedDataset:
        return PlannedDataset.__new__(PlannedDataset)

    def shuffle(
        self,
        buffer_size: Any = None,
        seed: Any = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
        *,
        order: BlockShuffle | None = None,
    ) -> Any:
        """Shuffles all records exactly, for any `buffer_size`.

        If the file names are unknown, or after calls that leave the plan, tf.data shuffles through
        a buffer, and one warning says so. `order=tfr.BlockShuffle(...)`, seeded by `seed`, suits
        storage where seeks are slow.
        """
        _check_order(order)
        whole = buffer_size is None

        def make(dataset: Any) -> Any:
            size = 1 if whole else buffer_size
            reshuffles = reshuffle_each_iteration
            made = tf.data.Dataset.shuffle(dataset, size, seed, reshuffles, name=name)
            _note(made, seed, order)
            return made

        text = call_text("shuffle", *([] if whole else [buffer_size]), seed=seed)
        shuffled = self._called(make, text)
        if shuffled._pipeline is not None:
            return shuffled
        if order is not None:
            raise ValueError(
                "shuffle(order=...) needs file names that are known when the dataset is made, and "
                "only take, skip, shard and map before it."
            )
        if whole:
            raise TypeError("shuffle() of this dataset needs a buffer_size.")
        return shuffled

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Any:
        shuffle = self._pipeline and self._pipeline.shuffle
        if shuffle and not shuffle.seeded and static_integer(num_shards) != 1:
            raise ValueError(
                "shard() after a shuffle() without a seed: every process draws an order of its "
                "own, so that their shards would overlap and miss records. Give shuffle() a seed, "
                "the same everywhere, or call shard() first."
            )
        return self._called(
            lambda dataset: tf.data.Dataset.shard(dataset, num_shards, index, name=name)
        )

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        # The place where tf.data's batches begin decides which elements are lost with a bad one.
        single = _one_by_one(self)
        before = self._saved_whole() if single is None else single
        made = tf.data.Dataset.ignore_errors(before, log_warning, name=name)
        why = ENDED if before._pipeline is None else _OTHERS["ignore_errors"]
        step = ending(why, call_text("ignore_errors", log_warning or None))
        return self._next(None, before._history.then(step), built=made)

    def snapshot(self, *arguments: Any, **options: Any) -> Any:
        theirs = _on_theirs(self)
        before = self._saved_whole() if theirs is None else theirs
        made = tf.data.Dataset.snapshot(before, *arguments, **options)
        why = _WRITTEN_AGAIN if theirs is None else _READ_BY_THEIRS
        return self._then(why, made, call_text("snapshot", *arguments, **options))

    def apply(self, transformation_func: Any) -> Any:
        text = call_text("apply", transformation_func)
        features = features_of_transformation(transformation_func)
        if features is not None and self._pipeline is not None:
            made = self._pipeline.parsed(features)
            call = transformation_func(stand_in(self.element_spec, self._options_attr))
            if not isinstance(made, Refusal):
                why = "as parse_example(): records are decoded where they are read"
                return self._with(call, Taken(made, why=why), text)
        applied = super().apply(transformation_func)
        if isinstance(applied, PlannedDataset):
            return applied
        calls = nodes.calls_on(self, applied)
        if self._pipeline is not None and calls and all(map(nodes.can_be_moved, calls)):
            return self._with_each(calls, text if len(calls) == 1 else "")
        if type(applied).__iter__ is not tf.data.Dataset.__iter__:
            return applied  # the result is not only a dataset
        ended = ENDED if self._pipeline is None else Refusal("it is TensorFlow's")
        return self._then(ended, applied, text)

    def parse_example(self, features: AnyFeatures) -> Any:
        """Parses tf.train.Examples into a dict of tensors, like `tf.io.parse_example`.

        `features` are specs of tfrfast or of tf.io. In eager execution, a list of names, or "infer"
        for all, infers the specs here, once, from the first records. After batch(), records are
        decoded during reading and never become strings. TensorFlow parses single records, slowly,
        and takes only specs of tf.io.
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
        compiled, text = TensorFeatures(compile_features(features)), "parse_example({...})"
        made = ENDED if self._pipeline is None else self._pipeline.parsed(compiled)
        if isinstance(made, Refusal):

            def again(dataset: Any) -> Any:
                return parallel_map(dataset, compiled.parse)

            return self._then(made, again(self), text, again)
        step = Step(text, fused=True)
        return self._next(made, history_of(made, (*self._history.steps, step)))

    def _first_records(self, count: int) -> Sample:
        """Returns records in file order if known, otherwise in the dataset's order."""
        if not tf.executing_eagerly():
            raise ValueError("Features are only inferred eagerly. Give a dict of specs in a graph.")
        pipeline = self._pipeline
        records = self if pipeline is None or pipeline.elementwise else pipeline.source.stream()
        if records.element_spec.shape.rank:
            records = records.unbatch()
        found = list(records.take(count).as_numpy_iterator())
        return Sample(found, range(len(found)))


def made_already(built: Any, history: History) -> PlannedDataset:
    """Wraps a finished dataset of tfrfast. Calls on it are not planned."""
    dataset = PlannedDataset.__new__(PlannedDataset)
    dataset._set_up(None, history, built=built)
    return dataset


def _planned(method: str) -> Callable[..., Any]:
    theirs = getattr(tf.data.Dataset, method)

    @functools.wraps(theirs)
    def call(self: PlannedDataset, *arguments: Any, **options: Any) -> Any:
        return self._called(lambda dataset: theirs(dataset, *arguments, **options))

    return call


def _other(method: str, why: Refusal) -> Callable[..., Any]:
    """Returns a method that is never planned."""
    theirs = getattr(tf.data.Dataset, method)

    @functools.wraps(theirs)
    def call(self: PlannedDataset, *arguments: Any, **options: Any) -> Any:
        def again(dataset: Any) -> Any:
            return theirs(dataset, *arguments, **options)

        made, text = again(self._saved_whole()), call_text(method, *arguments, **options)
        given = (*arguments, *options.values())
        can_repeat = not any(map(_is_called_or_read, given))
        return self._then(
            ENDED if self._pipeline is None else why, made, text, again if can_repeat else None
        )

    return call


for _method in _PLANNED:
    if _method not in vars(PlannedDataset) and hasattr(tf.data.Dataset, _method):
        setattr(PlannedDataset, _method, _planned(_method))
for _method, _why in _OTHERS.items():
    if _method not in vars(PlannedDataset) and hasattr(tf.data.Dataset, _method):
        setattr(PlannedDataset, _method, _other(_method, _why))


def _is_called_or_read(argument: Any) -> bool:
    """True for a function, which would be called again, and for another dataset."""
    return callable(argument) or isinstance(argument, tf.data.Dataset)


def _check_order(order: BlockShuffle | None) -> None:
    if order is None:
        return
    if not isinstance(order, BlockShuffle):
        raise TypeError(f"shuffle(order=...) takes a tfr.BlockShuffle, not {order!r}.")
    if order.seed or order.indices is not None:
        raise ValueError(
            "shuffle(order=...) takes a BlockShuffle without seed and indices. Give the seed to "
            "shuffle(seed=...), and choose records by take(), skip() or shard() before it."
        )


def _note(shuffle: Any, seed: Any, order: BlockShuffle | None) -> None:
    """Notes the arguments that TensorFlow's cannot hold: 64 bits of a seed, and blocks."""
    known = static_integer(seed)
    if seed is not None and known is None:
        return
    found = order_of(shuffle) if seed is None else None
    drawn = draw_seed(known) if found is None else found.seed
    reshuffles = nodes.attribute(shuffle, "reshuffle_each_iteration") is not False
    note_order(shuffle, SeededOrder(drawn, reshuffles, order, seed is not None))


def _one_by_one(dataset: Planned) -> Planned | None:
    """Returns the same elements, batched one by one; None if no batches are made of lifted maps."""
    pipeline, built = dataset._pipeline, None
    if pipeline is not None:
        built = None if pipeline.lifted is None else build_one_by_one(pipeline)
    elif dataset._again is not None:
        before = _one_by_one(dataset._before)
        built = None if before is None else dataset._again(before)
    if built is None:
        return None
    return dataset._next(None, dataset._history.one_by_one(LEAVES_OUT), built=built)


def _on_theirs(dataset: Planned) -> Any | None:
    """Returns the elements from TensorFlow's own reader, if build_on_theirs() supports them."""
    if dataset._pipeline is not None:
        return build_on_theirs(dataset._pipeline)
    if dataset._history.source == "tf.data.TFRecordDataset":
        return dataset
    if dataset._again is None:
        return None
    theirs = _on_theirs(dataset._before)
    return None if theirs is None else dataset._again(theirs)


def _parse_single(features: Features) -> Callable[[Any], Any]:
    if any(type(spec).__module__.startswith("tfrfast.") for spec in features.values()):
        raise TypeError(
            "Single records are parsed by TensorFlow, with specs of tf.io. Use batch() first."
        )

    def parse_single_example(record: Any) -> Any:
        return tf.io.parse_single_example(record, features)

    return parse_single_example
