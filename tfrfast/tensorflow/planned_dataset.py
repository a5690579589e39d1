"""Datasets whose calls add to what is read at once, for as long as they fit its grammar."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from tfrfast.features import AnyFeatures, Features
from tfrfast.features.compiling import compile_features
from tfrfast.features.inference import settle
from tfrfast.features.samples import Sample
from tfrfast.order import BlockShuffle
from tfrfast.tensorflow.building import build, build_on_theirs, build_one_by_one
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.explaining import Explanation, explain
from tfrfast.tensorflow.functions import map_as_traced, parallel_map
from tfrfast.tensorflow.history import History, Refusal, Step, call_text
from tfrfast.tensorflow.integers import static_integer
from tfrfast.tensorflow.late_dataset import LateDataset
from tfrfast.tensorflow.pipeline import Pipeline
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.reading.calls import call_of
from tfrfast.tensorflow.reading.grammar import Taken, history_of, taken
from tfrfast.tensorflow.reading.shuffles import note_order, order_of
from tfrfast.tensorflow.recognition import features_of_transformation
from tfrfast.tensorflow.saving import bears
from tfrfast.tensorflow.seeds import draw_seed
from tfrfast.tensorflow.sequence import Shuffle
from tfrfast.tensorflow.slow_paths import warn_once
from tfrfast.tensorflow.tracing import traced

_ENDED = Refusal("it follows a call that is not in the plan")
_MAP_AND_BATCH = "map_and_batch_with_legacy_function.<locals>", "map_and_batch.<locals>"
_LEAVES_OUT = "ignore_errors() after it leaves out single elements"
_ONE_BY_ONE = Refusal("it handles elements one by one", "batch() first, if batches will do")
_READ_BY_THEIRS = Refusal(
    "TensorFlow's own reader reads for it, so that it finds in each run what it has written"
)
_WRITTEN_AGAIN = Refusal(
    "it writes its files again in each run",
    "snapshot() of files on a disk, before shuffle(), and tf.data's other methods after it",
)
# Methods that the grammar knows, as far as their arguments allow.
_PLANNED = (
    "batch",
    "cache",
    "filter",
    "map",
    "padded_batch",
    "prefetch",
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
    "ragged_batch": Refusal("it makes ragged batches", "batch() and parse_example()"),
    "rejection_resample": _ONE_BY_ONE,
    "scan": _ONE_BY_ONE,
    "sparse_batch": Refusal("it makes sparse batches", "batch() and parse_example()"),
    "take_while": _ONE_BY_ONE,
    "unbatch": Refusal("it makes single elements"),
    "unique": _ONE_BY_ONE,
    "window": _ONE_BY_ONE,
}


def _stand_in(spec: Any, options: Any = None, length: int = 0) -> Any:
    """Takes a dataset's place while TensorFlow makes a call on it. Nobody iterates it.

    To build the records takes longer, and often only what the call says is needed.
    """
    made = map_as_traced(tf.data.Dataset.range(length), _nothing(), spec)
    if options is not None:
        made._options_attr = options
    return made


@functools.cache
def _nothing() -> Any:
    """A function that nobody calls."""
    with tf.init_scope():
        return traced(lambda number: number, (tf.TensorSpec([], tf.int64),), {})


class PlannedDataset(LateDataset):
    """What a plan reads, with the calls that tf.data makes after it.

    TensorFlow makes each call, on a stand-in. The reader looks at what came of that: the grammar
    (`reading/grammar.py`) takes the call into the pipeline, or tf.data makes it after all else.
    """

    _pipeline: Pipeline | None  # None: plain tf.data from here on
    # Makes the last call on any dataset; and the dataset before it, if it is made after that.
    _again: Callable[[Any], Any] | None = None
    _before: Any = None

    def _set_up(
        self,
        pipeline: Pipeline | None,
        history: History,
        *,
        element_spec: Any = None,
        built: Any = None,
        again: Callable[[Any], Any] | None = None,
        before: Any = None,
    ) -> None:
        """`built` is the dataset, or what `again` makes of `before`; else the pipeline's."""
        self._pipeline, self._history = pipeline, history
        self._known_spec = element_spec
        self._again, self._before = again, before
        if built is not None:
            self._built = built
        elif not tf.executing_eagerly():
            self._built = self._build()  # here and now: a graph's tensors belong to it
        super().__init__(None)
        if pipeline is not None and pipeline.options is not None:
            self._options_attr = pipeline.options

    @functools.cached_property
    def _built(self) -> Any:
        # Built when it is used: a chain of calls costs one graph, not one for each link.
        with tf.init_scope():
            return self._build()

    def _build(self) -> Any:
        if self._again is not None:
            return self._again(self._before)
        assert self._pipeline is not None
        return build(self._pipeline)

    def _inputs(self) -> list[Any]:
        return [self._built] if self._pipeline is None else []

    @property
    def element_spec(self) -> Any:
        if self._known_spec is None:
            self._known_spec = self._built.element_spec
        return self._known_spec

    def cardinality(self) -> Any:
        """How many elements there are, also where only the indexes know."""
        # It is not in the graph, which is the same with indexes and without.
        known = self._length
        return super().cardinality() if known is None else tf.constant(known, tf.int64)

    @property
    def _length(self) -> int | None:
        """None if it is not known here, or there is no end."""
        if self._pipeline is not None:
            return self._pipeline.length
        before = self._before
        if self._again is None or not tf.executing_eagerly() or before._length is None:
            return None
        stand_in = _stand_in(before.element_spec, length=before._length)
        length = int(self._again(stand_in).cardinality())
        return length if length >= 0 else None

    def __repr__(self) -> str:
        name = self._history.source.partition(" ")[0].strip(":")
        return f"<{name}, {self._history.state}, element_spec={self.element_spec}>"

    def explain(self) -> Explanation:
        """What becomes of each call; see `tfr.explain`."""
        return explain(self)

    def _trace_variant_creation(self) -> Any:
        """What a SavedModel holds: a form of the dataset without the ops that none can hold."""
        with context.eager_mode():  # a SavedModel's graph is being made
            whole = self._saved_whole()
            if whole is not self:
                return whole._built._trace_variant_creation()
        return super()._trace_variant_creation()

    def _saved_whole(self) -> PlannedDataset:
        """The dataset in a form of which checkpoints can hold all that is read ahead."""
        pipeline = self._pipeline
        if pipeline is None or pipeline.lifted is None or not pipeline.lifted.raises:
            return self
        options = tf.data.Options()
        options.experimental_symbolic_checkpoint = False
        whole = pipeline.with_options(options)
        return _dataset(whole, self._history, element_spec=self.element_spec)

    def _called(self, make: Callable[[Any], Any], text: str = "") -> Any:
        """The dataset with a call on it, which `make` makes on any dataset."""
        if self._pipeline is None:
            made = make(self)
            _warn_of(self, made, _ENDED, text)
            return self._then(_ENDED, made, text, again=_remade(made, self))
        stand_in = _stand_in(self.element_spec, self._options_attr)
        call = make(stand_in)
        if nodes.inputs(call) != [stand_in]:
            return self._then(Refusal("it is TensorFlow's"), make(self._saved_whole()), text)
        made = taken(self._pipeline, call)
        if (isinstance(made, Refusal) or not made.fused) and not nodes.can_be_moved(call):
            why = made if isinstance(made, Refusal) else Refusal("TensorFlow does not show it")
            _warn_of(self, call, why, text)
            return self._then(why, make(self._saved_whole()), text, again=make)
        return self._with(call, made, text or call_of(call))

    def _with(self, call: Any, made: Taken | Refusal, text: str) -> Any:
        if isinstance(made, Refusal):
            _warn_of(self, call, made, text)
            before = self if bears(call) else self._saved_whole()
            return _dataset(
                None,
                self._history.then(_ending(made, text)),
                element_spec=call.element_spec,
                again=_mover(call),
                before=before,
            )
        step = Step(text, made.fused, made.why)
        history = history_of(made.pipeline, (*self._history.steps, step))
        is_after = not made.fused and not _cuts_otherwise(self._pipeline, made.pipeline)
        return _dataset(
            made.pipeline,
            history,
            element_spec=call.element_spec,
            again=_mover(call) if is_after else None,
            before=self if is_after else None,
        )

    def _then(
        self, why: Refusal, built: Any, text: str, again: Callable[[Any], Any] | None = None
    ) -> Any:
        """What tf.data made of the dataset, as `again` makes it of any."""
        step = _ending(why, text or call_of(built))
        before = None if again is None else self
        return _dataset(None, self._history.then(step), built=built, again=again, before=before)

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
        storage where seeks are slow; `seed` seeds it.
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
        if shuffle and not shuffle.seeded:
            raise ValueError(
                "shard() after a shuffle() without a seed: every process draws an order of its "
                "own, so that their shards would overlap and miss records. Give shuffle() a seed, "
                "the same everywhere, or call shard() first."
            )
        return self._called(
            lambda dataset: tf.data.Dataset.shard(dataset, num_shards, index, name=name)
        )

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        before, history, pipeline = self._saved_whole(), self._history, self._pipeline
        if pipeline is not None and pipeline.lifted is not None:
            # Which elements are lost with a bad one depends on where tf.data's batches begin then.
            history = history.one_by_one(_LEAVES_OUT)
            before = _dataset(None, history, built=build_one_by_one(pipeline))
        made = tf.data.Dataset.ignore_errors(before, log_warning, name=name)
        why = _ENDED if before._pipeline is None else _OTHERS["ignore_errors"]
        step = _ending(why, call_text("ignore_errors", log_warning or None))
        return _dataset(None, history.then(step), built=made)

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
            call = transformation_func(_stand_in(self.element_spec, self._options_attr))
            if not isinstance(made, Refusal):
                why = "as parse_example(): records are decoded where they are read"
                return self._with(call, Taken(made, why=why), text)
        if getattr(transformation_func, "__qualname__", "").startswith(_MAP_AND_BATCH):
            return self._called(transformation_func, text)
        applied = super().apply(transformation_func)
        if isinstance(applied, PlannedDataset):
            return applied
        if type(applied).__iter__ is not tf.data.Dataset.__iter__:
            return applied  # it is more than a dataset
        ended = _ENDED if self._pipeline is None else Refusal("it is TensorFlow's")
        return self._then(ended, applied, text)

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
        compiled, text = TensorFeatures(compile_features(features)), "parse_example({...})"
        made = _ENDED if self._pipeline is None else self._pipeline.parsed(compiled)
        if isinstance(made, Refusal):

            def again(dataset: Any) -> Any:
                return parallel_map(dataset, compiled.parse)

            return self._then(made, again(self), text, again)
        step = Step(text, fused=True)
        return _dataset(made, history_of(made, (*self._history.steps, step)))

    def _first_records(self, count: int) -> Sample:
        """Records in file order where that is known, else as the dataset gives them."""
        if not tf.executing_eagerly():
            raise ValueError("Features are only inferred eagerly. Give a dict of specs in a graph.")
        pipeline = self._pipeline
        records = self if pipeline is None or pipeline.elementwise else pipeline.source.stream()
        if records.element_spec.shape.rank:
            records = records.unbatch()
        found = list(records.take(count).as_numpy_iterator())
        return Sample(found, range(len(found)))


def _dataset(pipeline: Pipeline | None, history: History, **options: Any) -> PlannedDataset:
    dataset = PlannedDataset.__new__(PlannedDataset)
    dataset._set_up(pipeline, history, **options)
    return dataset


def made_already(built: Any, history: History) -> PlannedDataset:
    """A dataset of ours that tf.data has made. Nothing is planned of the calls on it."""
    return _dataset(None, history, built=built)


def _planned(method: str) -> Callable[..., Any]:
    theirs = getattr(tf.data.Dataset, method)

    @functools.wraps(theirs)
    def call(self: PlannedDataset, *arguments: Any, **options: Any) -> Any:
        return self._called(lambda dataset: theirs(dataset, *arguments, **options))

    return call


def _other(method: str, why: Refusal) -> Callable[..., Any]:
    """A method of which nothing can be planned."""
    theirs = getattr(tf.data.Dataset, method)

    @functools.wraps(theirs)
    def call(self: PlannedDataset, *arguments: Any, **options: Any) -> Any:
        def again(dataset: Any) -> Any:
            return theirs(dataset, *arguments, **options)

        made, text = again(self._saved_whole()), call_text(method, *arguments, **options)
        given = (*arguments, *options.values())
        can_repeat = not any(map(_is_called_or_read, given))
        return self._then(
            _ENDED if self._pipeline is None else why, made, text, again if can_repeat else None
        )

    return call


for _method in _PLANNED:
    if _method not in vars(PlannedDataset) and hasattr(tf.data.Dataset, _method):
        setattr(PlannedDataset, _method, _planned(_method))
for _method, _why in _OTHERS.items():
    if _method not in vars(PlannedDataset) and hasattr(tf.data.Dataset, _method):
        setattr(PlannedDataset, _method, _other(_method, _why))


def _is_called_or_read(argument: Any) -> bool:
    """Whether it is a function, which would be called again, or another dataset."""
    return callable(argument) or isinstance(argument, tf.data.Dataset)


def _mover(call: Any) -> Callable[[Any], Any]:
    return lambda dataset: nodes.moved(call, [dataset])


def _remade(made: Any, dataset: Any) -> Callable[[Any], Any] | None:
    """What makes a call of tf.data on other datasets, without the user's functions."""
    one_input = nodes.inputs(made) == [dataset]
    return _mover(made) if one_input and nodes.can_be_moved(made) else None


def _ending(why: Refusal, text: str) -> Step:
    because, instead = ("", "") if why is _ENDED else why
    return Step(text, fused=False, why=because, instead=instead, ends_plan=True)


def _cuts_otherwise(before: Pipeline | None, after: Pipeline) -> bool:
    """Whether options that were added change how records are read."""
    was = None if before is None else before.options
    asked = None if was is None else was.experimental_symbolic_checkpoint
    return after.options is not None and after.options.experimental_symbolic_checkpoint != asked


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
    """Notes what TensorFlow's own arguments cannot say: 64 bits of a seed, and blocks."""
    known = static_integer(seed)
    if seed is not None and known is None:
        return
    found = order_of(shuffle) if seed is None else None
    drawn = draw_seed(known) if found is None else found.seed
    reshuffles = nodes.attribute(shuffle, "reshuffle_each_iteration") is not False
    note_order(shuffle, Shuffle(drawn, reshuffles, order, seed is not None))


def _warn_of(dataset: PlannedDataset, call: Any, refusal: Refusal, text: str) -> None:
    """Warns of what is slower or mixes less than it could."""
    pipeline, kind = dataset._pipeline, nodes.kind(call)
    if kind == "_ShuffleDataset" and not dataset._history.is_ordered:
        why = dataset._history.why_ended or refusal
        warn_once("shuffle", f"{text} shuffles through a buffer", why)
    batches = kind.endswith("BatchDataset") and kind != "_RebatchDataset"
    if batches and pipeline is not None and pipeline.parses_needlessly and pipeline.lifts:
        warn_once("parse", f"Records are parsed one by one before {text}", refusal)


def _on_theirs(dataset: PlannedDataset) -> Any | None:
    """The same elements from TensorFlow's own reader, if build_on_theirs() can give them."""
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
