"""Datasets that functions of tfrfast make, or that call them for each element.

TensorFlow prepares these functions in less time than map()'s: they run without TensorFlow's
optimiser, with their ops in any order, and only the ops that their results need. They are given
flattened elements: body(a, b, c) for ((a, b), c).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast import _native
from tfrfast.tensorflow import internals

# The functions of so many kinds of datasets are kept.
_MAX_KEPT = 64


class MadeDataset(tf.data.Dataset):  # type: ignore[misc]
    """A dataset that an op or a function of tfrfast has made of others."""

    def __init__(self, sources: list[Any], function: Any, variant: Any, spec: Any) -> None:
        self._sources = sources
        self._function = function  # lives as long as this does
        self._spec = spec
        super().__init__(variant)

    def _inputs(self) -> list[Any]:
        return self._sources

    @property
    def element_spec(self) -> Any:
        return self._spec


def made_once(make: Callable[..., Any], values: tuple[Any, ...], *given: Any) -> Any:
    """Returns the dataset make(*values, *given). Traces `make` once in a process for equal values.

    TensorFlow takes 0.5 ms or more for each op that makes a dataset eagerly, and tracing the
    functions of these ops takes longer. `make` is a function of a module, and depends only on its
    arguments: hashable values, and given tensors and datasets.
    """
    if not tf.executing_eagerly():
        return make(*values, *given)
    with tf.device("/cpu:0"):
        return _by_a_call(make, values, given)


def made_by_a_call(make: Callable[..., Any], *given: Any) -> Any:
    """Returns the dataset make(*given), like made_once(), in a function that is being traced, too.

    There, a call takes less time than a trace of all functions of `make`.
    """
    with tf.init_scope():
        is_eager = tf.executing_eagerly()
    return _by_a_call(make, (), given) if is_eager else make(*given)


def _by_a_call(make: Callable[..., Any], values: tuple[Any, ...], given: tuple[Any, ...]) -> Any:
    specs = tuple(map(_spec_of, given))
    with tf.init_scope():
        function, spec = _traced_once(make, values, specs)
    sources = [each for each in given if isinstance(each, tf.data.Dataset)]
    (variant,) = tf.raw_ops.PartitionedCall(
        args=internals.flat_tensors(specs, given),
        Tout=[tf.variant],
        f=function,
        config_proto=_without_optimiser(),
    )
    return MadeDataset(sources, function, variant, spec)


def _spec_of(given: Any) -> Any:
    if isinstance(given, tf.data.Dataset):
        return tf.data.DatasetSpec(given.element_spec)
    return tf.TensorSpec(given.shape, given.dtype)


@functools.lru_cache(_MAX_KEPT)
def _traced_once(
    make: Callable[..., Any], values: tuple[Any, ...], specs: tuple[Any, ...]
) -> tuple[Any, Any]:
    """Returns the function, and the spec of the dataset's elements."""
    spec = None

    def run(*given: Any) -> Any:
        nonlocal spec
        made = make(*values, *given)
        spec = made.element_spec
        return internals.variant_of(made)

    with tf.device(None):  # wherever the first such dataset was made
        return internals.traced(run, specs, {}), spec


@functools.cache
def _without_optimiser() -> bytes:
    """Returns a configuration of calls. TensorFlow's optimiser would take 40 ms at the first."""
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    text: bytes = config.SerializeToString()
    return text


# The most blocks and batches that are read at once. More threads would only hold more memory.
_MAX_PARALLEL_READS = 16

Body = Callable[..., Any]

#: When an iteration begins, TensorFlow takes some 5 ms for each function of its datasets, to
#: optimise, place and partition the function. TensorFlow skips these steps for functions with this
#: attribute, which matters only on other devices than the CPU, where functions of datasets run.
RUNS_AS_IT_STANDS = {"experimental_ints_on_device": True}


def with_spec(dataset: Any, spec: Any) -> Any:
    """Returns a dataset of these functions with elements like `spec`."""
    return MadeDataset(dataset._sources, dataset._function, internals.variant_of(dataset), spec)


def flat_map(dataset: Any, body: Body, spec: Any = None) -> Any:
    """dataset.flat_map(body). `spec` replaces the spec of the body's results."""
    function, made = _datasets(dataset, body)
    return _called(tf.raw_ops.FlatMapDataset, dataset, function, spec or made)


def parallel_flat_map(dataset: Any, body: Body, *, calls: int) -> Any:
    """flat_map() of a body that returns datasets of one element, with parallel calls, in order."""
    return _called(
        tf.raw_ops.ParallelInterleaveDatasetV4,
        dataset,
        *_datasets(dataset, body),
        cycle_length=tf.constant(calls, tf.int64),
        block_length=tf.constant(1, tf.int64),
        buffer_output_elements=tf.constant(1, tf.int64),
        prefetch_input_elements=tf.constant(0, tf.int64),
        num_parallel_calls=tf.constant(calls, tf.int64),
        deterministic="true",
    )


def parallel_reads() -> int:
    """Returns the number of simultaneous reading calls."""
    return min(_MAX_PARALLEL_READS, _native.usable_processors())


def parallel_map(
    dataset: Any, body: Body, *, calls: int | None = None, on_one_thread: bool = True
) -> Any:
    """dataset.map(body), several calls at once, in order.

    The body may return any structure. Unless it calls functions, each call stays on one thread: one
    of its ops does all the work. TensorFlow's usual executor hands the other ops from thread to
    thread, which took 40 us of the 220 us of processor time of a step with four columns of four
    rows. Only the constructor of tf.data's map takes the executor.
    """
    return _called(
        tf.raw_ops.ParallelMapDatasetV2,
        dataset,
        *_tensors(dataset, body),
        num_parallel_calls=tf.constant(calls or parallel_reads(), tf.int64),
        deterministic="true",
        preserve_cardinality=True,
        use_inter_op_parallelism=not on_one_thread,
    )


def serial_map(dataset: Any, body: Body, *, on_one_thread: bool = True) -> Any:
    """Maps like parallel_map(), one call at a time, on the consumer's thread."""
    return _called(
        tf.raw_ops.MapDataset,
        dataset,
        *_tensors(dataset, body),
        preserve_cardinality=True,
        use_inter_op_parallelism=not on_one_thread,
        **_synchronously(),
    )


def _synchronously() -> dict[str, Any]:
    """Returns the attribute that makes a map() run on the consumer's thread.

    Otherwise TensorFlow makes the map() parallel, and its threads take longer than such calls.
    TensorFlow 2.15 does not know the attribute.
    """
    known = "force_synchronous" in inspect.signature(tf.raw_ops.MapDataset).parameters
    return {"force_synchronous": True} if known else {}


def take_while(dataset: Any, body: Body) -> Any:
    function, _ = _tensors(dataset, body)
    return _called(
        tf.raw_ops.TakeWhileDataset, dataset, function, dataset.element_spec, "predicate"
    )


def scan(dataset: Any, state: Any, body: Body) -> Any:
    """dataset.scan(state, body), for a state of one vector, and a body that returns the next state
    before the tensors of an element.
    """
    function, (_, *spec) = _tensors(dataset, body, tf.TensorSpec([None], state.dtype))
    return _called(tf.raw_ops.ScanDataset, dataset, function, tuple(spec), initial_state=[state])


def map_as_traced(dataset: Any, function: Any, spec: Any) -> Any:
    """map() of a ConcreteFunction, which makes elements like `spec`."""
    return _called(tf.raw_ops.MapDataset, dataset, function, spec, preserve_cardinality=True)


def filter_as_traced(dataset: Any, function: Any) -> Any:
    """filter() by a ConcreteFunction."""
    return _called(tf.raw_ops.FilterDataset, dataset, function, dataset.element_spec, "predicate")


def _tensors(dataset: Any, body: Body, *before: Any) -> tuple[Any, Any]:
    """Returns the function of a body that returns tensors, and the spec of its results."""
    spec = None

    def run(*arguments: Any) -> Any:
        nonlocal spec
        made = body(*arguments)
        spec = internals.spec_of(made)
        return internals.flat_tensors(spec, made)

    given = *before, *internals.flat_specs(dataset.element_spec)
    return internals.traced(run, given, _attributes()), spec


def _datasets(dataset: Any, body: Body) -> tuple[Any, Any]:
    """Returns the function of a body that returns datasets, and the spec of their elements."""
    spec = None

    def variant(*arguments: Any) -> Any:
        nonlocal spec
        made = body(*arguments)
        spec = made.element_spec
        return internals.variant_of(made)

    return _tensors(dataset, variant)[0], spec


@functools.cache
def _attributes() -> dict[str, bool]:
    """Returns the attribute, if this TensorFlow knows it, as TensorFlow 2.15 to 2.21 do."""
    try:
        with tf.init_scope():
            internals.traced(lambda: tf.constant(0), (), RUNS_AS_IT_STANDS)
    except ValueError:
        return {}
    return RUNS_AS_IT_STANDS


def _called(
    op: Any, dataset: Any, function: Any, spec: Any, name: str = "f", **more: Any
) -> MadeDataset:
    variant = op(
        input_dataset=internals.variant_of(dataset),
        other_arguments=function.captured_inputs,
        output_types=internals.flat_types(spec),
        output_shapes=internals.flat_shapes(spec),
        **{name: function},
        **more,
    )
    return MadeDataset([dataset], function, variant, spec)


def chosen(condition: Any, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """tf.cond() of two datasets with equal specs, without tf.cond()'s slow comparison of specs."""
    specs = []

    def variant(make: Callable[[], Any]) -> Any:
        made = make()
        specs.append(made.element_spec)
        return internals.variant_of(made)

    found = tf.cond(condition, lambda: variant(one), lambda: variant(other))
    return tf.data.experimental.from_variant(found, specs[0])


def of_optional(optional: Any, spec: Any) -> Any:
    """Returns a dataset of the element, like `spec`, of an optional."""
    parts, shapes = values_of(optional, spec), internals.flat_shapes(spec)
    variant = tf.raw_ops.TensorDataset(components=parts, output_shapes=shapes)
    return tf.data.experimental.from_variant(variant, spec)


def values_of(optional: Any, spec: Any) -> list[Any]:
    """Returns the tensors of the element, like `spec`, of an optional."""
    values: list[Any] = tf.raw_ops.OptionalGetValue(
        optional=optional,
        output_types=internals.flat_types(spec),
        output_shapes=internals.flat_shapes(spec),
    )
    return values


def unbatched(dataset: Any) -> Any:
    """dataset.unbatch() of elements that are tensors, without TensorFlow's map() before it."""
    single = tf.nest.map_structure(
        lambda each: tf.TensorSpec(each.shape[1:], each.dtype), dataset.element_spec
    )
    variant = tf.raw_ops.UnbatchDataset(
        input_dataset=internals.variant_of(dataset),
        output_types=internals.flat_types(single),
        output_shapes=internals.flat_shapes(single),
    )
    return MadeDataset([dataset], None, variant, single)


def rebatched(dataset: Any, size: int, is_full: bool) -> Any:
    """dataset.rebatch() of elements that are one tensor, without TensorFlow's map() before it."""
    spec = dataset.element_spec
    batch = tf.TensorSpec([size if is_full else None, *spec.shape[1:]], spec.dtype)
    variant = tf.raw_ops.RebatchDatasetV2(
        input_dataset=internals.variant_of(dataset),
        batch_sizes=tf.constant(size, tf.int64),
        drop_remainder=tf.constant(is_full),
        output_types=[batch.dtype],
        output_shapes=[batch.shape],
    )
    return MadeDataset([dataset], None, variant, batch)


def show_a_reader() -> None:
    """Puts an op that reads files into the function that is being traced.

    TensorFlow looks for such an op when it shards by file. This op makes a dataset of no files,
    which is never iterated.
    """
    tf.raw_ops.TFRecordDatasetV2(
        filenames=tf.constant([], tf.string),
        compression_type="",
        buffer_size=tf.constant(0, tf.int64),
        byte_offsets=tf.constant([], tf.int64),
    )


def with_length(dataset: Any, length: int | None) -> Any:
    """Declares the number of elements (None: endless), but accepts fewer.

    `assert_cardinality` would fail at each end if damaged records were ignored. The dataset that is
    appended here claims to be endless, and is empty.
    """
    return made_once(_declared, (length is None,), dataset, tf.constant(length or 0, tf.int64))


def _declared(is_endless: bool, dataset: Any, length: Any) -> Any:
    def never_asked(number: Any) -> Any:
        show_a_reader()  # otherwise sharding by file would fail here
        return tf.data.Dataset.from_tensors(number)

    # TensorFlow declares the rest of an endless dataset endless.
    never = flat_map(tf.data.Dataset.range(1), never_asked, spec=dataset.element_spec)
    declared = dataset.concatenate(never.repeat().skip(-1))
    return declared if is_endless else declared.take(length)
