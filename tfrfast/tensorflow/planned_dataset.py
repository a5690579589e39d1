"""A dataset of TensorFlow's that is planned when it is first used.

TensorFlow makes each call on the plain dataset, which holds the user's functions as traced. What
runs is compiled from the last one.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import tensorflow as tf

from tfrfast.features import AnyFeatures, Features
from tfrfast.features.compiling import compile_features
from tfrfast.features.inference import settle
from tfrfast.features.sources import Sample
from tfrfast.messages import MessageFeature
from tfrfast.order import BlockShuffle
from tfrfast.tensorflow import internals, library
from tfrfast.tensorflow.build.file_order import stream
from tfrfast.tensorflow.columns import ParsedDataset, TensorFeatures
from tfrfast.tensorflow.compiling import Compiled, built, compiled, gainful
from tfrfast.tensorflow.explaining import Explanation, explain
from tfrfast.tensorflow.measuring import MeasuredIterator
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.chain import Chain, Tree, Unread, read
from tfrfast.tensorflow.read.nodes import static_integer
from tfrfast.tensorflow.read.shuffles import draw_seed, note_order, order_of
from tfrfast.tensorflow.read.sources import AskedRecords
from tfrfast.tensorflow.saving import gains_by_rewriting, saves_positions_unasked
from tfrfast.tensorflow.sequence import SeededOrder

SWITCH = "TFRFAST_ACCELERATE"
#: Methods that TensorFlow makes on the plain dataset.
_LATER = (
    *("batch", "cache", "concatenate", "enumerate", "filter", "flat_map", "group_by_window"),
    *("ignore_errors", "interleave", "map", "padded_batch", "prefetch", "ragged_batch", "rebatch"),
    *("repeat", "shard", "shuffle", "skip", "take", "take_while", "unbatch", "unique", "window"),
    *("bucket_by_sequence_length", "with_options"),
)
#: Methods that TensorFlow makes of the planned dataset, because their calls cannot be moved.
_AT_ONCE = ("rejection_resample", "scan", "sparse_batch")


class PlannedDataset(tf.data.Dataset):  # type: ignore[misc]
    """Stands for `_plain`, a dataset of TensorFlow's, and runs what it is compiled to."""

    #: True if records that nobody asked for by name are planned, too.
    _unasked = False

    def __init__(self, plain: Any, tree: Tree | None = None) -> None:
        self._plain, self._tree = plain, tree
        self._lock = threading.RLock()
        self._compiled: Compiled | None = None
        self._iterated: Any = None
        if tf.is_symbolic_tensor(internals.variant_of(plain)):
            self._compiled = self._compile()  # now, because a graph's tensors belong to the graph
        super().__init__(None)

    def _compile(self) -> Compiled:
        return compiled(self._tree or read(self._plain, unasked=False))

    @property
    def _work(self) -> Compiled:
        with self._lock:
            if self._compiled is None:
                with tf.init_scope():
                    self._compiled = self._compile()
            return self._compiled

    @property
    def _built(self) -> Any:
        return self._work.dataset

    @property
    def _variant_tensor(self) -> Any:
        # TensorFlow looks for a batch() in the graph, and a plan's graph has none.
        asks = internals.asks_for_batch_size(sys._getframe(1))
        return internals.variant_of(self._plain if asks else self._built)

    # DatasetV2 keeps its variant tensor here.
    @property
    def _variant_tensor_attr(self) -> Any:
        return internals.variant_of(self._built)

    @_variant_tensor_attr.setter
    def _variant_tensor_attr(self, _: None) -> None:
        pass

    def _inputs(self) -> list[Any]:
        return [self._plain]

    @property
    def element_spec(self) -> Any:
        return self._plain.element_spec

    def options(self) -> Any:
        return self._plain.options()

    def cardinality(self) -> Any:
        """Returns the number of elements, even if only the indexes know it."""
        # The number is not in the graph, which is the same with indexes and without.
        plan = self._work.plan if not self._unasked and tf.executing_eagerly() else None
        known = None if plan is None else plan.length
        return self._plain.cardinality() if known is None else tf.constant(known, tf.int64)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, element_spec={self.element_spec}>"

    def explain(self) -> Explanation:
        """Explains the treatment of each call; see `tfr.explain`."""
        return explain(self)

    def __iter__(self) -> Any:
        if not tf.executing_eagerly():
            return super().__iter__()
        _ = self._built  # which may open URLs
        return (_Interruptible if library.are_waits_ended else _Iterator)(self)

    def _apply_debug_options(self) -> Any:
        """Returns the dataset of which TensorFlow makes iterators.

        TensorFlow optimises a dataset once, so all iterators are of the same dataset, while its
        files are the same. A graph's tensors belong to the graph.
        """
        dataset = super()._apply_debug_options()
        if dataset is not self or not tf.executing_eagerly():
            return _to_iterate(dataset)
        with self._lock:
            if not self._work.is_current:
                self._compiled = self._iterated = None
            if self._iterated is None:
                self._iterated = _to_iterate(self)
            return self._iterated

    def _trace_variant_creation(self) -> Any:
        """Returns the content of a SavedModel: TensorFlow's own dataset, which every process can
        read, unless the user asked for tfrfast by name.
        """
        if self._unasked:
            return self._plain._trace_variant_creation()
        plan = self._work.plan
        if plan is None or plan.pipeline.lifted is None or not plan.pipeline.lifted.raises:
            return super()._trace_variant_creation()
        whole = replace(plan, pipeline=plan.pipeline.saved_whole())
        with internals.eager_mode():  # a SavedModel's graph is being made
            return built(whole).dataset._trace_variant_creation()

    def _called(self, theirs: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Returns the dataset after a call of TensorFlow's."""
        plain = self._to_call_on
        plain_options = {name: _plain_of(each) for name, each in options.items()}
        made = theirs(plain, *map(_plain_of, arguments), **plain_options)
        if plain is self._plain and not nodes.is_made_again(made, plain):
            made = theirs(self, *arguments, **options)
        return self._after(made)

    @property
    def _to_call_on(self) -> Any:
        """The plain dataset. In a function, only the planned one is to be captured."""
        made_here = tf.is_symbolic_tensor(internals.variant_of(self._plain))
        return self._plain if made_here or tf.executing_eagerly() else self

    def _after(self, made: Any) -> Any:
        if type(made).__iter__ is not tf.data.Dataset.__iter__:
            return made  # a dataset of ours, or more than a dataset
        if not self._unasked:
            return PlannedDataset(made)
        if not tf.executing_eagerly():
            return made
        tree = gainful(made)
        return made if isinstance(tree, Unread) else AcceleratedDataset(made, tree)

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

        def make(dataset: Any) -> Any:
            size, reshuffles = 1 if buffer_size is None else buffer_size, reshuffle_each_iteration
            made = tf.data.Dataset.shuffle(dataset, size, seed, reshuffles, name=name)
            if not self._unasked:
                _note(made, seed, order, buffer_size is None)
            return made

        return self._called(make)

    def apply(self, transformation_func: Any) -> Any:
        module = getattr(transformation_func, "__module__", None) or ""
        if module.startswith("tensorflow."):
            return self._called(transformation_func)
        return self._after(transformation_func(self))

    def snapshot(self, *arguments: Any, **options: Any) -> Any:
        # TensorFlow's fingerprints of a graph with functions that return datasets, as in tfrfast's
        # graphs, differ each time. So its own reader reads, if it reads the same.
        tree = read(self._plain, unasked=False)
        is_shuffled = any(nodes.method_of(call) == "shuffle" for call in getattr(tree, "calls", ()))
        records = getattr(tree, "records", None)
        same = isinstance(records, AskedRecords) and records.is_theirs and not is_shuffled
        before = self._plain if self._unasked or same else self
        return self._after(tf.data.Dataset.snapshot(before, *arguments, **options))

    def parse_example(self, features: AnyFeatures) -> Any:
        """Parses tf.train.Examples into a dict of tensors, like `tf.io.parse_example`.

        `features` are specs of tfrfast or of tf.io. In eager execution, a list of names, or "infer"
        for all, infers the specs here, once, from the first records. After batch(), records are
        decoded during reading and never become strings. TensorFlow parses single records, slowly,
        and takes only specs of tf.io.
        """
        rank = self._rank_of_records("parse_example")
        features = settle(features, self._first_records)
        if rank == 0:
            return self.map(_parse_single(features), tf.data.AUTOTUNE)
        compiled_features = TensorFeatures(compile_features(features))
        return self._called(lambda records: ParsedDataset(records, compiled_features))

    def parse_message(self, features: Features) -> Any:
        """Parses other protobuf messages into a dict of tensors, by fields of a `tfr.Message`.

        Call it after batch(). Records are decoded during reading and never become strings.
        """
        if self._rank_of_records("parse_message") == 0:
            raise TypeError("parse_message() parses batches of records: call batch() before it.")
        if not isinstance(features, Mapping) or not all(
            isinstance(spec, MessageFeature) for spec in features.values()
        ):
            raise TypeError(
                "parse_message() takes the dict that tfr.Message.features() returns. For specs of "
                "Examples, call parse_example()."
            )
        return self.parse_example(features)

    def _rank_of_records(self, method: str) -> int:
        """Returns 0 for single records, or the rank of batches. Raises TypeError."""
        spec = self.element_spec
        if (
            not isinstance(spec, tf.TensorSpec)
            or spec.dtype != tf.string
            or spec.shape.rank is None
        ):
            raise TypeError(f"{method}() needs serialized records, but elements are {spec}.")
        return int(spec.shape.rank)

    def _first_records(self, count: int) -> Sample:
        """Returns records in file order if known, otherwise in the dataset's order."""
        if not tf.executing_eagerly():
            raise ValueError("Features are only inferred eagerly. Give a dict of specs in a graph.")
        tree, records = read(self._plain, unasked=False), self
        if isinstance(tree, Chain) and not any(map(nodes.is_map, tree.calls)):
            source = tree.records.source if isinstance(tree.records, AskedRecords) else None
            records = self if source is None else stream(source)
        if records.element_spec.shape.rank:
            records = records.unbatch()
        found = list(records.take(count).as_numpy_iterator())
        return Sample(found, range(len(found)))


class AcceleratedDataset(PlannedDataset):
    """A finished dataset whose records nobody asked for by name."""

    _unasked = True


def _calling(method: str, at_once: bool) -> Callable[..., Any]:
    """Returns a method of TensorFlow's, whose call is planned with all other calls when the result
    is used, or is made of the planned dataset at once.
    """
    theirs = getattr(tf.data.Dataset, method)

    @functools.wraps(theirs)
    def call(self: PlannedDataset, *arguments: Any, **options: Any) -> Any:
        if at_once:
            return self._after(theirs(self, *arguments, **options))
        return self._called(theirs, *arguments, **options)

    return call


for _method in (*_LATER, *_AT_ONCE):
    if _method not in vars(PlannedDataset) and hasattr(tf.data.Dataset, _method):
        setattr(PlannedDataset, _method, _calling(_method, _method in _AT_ONCE))


class _Iterator(MeasuredIterator):
    """An iterator whose error explains why it does not fit a checkpoint of a plain dataset."""

    def __init__(self, dataset: PlannedDataset) -> None:
        super().__init__(dataset)
        self._unasked = dataset._unasked

    def _restore_from_tensors(self, restored_tensors: Any) -> Any:
        try:
            return super()._restore_from_tensors(restored_tensors)
        except tf.errors.OpError as error:
            if not self._unasked:
                raise
            raise tf.errors.FailedPreconditionError(
                None,
                None,
                "This checkpoint is not of an accelerated dataset like this one. If it was saved "
                f"without tfr.accelerate(), set {SWITCH}=0 to go on from it. TensorFlow says: "
                f"{error.message}",
            ) from None


class _Interruptible(_Iterator):
    """An iterator that raises KeyboardInterrupt if Ctrl-C ended its wait for a network.

    Python raises KeyboardInterrupt while TensorFlow makes its own exception. The two together
    become a RuntimeError.
    """

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except RuntimeError as error:
            if KeyboardInterrupt.__name__ in str(error):
                raise KeyboardInterrupt from None
            raise


def _plain_of(argument: Any) -> Any:
    return argument._plain if isinstance(argument, PlannedDataset) else argument


def _to_iterate(dataset: Any) -> Any:
    """Returns a dataset with the options of its iterations."""
    options = tf.data.Options()
    if saves_positions_unasked(dataset):
        options.experimental_symbolic_checkpoint = True
    if not gains_by_rewriting(dataset):
        options.experimental_optimization.apply_default_optimizations = False
    is_asked = options != tf.data.Options()
    return tf.data.Dataset.with_options(dataset, options) if is_asked else dataset


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


def _note(shuffle: Any, seed: Any, order: BlockShuffle | None, whole: bool) -> None:
    """Notes the arguments that TensorFlow's cannot hold: 64 bits of a seed, blocks, no buffer."""
    known = static_integer(seed)
    if seed is not None and known is None:
        return
    found = order_of(shuffle) if seed is None else None
    drawn = draw_seed(known) if found is None else found.seed
    reshuffles = nodes.attribute(shuffle, "reshuffle_each_iteration") is not False
    note_order(shuffle, SeededOrder(drawn, reshuffles, order, seed is not None, whole))


def _parse_single(features: Features) -> Callable[[Any], Any]:
    if any(type(spec).__module__.startswith("tfrfast.") for spec in features.values()):
        raise TypeError(
            "Single records are parsed by TensorFlow, with specs of tf.io. Use batch() first."
        )

    def parse_single_example(record: Any) -> Any:
        return tf.io.parse_single_example(record, features)

    return parse_single_example
