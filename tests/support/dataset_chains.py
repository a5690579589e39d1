"""Random chains of the methods of tf.data on a dataset of tfrfast, with tf.data itself as the
oracle: the same elements, checkpoints wherever tf.data has checkpoints, and not much more time.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

import tfrfast as tfr
from patience import PATIENCE_S

Chain = list[tuple[str, Callable[[Any], Any]]]


def elements(dataset: Any) -> list[Any]:
    """Returns all elements. Waits at most PATIENCE_S."""
    return _in_time(lambda: [_plain(element) for element in dataset])


def _plain(element: Any) -> Any:
    value = element.numpy()
    return value if isinstance(value, bytes) else value.tolist()


def _in_time(run: Callable[[], Any]) -> Any:
    outcome: list[Any] = []

    def run_and_keep() -> None:
        try:
            outcome.append((run(), None))
        except Exception as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run_and_keep, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert outcome, f"it has not come to an end in {PATIENCE_S} s"
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


def _text(element: Any) -> Any:
    """The first record of an element."""
    return tf.reshape(element, [-1])[0] if element.shape.rank else element


def _number(element: Any, modulus: int) -> Any:
    return tf.strings.to_hash_bucket_fast(_text(element), modulus)


def _joined(element: Any) -> Any:
    return tf.strings.join([element, "!"])


def _twice(element: Any) -> Any:
    return tf.data.Dataset.from_tensors(element).repeat(2)


def _flat(batches: Any) -> Any:
    """Returns batches of elements of one kind as vectors."""
    return batches.map(lambda batch: tf.reshape(batch, [-1]))


def _scanned(dataset: Any) -> Any:
    return dataset.scan(tf.constant(0), lambda count, element: (count + 1, element))


def _grouped(dataset: Any, size: int) -> Any:
    def of_group(_: Any, group: Any) -> Any:
        return _flat(group.batch(size))

    return dataset.group_by_window(lambda element: _number(element, 3), of_group, window_size=size)


def _bucketed(dataset: Any, size: int) -> Any:
    return _flat(
        dataset.bucket_by_sequence_length(
            lambda element: tf.cast(_number(element, 9), tf.int32), [3, 6], [size, size, size]
        )
    )


def _windows(dataset: Any, size: int) -> Any:
    return dataset.window(size).flat_map(lambda window: _flat(window.batch(size)))


def _zipped(dataset: Any) -> Any:
    numbered = tf.data.Dataset.zip((dataset, tf.data.Dataset.range(10**9)))
    return numbered.map(lambda element, _: element)


def _chosen(dataset: Any, other: Any) -> Any:
    return tf.data.Dataset.choose_from_datasets([dataset, other], tf.data.Dataset.range(2).repeat())


def _with_options(dataset: Any, optimised: bool) -> Any:
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = optimised
    return dataset.with_options(options)


def _after_all(choice: random.Random) -> Chain:
    """Steps that take elements of any kind."""
    count, shards = choice.choice([0, 1, 5, 50, 1000]), choice.randrange(1, 4)
    index, size, seed = choice.randrange(shards), choice.choice([1, 3, 20]), choice.randrange(9)
    buffer, again = choice.choice([1, 7, 100, 10**5]), choice.random() < 0.5
    calls = choice.choice([None, 2, tf.data.AUTOTUNE])
    return [
        (f"take({count})", lambda each: each.take(count)),
        (f"skip({count})", lambda each: each.skip(count)),
        (f"shard({shards}, {index})", lambda each: each.shard(shards, index)),
        (f"repeat({1 + index})", lambda each: each.repeat(1 + index)),
        (f"map({calls})", lambda each: each.map(_joined, num_parallel_calls=calls)),
        ("map(1, disorderly)", lambda each: each.map(_joined, 1, deterministic=False)),
        ("filter", lambda each: each.filter(lambda element: _number(element, 3) > 0)),
        (f"prefetch({size})", lambda each: each.prefetch(size)),
        ("cache()", lambda each: each.cache()),
        (f"with_options({again})", lambda each: _with_options(each, again)),
        (f"shuffle({buffer}, {seed}, {again})", lambda each: each.shuffle(buffer, seed, again)),
        ("enumerate", lambda each: each.enumerate().map(lambda _, element: element)),
        ("take_while", lambda each: each.take_while(lambda element: _number(element, 40) > 0)),
        ("scan", _scanned),
        ("zip", _zipped),
        ("ignore_errors", lambda each: each.ignore_errors()),
        ("flat_map", lambda each: each.flat_map(_twice)),
        (f"interleave({size})", lambda each: each.interleave(_twice, size)),
        ("interleave(3, 2)", lambda each: each.interleave(_twice, 3, 2, 2, deterministic=True)),
        ("apply", lambda each: each.apply(lambda dataset: dataset.take(70))),
    ]


def _after_records(choice: random.Random) -> Chain:
    rows, drop = choice.choice([1, 3, 16, 200]), choice.random() < 0.4
    other = tf.data.Dataset.from_tensor_slices([b"some", b"other", b"records"])
    return [
        (f"batch({rows}, {drop})", lambda each: each.batch(rows, drop)),
        (f"batch({rows}, {drop}, 2)", lambda each: each.batch(rows, drop, 2)),
        (f"padded_batch({rows})", lambda each: each.padded_batch(rows, [], drop_remainder=drop)),
        (f"group_by_window({rows})", lambda each: _grouped(each, rows)),
        (f"bucket_by_sequence_length({rows})", lambda each: _bucketed(each, rows)),
        (f"window({rows})", lambda each: _windows(each, rows)),
        ("unique", lambda each: each.unique()),
        ("concatenate", lambda each: each.concatenate(other)),
        ("choose_from_datasets", lambda each: _chosen(each, other)),
    ]


def _after_batches(choice: random.Random) -> Chain:
    rows, drop = choice.choice([1, 3, 16, 200]), choice.random() < 0.4
    return [
        (f"rebatch({rows}, {drop})", lambda each: each.rebatch(rows, drop)),
        ("unbatch", lambda each: each.unbatch()),
    ]


_BATCHING = {"batch", "padded_batch", "group_by_window", "bucket_by_sequence_length", "window"}


def random_chain(choice: random.Random) -> Chain:
    chain: Chain = []
    batched = False
    for _ in range(choice.randrange(1, 7)):
        of_kind = _after_batches(choice) if batched else _after_records(choice)
        chain.append(choice.choice(of_kind if choice.random() < 0.35 else _after_all(choice)))
        name = _name(chain[-1])
        batched = name in _BATCHING or (batched and name != "unbatch")
    return chain


def applied(chain: Chain, dataset: Any) -> Any:
    for _, step in chain:
        dataset = step(dataset)
    return dataset


def _some_source(choice: random.Random) -> tuple[Callable[[list[str]], Any], str | None]:
    """Returns a function that makes a source, and the method that differs from tf.data's by design:
    our shuffle() of records in order is exact, and a repeated Loader has another order each time.
    """
    options = {"seed": choice.randrange(9), "reshuffle_each_iteration": False}
    in_order: list[Callable[[list[str]], Any]] = [
        lambda files: tfr.TFRecordDataset(files),
        lambda files: tfr.TFRecordDataset(files, num_parallel_reads=2),
    ]
    shuffled: list[Callable[[list[str]], Any]] = [
        lambda files: tfr.TFRecordDataset(files).shuffle(1, **options),
        lambda files: tfr.TFRecordDataset(files).shuffle(1, **options).repeat(2),
        lambda files: tfr.TFRecordDataset(files).shuffle(1, **options).prefetch(2),
    ]
    loaded: list[Callable[[list[str]], Any]] = [
        lambda files: tfr.Loader(files, 7, seed=3).to_tf_dataset(epochs=1).unbatch(),
    ]
    source = choice.choice(in_order + shuffled + loaded)
    if source in loaded:
        return source, "repeat"
    return source, "shuffle" if source in in_order else None


def check_a_chain(choice: random.Random, files: list[str]) -> None:
    """Compares a random chain with tf.data's. The message of a failure names the calls."""
    if choice.random() < 0.5:
        tfr.Reader(files).close()  # leaves indexes
    source, differs = _some_source(choice)
    chain = [step for step in random_chain(choice) if _name(step) != differs]
    try:
        _check(choice, source(files), lambda: source(files), chain)
    except BaseException as error:
        error.args = (f"{[name for name, _ in chain]}: {error}",)
        raise


def check_a_shuffle(choice: random.Random, files: list[str]) -> None:
    """Compares a random chain with a shuffle in its middle with tf.data's, for the same order."""
    before = [step for step in random_chain(choice) if _name(step) in _BEFORE_A_SHUFFLE]
    names = {*map(_name, before)}
    # take() after a filter() ends the plan, as does cache() after a map().
    left_out = {"take", "skip", "shard"} if "filter" in names else set()
    left_out |= {"cache"} if names & {"filter", "map"} else set()
    before = [step for step in before if _name(step) not in left_out]
    order = choice.choice([None, None, tfr.BlockShuffle(8, 2, streams=3)])
    seed, chain = choice.randrange(99), random_chain(choice)

    def shuffled() -> Any:
        source = applied(before, tfr.TFRecordDataset(files))
        return source.shuffle(1, seed=seed, reshuffle_each_iteration=False, order=order)

    records = applied(before, _plain_records(elements(tf.data.TFRecordDataset(files))))
    sequence = elements(shuffled())
    message = [name for name, _ in (*before, ("shuffle", None), *chain)]
    assert sorted(sequence) == sorted(elements(records)), message
    expected = elements(applied(chain, _plain_records(sequence)))
    ours = applied(chain, shuffled())
    assert elements(ours) == expected, message
    known = applied(chain, records).cardinality(), len(expected)
    assert ours.cardinality() in known, message


#: Calls that a shuffle may follow in the plan.
_BEFORE_A_SHUFFLE = {"take", "skip", "shard", "map", "filter", "prefetch", "with_options", "cache"}


def _name(step: tuple[str, Any]) -> str:
    return step[0].partition("(")[0]


def _plain_records(records: list[bytes]) -> Any:
    return tf.data.Dataset.from_tensor_slices(tf.constant(records, tf.string, [len(records)]))


def _check(choice: random.Random, first: Any, source: Callable[[], Any], chain: Chain) -> None:
    plain = _plain_records(elements(first))
    theirs, ours = applied(chain, plain), applied(chain, source())
    started = time.process_time()
    expected = elements(theirs)
    turned = time.process_time()
    assert elements(ours) == expected
    assert time.process_time() - turned < 5 * (turned - started) + 10, "it takes too long"
    assert ours.element_spec == theirs.element_spec
    # TensorFlow does not know the length of some chains, and we know that of no stream.
    known = theirs.cardinality(), len(expected), tf.data.UNKNOWN_CARDINALITY
    assert ours.cardinality() in known
    position = choice.randrange(len(expected) + 1)
    try:
        left = _left_after(position, applied(chain, plain))
    except tf.errors.OpError:
        return  # TensorFlow has no checkpoint of this chain either
    if left == expected[position:]:
        restored = _left_after(position, applied(chain, source()))
        assert restored == left, f"restored at {position}"


def _left_after(position: int, dataset: Any) -> list[Any]:
    """Returns the elements after `position`, from an iterator that a checkpoint restored there."""
    iterator = iter(dataset)
    for _ in range(position):
        next(iterator)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(iterator=iterator).write(str(Path(folder) / "saved"))
        again = iter(dataset)
        _in_time(lambda: tf.train.Checkpoint(iterator=again).read(path).assert_consumed())
    return elements(again)
