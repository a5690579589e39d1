"""The tf.data graphs: a range of steps, one parallel map of a stateless op, and what raises."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast import _native
from tfrfast._tensorflow.columns import TensorFeatures
from tfrfast._tensorflow.library import ops, private_session
from tfrfast._tensorflow.planning import COMPRESSION_CODES, OpenPlan
from tfrfast._tensorflow.seeds import DEFAULT_GLOBAL_SEED
from tfrfast._tensorflow.sequence import Batch, Progression, Sequence

# Blocks and batches that are read at once: more threads than this only hold more memory.
_MOST_PARALLEL_READS = 16
# A block of shuffled records holds about this many bytes, and at most so many records.
_BLOCK_BYTES = 1 << 20
_MOST_BLOCK_RECORDS = 4096
_ENDLESS = 2**63 - 1
# TensorFlow takes an op's seed modulo this.
_SEEDS_OF_OPS = 2**31 - 1
# Seeds the keys of iterations where what they are keys of has a seed of its own.
_ITERATIONS = 1
# Of a streaming source, whose records nobody has counted.
EVERYTHING = Sequence(Progression(0, 1, _ENDLESS)).numbers()


# Rewriting by AutoGraph would take most of the time that a graph takes to build.
as_it_stands = tf.autograph.experimental.do_not_convert


def parallel_reads() -> int:
    return min(_MOST_PARALLEL_READS, _native.usable_processors())


def _dataset_behind_map() -> Any:
    """The class that Dataset.map makes; None where it is not as it was in TensorFlow 2.15 to 2.21."""
    try:
        from tensorflow.python.data.ops.map_op import _ParallelMapDataset
    except ImportError:
        return None
    options = {"deterministic", "use_inter_op_parallelism", "preserve_cardinality"}
    found = inspect.signature(_ParallelMapDataset).parameters
    return _ParallelMapDataset if options <= found.keys() else None


_ParallelMap = _dataset_behind_map()


def parallel_map(dataset: Any, function: Callable[..., Any], parallel: int | None = None) -> Any:
    """In order, whatever is read when."""
    function, calls = as_it_stands(function), parallel or parallel_reads()
    if _ParallelMap is None:
        return dataset.map(function, num_parallel_calls=calls, deterministic=True)
    # Each call on one thread: what it calls is one op of weight and a few that weigh nothing, and
    # to hand those from thread to thread takes longer than to run them. Dataset.map cannot say so.
    return _ParallelMap(
        dataset,
        function,
        calls,
        deterministic=True,
        use_inter_op_parallelism=False,
        preserve_cardinality=True,
    )


def _records(head: Any, error: Any, tail: Any) -> Any:
    """What the reading ops give."""
    return (
        tf.ensure_shape(head, [None]),
        tf.ensure_shape(error, []),
        tf.ensure_shape(tail, [None]),
    )


def _raise(error: Any) -> Any:
    return tf.ensure_shape(ops.tfrfast_raise(error), [None])


def _some(records: Any) -> Any:
    return tf.data.Dataset.from_tensors(records).take(tf.cast(tf.size(records) > 0, tf.int64))


def _failure(error: Any) -> Any:
    """Raises `error` if it is one, and has no elements."""
    is_error = tf.cast(tf.strings.length(error) > 0, tf.int64)
    return tf.data.Dataset.from_tensors(error).take(is_error).map(_raise)


@as_it_stands
def _emit_block(head: Any, error: Any, tail: Any) -> Any:
    """Damage waits here for its turn: what lies before it is out when it is raised."""
    return tf.cond(
        tf.logical_and(tf.equal(error, ""), tf.size(head) > 0),
        lambda: tf.data.Dataset.from_tensors(head),
        lambda: _some(head).concatenate(_failure(error)).concatenate(_some(tail)),
    )


@as_it_stands
def _emit_batch(head: Any, error: Any, tail: Any) -> Any:
    """A batch that is hit fails, as TensorFlow's does; whoever ignores that gets its good records.

    In this order no batch lies behind the last one that was promised.
    """
    return tf.cond(
        tf.logical_and(tf.equal(error, ""), tf.size(head) > 0),
        lambda: tf.data.Dataset.from_tensors(head),
        lambda: _failure(error).concatenate(_some(tf.concat([head, tail], axis=0))),
    )


def _with_length(dataset: Any, length: int | None) -> Any:
    """Declares how many elements there are (None: endless), without insisting.

    `assert_cardinality` would fail at the end, again and again, where damaged records were
    ignored. What is appended here declares itself endless, but is empty.
    """
    something = tf.data.Dataset.from_tensors(0)
    nothing = tf.data.Dataset.choose_from_datasets(
        [something, something.repeat()],
        tf.data.Dataset.range(0),
        stop_on_empty_dataset=False,
    )
    spec = dataset.element_spec

    @as_it_stands
    def like_it(_: Any) -> Any:
        return tf.nest.map_structure(_nothing_like, spec, expand_composites=True)

    declared = dataset.concatenate(nothing.map(like_it))
    return declared if length is None else declared.take(length)


def _nothing_like(spec: Any) -> Any:
    """A tensor of that type and of any shape that `spec` allows. Nobody sees it."""
    sizes = [] if spec.shape.rank is None else [size or 0 for size in spec.shape]
    tensor = tf.zeros(sizes, spec.dtype)
    return tf.ensure_shape(tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=None), spec.shape)


def steps(count: int | None) -> Any:
    return tf.data.Dataset.range(_ENDLESS if count is None else count)


def streaming_blocks(names: Any, skip_damage: bool, zero_copy: bool, compression: str) -> Any:
    """Shards that nothing is known of yet, a block of records at a time; `names` may be symbolic."""
    source = ops.tfrfast_source(
        filenames=names,
        skip_damage=tf.constant(int(skip_damage), tf.int64),
        zero_copy=tf.constant(int(zero_copy), tf.int64),
        compression=tf.constant(COMPRESSION_CODES[compression], tf.int64),
    )
    sequence = tf.constant(EVERYTHING, tf.int64)

    @as_it_stands
    def blocks_of(each: Any) -> Any:
        # Counted when an iteration begins: until then files may come and go.
        count = tf.ensure_shape(ops.tfrfast_block_count(each), [])
        return parallel_map(
            tf.data.Dataset.range(count),
            lambda block: _records(*ops.tfrfast_read_block(each, sequence, block)),
        ).flat_map(_emit_block)

    return tf.data.Dataset.from_tensors(source).flat_map(blocks_of)


def planned(plan: OpenPlan, sequence: Sequence, features: TensorFeatures | None = None) -> Any:
    """The records of a sequence, one by one or in batches, or the columns of its batches."""
    if sequence.batch is None:
        elements = _planned_records(plan, sequence)
    elif features is None:
        elements = _planned_batches(plan, sequence)
    else:
        elements = _planned_columns(plan, sequence, features)
    return elements.with_options(small_checkpoints()) if sequence.shuffle else elements


def small_checkpoints() -> Any:
    """Positions are saved instead of the records in flight; the user's options go before these."""
    options = tf.data.Options()
    options.experimental_symbolic_checkpoint = True
    return options


def _planned_records(plan: OpenPlan, sequence: Sequence) -> Any:
    if sequence.shuffle is None:
        blocks = _planned_blocks(plan, sequence)
    else:
        mean_bytes = plan.file_bytes // max(1, plan.record_count)
        rows = max(1, min(_MOST_BLOCK_RECORDS, _BLOCK_BYTES // max(1, mean_bytes)))
        in_blocks = dataclasses.replace(sequence, batch=Batch(rows))
        blocks = _read_batches(plan, in_blocks, _records).flat_map(_emit_block)
    records = blocks.unbatch()
    # Damage may lie behind the last record: to stop at that would be to miss it.
    return records if plan.damage else _with_length(records, sequence.length)


def _planned_batches(plan: OpenPlan, sequence: Sequence) -> Any:
    assert sequence.batch is not None
    if sequence.batch.drop_remainder:  # one that is hit is lost: reading it fails
        full = [sequence.batch.rows]
        batches = _read_batches(plan, sequence, lambda head, *_: tf.ensure_shape(head, full))
    else:
        batches = _read_batches(plan, sequence, _records).flat_map(_emit_batch)
    return _with_length(batches, sequence.length)


def _planned_blocks(plan: OpenPlan, sequence: Sequence) -> Any:
    records = sequence.records
    first_block, block_count = 0, 0
    if records == Progression(0, 1, plan.record_count):
        block_count = plan.block_count  # even without records there may be damage to report
    elif records.count > 0:
        last = records.first + records.stride * (records.count - 1)
        first_block = plan.block_of(records.first) if records.first > 0 else 0
        to_the_end = last + records.stride >= plan.record_count
        end_block = plan.block_count if to_the_end else plan.block_of(last) + 1
        block_count = end_block - first_block
    source = tf.constant(plan.source)
    numbers = tf.constant(sequence.numbers(first_block, block_count), tf.int64)
    count = None if sequence.length is None else block_count * (sequence.epochs or 0)
    return parallel_map(
        steps(count), lambda block: _records(*ops.tfrfast_read_block(source, numbers, block))
    ).flat_map(_emit_block)


def _read_batches(plan: OpenPlan, sequence: Sequence, shaped: Callable[..., Any]) -> Any:
    source = tf.constant(plan.source)
    numbers = tf.constant(sequence.numbers(), tf.int64)
    return _map_steps(
        sequence,
        lambda step, key: shaped(*ops.tfrfast_read_batch(source, numbers, key, step)),
    )


def _planned_columns(plan: OpenPlan, sequence: Sequence, features: TensorFeatures) -> Any:
    assert sequence.batch is not None
    full = sequence.batch.drop_remainder
    rows_of_all = sequence.batch.rows if full else None
    source = tf.constant(plan.source)
    numbers = tf.constant(sequence.numbers(), tf.int64)

    def decode(step: Any, key: Any) -> Any:
        columns, rows, error = ops.tfrfast_decode_batch(
            source, numbers, key, step, features.text, column_types=features.column_types
        )
        columns = features.shaped(columns, rows_of_all)
        if full:  # one that is hit is lost: reading it fails
            return features.assemble(columns)
        return columns, tf.ensure_shape(rows, []), tf.ensure_shape(error, [])

    @as_it_stands
    def emit(columns: Any, rows: Any, error: Any) -> Any:
        """As _emit_batch."""
        batch = tf.data.Dataset.from_tensors(features.assemble(columns))

        @as_it_stands
        def fails(_: Any) -> Any:
            # Needs what never comes: a mere control dependency is optimised away.
            return tf.size(_raise(error)) > 0

        return tf.cond(
            tf.equal(error, ""),
            lambda: batch,
            lambda: batch.filter(fails).concatenate(batch.take(tf.minimum(rows, 1))),
        )

    batches = _map_steps(sequence, decode)
    return _with_length(batches if full else batches.flat_map(emit), sequence.length)


def _map_steps(sequence: Sequence, function: Callable[[Any, Any], Any]) -> Any:
    """function(step, key) of each step, `key` being that of the step's order."""
    shuffle = sequence.shuffle
    numbers = steps(sequence.length)
    seed = as_int64(shuffle.seed if shuffle else 0)
    if shuffle is None or sequence.repeated or not shuffle.reshuffles:
        return parallel_map(numbers, lambda step: function(step, tf.constant(seed, tf.int64)))
    return parallel_map(tf.data.Dataset.zip((numbers, _key_of_iteration(seed))), function)


def _key_of_iteration(seed: int) -> Any:
    """The same number for every step of an iteration, another one for the next.

    Zipped with the steps rather than mapped over: tf.data service can split the steps then. A
    checkpoint of the iterator holds the number, and how many iterations there were.
    """
    first = _random(seed).take(1)
    return first.flat_map(_for_ever)


@as_it_stands
def _for_ever(value: Any) -> Any:
    """What repeat() would do, whose symbolic checkpoints grow with each repetition."""
    return steps(None).map(as_it_stands(lambda _: value))


def zero_then_keys() -> Any:
    """0 for every step of the first iteration, a key of its own for every other iteration."""
    first = _first_key()
    keys = _random(_ITERATIONS).take(1)

    @as_it_stands
    def repeated(key: Any) -> Any:
        key = tf.where(tf.equal(key, first), tf.constant(0, tf.int64), key)
        return _for_ever(key)

    return keys.flat_map(repeated).repeat()  # only a repeat() is known to have no end


@functools.cache
def _first_key() -> int:
    """The key of a first iteration: how it follows from the seed is TensorFlow's to know."""
    with private_session() as session:
        keys = tf.compat.v1.data.make_initializable_iterator(_random(_ITERATIONS).take(1))
        session.run(keys.initializer)
        return int(session.run(keys.get_next()))


def _random(seed: int) -> Any:
    """Random numbers: the same in every run, others in each iteration.

    Those of `Dataset.random` with that seed. But it would give others after `tf.random.set_seed`,
    which one process may call and another not.
    """
    variant = tf.raw_ops.RandomDatasetV2(
        seed=tf.constant(DEFAULT_GLOBAL_SEED, tf.int64),
        seed2=tf.constant(seed % _SEEDS_OF_OPS, tf.int64),
        seed_generator=tf.raw_ops.DummySeedGenerator(),
        rerandomize_each_iteration=True,
        output_types=[tf.int64],
        output_shapes=[[]],
    )
    return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64))


def as_int64(number: int) -> int:
    """The int64 with the bits of an unsigned `number`."""
    return number - 2**64 if number >= 2**63 else number
