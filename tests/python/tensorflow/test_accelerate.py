"""accelerate(): finished datasets of any origin, with TensorFlow as the oracle."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from example_files import write_examples
from explained import is_planned

tf = pytest.importorskip("tensorflow")

from tensorflow.python.data.experimental.ops import distribute  # noqa: E402

from against_tensorflow import resumed  # noqa: E402
from tensorflow_child import FEATURES  # noqa: E402
from tfrfast.tensorflow import compiling  # noqa: E402
from tfrfast.tensorflow.planned_dataset import AcceleratedDataset  # noqa: E402

AUTO = tf.data.AUTOTUNE
COUNTS = [9, 0, 33, 14, 4, 1, 0, 30, 2]
TOTAL = sum(COUNTS)
Chain = Callable[[list[str]], Any]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("accelerated"), COUNTS)


def names_of(files: list[str]) -> Any:
    return tf.data.Dataset.from_tensor_slices(files)


def record_number(record: Any) -> Any:
    return tf.io.parse_single_example(record, FEATURES)["id"]


def read(name: Any) -> Any:
    return tf.data.TFRecordDataset(name)


def read_ahead(name: Any) -> Any:
    return tf.data.TFRecordDataset([name], "", buffer_size=1 << 20).prefetch(1)


def numbers(dataset: Any) -> list[int]:
    return [int(number) for batch in dataset for number in np.ravel(batch)]


def in_batches(records: Any) -> Any:
    return records.map(record_number, AUTO).batch(8).prefetch(AUTO)


def _of_captured_compression(files: list[str]) -> Any:
    kind = tf.constant("")
    return names_of(files).interleave(lambda name: tf.data.TFRecordDataset(name, kind), 3)


def legacy_interleave(*arguments: Any, **options: Any) -> Any:
    return tf.data.experimental.parallel_interleave(*arguments, **options)


def mixed(files: list[str]) -> Any:
    return in_batches(names_of(files).interleave(read, 3))


def few(files: list[str]) -> Any:
    return in_batches(tf.data.TFRecordDataset(files[2:4]))


def kept(files: list[str]) -> Any:
    return names_of(files).interleave(read, 3).map(record_number).cache()


def slices(rows: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(rows)


def read_and_parse(name: Any) -> Any:
    numbers = tf.data.TFRecordDataset(name).map(record_number, AUTO).prefetch(1)
    return numbers.map(lambda number: {"twice": 2 * number, "number": number})


def inside(call: Chain, **options: Any) -> Chain:
    """Files that a function opens, with a call on their records."""
    return lambda files: names_of(files).interleave(
        lambda name: call(tf.data.TFRecordDataset(name)), 3, **options
    )


def changed(change: Chain) -> Chain:
    """A map of records whose function needs a value from outside."""
    return lambda records: records.map(lambda record: change(record_number(record)))


@functools.cache
def _table() -> Any:
    pairs = tf.lookup.KeyValueTensorInitializer(*2 * [tf.constant([1], tf.int64)])
    return tf.lookup.StaticHashTable(pairs, -1)


@functools.cache
def _variable() -> Any:
    return tf.Variable(7, dtype=tf.int64)


#: Records or batches of any origin.
ORDERED: dict[str, Chain] = {
    "a list": lambda files: tf.data.TFRecordDataset(files),
    "names applied": lambda files: names_of(files).apply(tf.data.TFRecordDataset),
    "parallel reads": lambda files: tf.data.TFRecordDataset(files, num_parallel_reads=3),
    "flat_map": lambda files: names_of(files).flat_map(read),
    "interleave": lambda files: names_of(files).interleave(read),
    "interleave, wide": lambda files: names_of(files).interleave(read, cycle_length=40),
    "blocks": lambda files: names_of(files).interleave(read, cycle_length=3, block_length=4),
    "long blocks": lambda files: names_of(files).interleave(read, 2, block_length=1000),
    "a buffer of one element": lambda files: (
        names_of(files).interleave(read, 2).shard(2, 1).shuffle(1, seed=3).batch(8)
    ),
    "parallel": lambda files: names_of(files).interleave(read_ahead, num_parallel_calls=AUTO),
    "parallel blocks": lambda files: names_of(files).interleave(
        read_ahead, cycle_length=4, block_length=2, num_parallel_calls=2
    ),
    "compression captured": _of_captured_compression,
    "our class inside": lambda files: names_of(files).interleave(tfr.TFRecordDataset, 3),
    "version 1": lambda files: tf.compat.v1.data.TFRecordDataset(files),
    "a shard of the names": lambda files: names_of(files).shard(2, 0).interleave(read, 2),
    "a shard of shuffled names": lambda files: (
        names_of(files)
        .shuffle(9, seed=5, reshuffle_each_iteration=False)
        .shard(2, 1)
        .flat_map(read)
    ),
    "part of the names": lambda files: names_of(files).skip(1).take(4).flat_map(read),
    "names joined": lambda files: (
        names_of(files[:3]).concatenate(names_of(files[4:])).flat_map(read)
    ),
    "records joined": lambda files: (
        tf.data.TFRecordDataset(files[:2])
        .concatenate(names_of(files[2:5]).flat_map(read))
        .concatenate(tf.data.TFRecordDataset(files[5:]))
    ),
    "a shard of the records": lambda files: names_of(files).interleave(read, 3).shard(3, 1),
    "part of the records": lambda files: names_of(files).interleave(read, 3).skip(5).take(40),
    "repeated": lambda files: names_of(files).interleave(read, 3).repeat(2),
    "repeated names": lambda files: names_of(files).repeat(2).flat_map(read),
    "repeated names in turns": lambda files: names_of(files).repeat(2).interleave(read, 3, 2),
    "filtered": lambda files: tf.data.TFRecordDataset(files).filter(
        lambda record: record_number(record) % 2 == 0
    ),
    "cached": lambda files: names_of(files).interleave(read, 3).cache(),
    "maps inside": lambda files: (
        names_of(files).interleave(read_and_parse, 3, num_parallel_calls=2).batch(8)
    ).map(lambda batch: batch["number"] * 100_000 + batch["twice"]),
    "map_and_batch": lambda files: tf.data.TFRecordDataset(files).apply(
        tf.data.experimental.map_and_batch(record_number, 8, num_parallel_calls=2)
    ),
    "map_and_batch, full": lambda files: tf.data.TFRecordDataset(files).apply(
        tf.data.experimental.map_and_batch(record_number, 8, drop_remainder=True)
    ),
    "parse_example_dataset": lambda files: (
        tf.data.TFRecordDataset(files)
        .batch(8)
        .apply(tf.data.experimental.parse_example_dataset({"id": FEATURES["id"]}))
        .map(lambda row: row["id"])
        .ignore_errors()
    ),
    "unbatched": lambda files: in_batches(tf.data.TFRecordDataset(files)).unbatch().batch(9),
    "unbatched, of several": lambda files: (
        tf.data.TFRecordDataset(files)
        .map(lambda record: tf.io.parse_single_example(record, FEATURES))
        .batch(8)
        .map(lambda rows: (rows["id"], tf.cast(rows["id"] % 3, tf.int32)[:, None]))
        .unbatch()
        .batch(7, drop_remainder=True)
        .map(lambda number, rest: number * 10 + tf.cast(rest[:, 0], tf.int64))
    ),
    "rebatched": lambda files: in_batches(tf.data.TFRecordDataset(files)).rebatch(
        [9, 12], drop_remainder=True
    ),
    "a part of the batches": lambda files: mixed(files).skip(2).take(6).rebatch(7),
    "a part of the batches, repeated": lambda files: (
        tf.data.TFRecordDataset(files)
        .batch(8, drop_remainder=True)
        .take(40)
        .skip(3)
        .repeat(2)
        .map(lambda records: tf.io.parse_example(records, FEATURES)["id"])
    ),
    "zip": lambda files: tf.data.Dataset.zip({"a": mixed(files), "b": (few(files), few(files))}),
    "concatenate": lambda files: mixed(files).concatenate(few(files)),
    "sample": lambda files: tf.data.Dataset.sample_from_datasets(
        [mixed(files), few(files)], seed=3
    ),
    "sample by a dataset": lambda files: tf.data.Dataset.sample_from_datasets(
        [mixed(files), few(files)], tf.data.Dataset.from_tensors([0.3, 0.7]).repeat(), seed=3
    ),
    "choose": lambda files: tf.data.Dataset.choose_from_datasets(
        [mixed(files), few(files)], tf.data.Dataset.range(2).repeat(), stop_on_empty_dataset=True
    ),
    "a cache, shuffled": lambda files: kept(files).shuffle(30, seed=3).batch(8),
    "a cache, shuffled and repeated": lambda files: (
        kept(files).take(50).prefetch(2).shuffle(100, seed=3).repeat(2).batch(8)
    ),
    "a cache, repeated": lambda files: kept(files).repeat(2).padded_batch(8),
    "enumerated": lambda files: (
        tf.data.TFRecordDataset(files).map(record_number).enumerate(5).batch(8)
    ),
    "enumerated, mapped": lambda files: (
        names_of(files)
        .interleave(read, 3)
        .map(record_number)
        .enumerate(5)
        .skip(3)
        .map(lambda i, n: i * 1000 + n)
        .batch(16)
    ),
    "enumerated batches": lambda files: mixed(files).enumerate(),
    "interleaved rows": lambda files: mixed(files).interleave(slices, 3, 2),
    "flat_map of rows": lambda files: mixed(files).flat_map(tf.data.Dataset.from_tensors),
    "unique": lambda files: mixed(files).unbatch().map(lambda number: number // 7).unique(),
    "prefetch_to_device": lambda files: mixed(files).apply(
        tf.data.experimental.prefetch_to_device("/cpu:0")
    ),
}


def parts_of(files: list[str]) -> Any:
    numbers = tf.constant([2] * len(files), tf.int64), tf.constant([5] * len(files), tf.int64)
    return tf.data.Dataset.from_tensor_slices((files, *numbers))


def read_part(path: Any, skip: Any, take: Any) -> Any:
    return tf.data.TFRecordDataset(path).skip(skip).take(take)


#: Other ways to open files, and whether a plan reads the files.
OPENED: dict[str, tuple[bool, Chain]] = {
    "the same file twice": (True, lambda files: names_of([files[2], *files]).interleave(read, 2)),
    "names with other values": (
        True,
        lambda files: tf.data.Dataset.from_tensor_slices(
            {"path": files, "weight": [1.0] * len(files)}
        ).interleave(lambda row: read(row["path"]), 3),
    ),
    "a part of a file, repeated": (
        False,
        lambda files: parts_of(files[:1]).repeat(2).interleave(read_part, 2),
    ),
    "parts of files, repeated": (
        False,
        lambda files: parts_of(files).repeat(2).interleave(read_part, 2),
    ),
    "joined with interleaved files": (
        False,
        lambda files: (
            tf.data.TFRecordDataset(files[:2])
            .concatenate(names_of(files[2:]).interleave(read, 3))
            .batch(8)
        ),
    ),
    "one name": (True, lambda files: tf.data.Dataset.from_tensors(files[2]).flat_map(read)),
    "a table inside": (True, inside(changed(lambda number: _table().lookup(number)))),
    "a variable inside": (False, inside(changed(lambda number: number + _variable()))),
    "names from a map": (False, lambda files: names_of(files).map(tf.identity).flat_map(read)),
    "names from Python": (
        False,
        lambda files: tf.data.Dataset.from_generator(
            lambda: iter(files), output_signature=tf.TensorSpec([], tf.string)
        ).flat_map(read),
    ),
    "interleaves inside": (
        False,
        lambda files: tf.data.Dataset.range(2).interleave(
            lambda part: names_of(files).shard(2, part).interleave(read, 2), 2
        ),
    ),
    **{
        f"{name} inside": (False, inside(call))
        for name, call in {
            "take": lambda records: records.take(5),
            "skip": lambda records: records.skip(2),
            "shard": lambda records: records.shard(2, 1),
            "repeat": lambda records: records.repeat(2),
            "cache": lambda records: records.cache(),
            "filter": lambda records: records.filter(lambda record: record_number(record) % 2 == 0),
        }.items()
    },
}
SAME = {name: (name != "filtered", chain) for name, chain in ORDERED.items()} | OPENED


@pytest.mark.parametrize("name", SAME)
def test_elements_are_tensorflows(files: list[str], name: str) -> None:
    _table(), _variable()  # before a function is traced
    plans, chain = SAME[name]
    theirs = chain(files)
    spec = theirs.element_spec
    if spec == tf.TensorSpec([], tf.string):
        theirs = in_batches(theirs)
    elif spec == tf.TensorSpec([], tf.int64) and name != "unique":
        theirs = theirs.batch(8)
    ours = tfr.accelerate(theirs)
    assert ours.element_spec == theirs.element_spec
    for _ in range(2):
        np.testing.assert_equal(*(list(each.as_numpy_iterator()) for each in (ours, theirs)))
    planned = ": planned" in str(tfr.explain(ours)).split("would be:")[0]
    assert planned == plans


@pytest.mark.parametrize(
    "call",
    [
        lambda batches: batches.map(lambda batch: batch[:2]).take(3),
        lambda batches: batches.unbatch().batch(8),
        lambda batches: batches.rebatch(11),
        lambda batches: batches.enumerate(),
        lambda batches: batches.concatenate(batches),
        lambda batches: tfr.accelerate(batches.repeat(2)),
    ],
)
def test_a_call_on_an_accelerated_dataset_opens_nothing_before_it_is_iterated(
    files: list[str], call: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = []
    plan = compiling.plan
    monkeypatch.setattr(compiling, "plan", lambda *given: planned.append(1) or plan(*given))
    theirs = in_batches(tf.data.TFRecordDataset(files))
    ours = call(tfr.accelerate(theirs))
    assert not planned
    expected, found = ([*call(each)] for each in (theirs, tfr.accelerate(theirs)))
    for each in (found, [*ours]):
        tf.nest.map_structure(np.testing.assert_array_equal, each, expected)
    assert planned


SHUFFLED: dict[str, tuple[int, Chain]] = {
    "a list": (1, lambda files: tf.data.TFRecordDataset(files).shuffle(10)),
    "interleave": (1, lambda files: names_of(files).interleave(read, 3).shuffle(10, seed=4)),
    "names shuffled": (
        1,
        lambda files: tf.data.Dataset.list_files(files).interleave(read_ahead, 3).shuffle(10),
    ),
    "repeated first": (2, lambda files: tf.data.TFRecordDataset(files).repeat(2).shuffle(10)),
    "repeated names": (
        3,
        lambda files: (
            names_of(files)
            .repeat(3)
            .shuffle(9)
            .apply(legacy_interleave(read, cycle_length=4, sloppy=True))
            .shuffle(10)
        ),
    ),
    "repeated twice": (
        4,
        lambda files: names_of(files).repeat(2).flat_map(read).repeat(2).repeat(1).shuffle(5),
    ),
    "joined": (
        1,
        lambda files: (
            tf.data.TFRecordDataset(files[:2])
            .concatenate(names_of(files[2:]).shuffle(9).interleave(read_ahead, 3, 1, AUTO, False))
            .shuffle(10)
        ),
    ),
    "one shard of one": (
        1,
        lambda files: names_of(files).shuffle(9).shard(1, 0).interleave(read).shuffle(10),
    ),
    "two shuffles": (
        1,
        lambda files: tf.data.TFRecordDataset(files).shuffle(10).prefetch(3).shuffle(50),
    ),
    "cached": (2, lambda files: tf.data.TFRecordDataset(files).cache().shuffle(9).repeat(2)),
    "repeated later": (2, lambda files: tf.data.TFRecordDataset(files).shuffle(10).repeat(2)),
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_a_shuffle_gives_each_record_once_an_epoch(files: list[str], name: str) -> None:
    epochs, chain = SHUFFLED[name]
    theirs = in_batches(chain(files))
    ours = tfr.accelerate(theirs)
    found = numbers(ours)
    assert is_planned(ours)
    assert len(found) == epochs * TOTAL
    every = sorted(numbers(in_batches(tf.data.TFRecordDataset(files))))
    for epoch in range(epochs):
        assert sorted(found[epoch * TOTAL : (epoch + 1) * TOTAL]) == every
    assert found[:TOTAL] != every
    assert found != numbers(ours)


PARTS_SHUFFLED: dict[str, tuple[bool, Callable[[Any], Any]]] = {
    "of files in another order": (True, lambda names: names.shuffle(9).flat_map(read).take(20)),
    "of one order": (
        False,
        lambda names: names.flat_map(read).shuffle(99, reshuffle_each_iteration=False).take(20),
    ),
}


@pytest.mark.parametrize("name", PARTS_SHUFFLED)
def test_a_shuffled_part_differs_by_iteration_as_with_tensorflow(
    files: list[str], name: str
) -> None:
    other_records, chain = PARTS_SHUFFLED[name]
    ours = tfr.accelerate(chain(names_of(files)).shuffle(99).map(record_number).batch(10))
    assert is_planned(ours) == (not other_records)
    orders = [numbers(ours) for _ in range(4)]
    assert len({*map(tuple, orders)}) > 1
    assert (len({*map(frozenset, orders)}) > 1) == other_records


def test_each_dataset_of_one_shuffle_has_an_order_of_its_own(files: list[str]) -> None:
    mixed = tf.data.TFRecordDataset(files).shuffle(99, seed=3)
    pairs = tfr.accelerate(tf.data.Dataset.zip((mixed, mixed)))
    assert isinstance(pairs, AcceleratedDataset)
    assert any(one != other for one, other in pairs.as_numpy_iterator())
    parts = mixed.take(50).batch(8).concatenate(mixed.skip(50).batch(8)).prefetch(1)
    assert tfr.accelerate(parts) is parts
    assert "its datasets share a shuffle()" in str(tfr.explain(parts))


def part_of(row: dict[str, Any]) -> Any:
    return tf.data.TFRecordDataset(row["path"]).skip(row["skip"]).take(row["take"])


def in_parts(
    files: list[str], skips: list[int], takes: list[int], count: int, keeps: bool = True
) -> Any:
    """Files as TensorFlow Datasets reads them, with a cache after the maps."""
    columns = {"name": ["-"] * len(files), "path": files, "skip": skips, "take": takes}
    rows = tf.data.Dataset.from_tensor_slices({k: np.array(v) for k, v in columns.items()})
    records = rows.interleave(part_of, 16, 16, num_parallel_calls=AUTO)
    counted = records.apply(tf.data.experimental.assert_cardinality(count))
    made = counted.map(record_number, AUTO)
    return (made.cache() if keeps else made).prefetch(AUTO)


FILES_SHUFFLED: dict[str, Chain] = {
    "one by one": lambda names: names.flat_map(read),
    "in turns": lambda names: names.interleave(read, 3),
    "in blocks": lambda names: names.interleave(read, 2, 4, num_parallel_calls=2),
}


@pytest.mark.parametrize("name", FILES_SHUFFLED)
def test_shuffled_files_come_in_an_order_that_tensorflow_could_give(
    files: list[str], name: str
) -> None:
    chain, some = FILES_SHUFFLED[name], [file for file, n in zip(files, COUNTS, strict=True) if n]
    of_file = {n: file for file in some for n in numbers(in_batches(read(file)))}

    def records(seed: int | None = None) -> Any:
        return chain(names_of(some).shuffle(9, seed))

    plain = in_batches(records())
    ours = tfr.accelerate(plain)
    assert is_planned(ours)
    orders = [numbers(ours) for _ in range(4)]
    for found in orders:
        opened = list(dict.fromkeys(map(of_file.__getitem__, found)))
        assert found == numbers(in_batches(chain(names_of(opened))))
    assert len({*map(tuple, orders)}) > 1

    seeded = [numbers(tfr.accelerate(in_batches(records(seed=7)))) for _ in range(2)]
    assert seeded[0] == seeded[1]
    part = tfr.accelerate(in_batches(records(seed=7).skip(5).take(20)))
    assert numbers(part) == seeded[0][5:25]
    twice = numbers(tfr.accelerate(in_batches(records(seed=7).repeat(2))))
    assert twice[:TOTAL] == seeded[0]
    assert sorted(twice[TOTAL:]) == sorted(seeded[0])
    assert "tfrfast does not shuffle batches" in str(tfr.explain(tfr.accelerate(plain.shuffle(3))))
    single = tfr.accelerate(records(seed=7).map(record_number).padded_batch(8))
    assert is_planned(single)
    assert numbers(single) == seeded[0]


def test_files_are_read_in_part(files: list[str]) -> None:
    """Reads one file in order, and several shuffled files of which none is left out."""
    one = in_parts(files[2:3], [5], [20], 20).batch(8)
    two = in_parts(files[2:4], [30, 0], [100, 100], 17)
    assert _planned_like(one) == numbers(one)
    mixed = in_parts(files[2:4], [30, 0], [100, 100], 17, keeps=False).shuffle(9).batch(8)
    assert sorted(_planned_like(mixed)) == sorted(numbers(two.batch(8)))
    between = in_parts(files[2:5], [0] * 3, [3] * 3, 9, keeps=False).shuffle(9).batch(8)
    for dataset in (two.batch(8), between, two.shuffle(9).batch(8), two.repeat(2).batch(8)):
        ours = tfr.accelerate(dataset)
        assert sorted(numbers(ours)) == sorted(numbers(dataset))
        assert not is_planned(ours)
    wrong = tfr.accelerate(in_parts(files[2:3], [5], [20], 21).batch(8))
    with pytest.raises(tf.errors.FailedPreconditionError, match="to contain 21"):
        numbers(wrong)


def _planned_like(dataset: Any) -> list[int]:
    ours = tfr.accelerate(dataset)
    found = numbers(ours)
    assert found == numbers(ours) or "shuffle" in str(tfr.explain(ours))
    assert is_planned(ours)
    return found


def test_a_cache_keeps_the_first_order_of_shuffled_files(files: list[str]) -> None:
    shuffled = names_of(files).shuffle(9)
    cached = tf.data.TFRecordDataset(shuffled).cache().map(record_number).repeat(2).batch(8)
    ours = tfr.accelerate(cached)
    assert is_planned(ours)
    first = numbers(ours)
    half = len(first) // 2
    assert first[:half] == first[half:]
    assert sorted(first[:half]) == sorted(
        numbers(tf.data.TFRecordDataset(files).map(record_number))
    )
    assert numbers(ours) == first


def test_a_cache_of_what_changes_is_kept(files: list[str]) -> None:
    added = tf.Variable(0, dtype=tf.int64)
    records = tf.data.TFRecordDataset(files)
    for change in (lambda n: n + added, lambda n: n + tf.random.uniform([], 0, 9, tf.int64)):
        kept = records.map(record_number).map(change).cache().batch(8)
        ours = tfr.accelerate(kept)
        first = numbers(ours)
        added.assign_add(1)
        assert numbers(ours) == first


@pytest.mark.parametrize(("values", "is_planned"), [(8_000, True), (30_000, False)])
def test_a_cache_of_large_elements_is_left_to_tensorflow(
    tmp_path: Path, values: int, is_planned: bool
) -> None:
    path = str(tmp_path / "large")
    with tfr.Writer(path) as writer:
        for number in range(20):
            writer.write_example({"values": np.full(values, number, np.float32)})
    features = {"values": tf.io.FixedLenFeature([values], tf.float32)}

    def parse(record: Any) -> Any:
        return tf.io.parse_single_example(record, features)["values"]

    kept = tf.data.TFRecordDataset(path).map(parse).cache().shuffle(9).batch(4)
    text = str(tfr.explain(tfr.accelerate(kept)))
    assert ("TensorFlow does all the work" not in text) == is_planned


def test_a_bad_record_of_a_block_comes_after_the_good_ones(tmp_path: Path) -> None:
    (file,) = write_examples(tmp_path, [40])
    with tf.io.TFRecordWriter(bad := str(tmp_path / "bad")) as writer:
        for number, record in enumerate(tf.data.TFRecordDataset(file)):
            writer.write(b"no example" if number == 21 else record.numpy())
    kept = tf.data.TFRecordDataset(bad).map(record_number).cache()
    found: tuple[list[int], list[int]] = [], []
    for seen, dataset in zip(found, (kept, tfr.accelerate(kept.repeat(2).batch(8))), strict=True):
        with pytest.raises(tf.errors.InvalidArgumentError):
            seen.extend(int(each) for made in dataset for each in np.ravel(made))
    assert len(found[0]) == 21
    assert found[1] == found[0][:16]


def test_a_seed_fixes_the_order_in_every_dataset(files: list[str]) -> None:
    def made() -> Any:
        return tfr.accelerate(in_batches(tf.data.TFRecordDataset(files).shuffle(10, seed=7)))

    assert numbers(made()) == numbers(made())


def test_parts_of_one_shuffle_are_a_split(files: list[str]) -> None:
    mixed = tf.data.TFRecordDataset(files).shuffle(20, reshuffle_each_iteration=False)
    first, rest = (in_batches(part) for part in (mixed.take(30), mixed.skip(30)))
    ours = numbers(tfr.accelerate(first)), numbers(tfr.accelerate(rest))
    assert len(ours[0]) == 30
    assert sorted(ours[0] + ours[1]) == sorted(numbers(in_batches(tf.data.TFRecordDataset(files))))


@pytest.mark.parametrize("pairs", [False, True])
def test_parts_of_one_cache_are_a_split(files: list[str], pairs: bool) -> None:
    mixed = tf.data.TFRecordDataset(files).map(record_number).shuffle(99)
    if pairs:
        mixed = tf.data.Dataset.zip((mixed.batch(8), tf.data.Dataset.range(99)))
        mixed = mixed.map(lambda batch, _: batch).unbatch()
    kept = mixed.cache()
    first, rest = (tfr.accelerate(part.batch(8)) for part in (kept.take(30), kept.skip(30)))
    numbers(rest)  # which fills the cache
    for _ in range(2):
        assert sorted(numbers(first) + numbers(rest)) == sorted(numbers(mixed.batch(8)))
    assert "a cache() in memory keeps one order" in str(tfr.explain(first))


def test_parts_of_files_shuffled_once_are_a_split(files: list[str]) -> None:
    rows = tf.data.Dataset.from_tensor_slices({"path": files, "number": range(len(files))})
    rows = rows.shuffle(9, seed=5, reshuffle_each_iteration=False)
    records = rows.flat_map(lambda row: read(row["path"]))
    parts = records.take(40).batch(4), records.skip(40).batch(8)
    found = [record for part in parts for batch in tfr.accelerate(part) for record in batch.numpy()]
    assert len(found) == len({*found}) == TOTAL


def test_parts_of_one_shuffle_are_read_by_one(tmp_path: Path) -> None:
    own = write_examples(tmp_path, [20, 20])
    mixed = tf.data.TFRecordDataset(own).shuffle(20, reshuffle_each_iteration=False)
    first, rest = (tfr.accelerate(in_batches(part)) for part in (mixed.take(30), mixed.skip(30)))
    assert len(numbers(first)) == 30
    Path(own[1]).unlink()
    with pytest.raises(tf.errors.OpError, match="TFRFAST_ACCELERATE=0"):
        numbers(rest)


def test_a_function_is_never_called_again(files: list[str]) -> None:
    calls = []

    def counted(name: Any) -> Any:
        calls.append(name)
        return tf.data.TFRecordDataset(name)

    def parsed(record: Any) -> Any:
        calls.append(record)
        return record_number(record) + offset

    offset = 10
    theirs = names_of(files).interleave(counted).map(parsed).batch(8)
    traced = len(calls)
    offset = 20  # the function was traced with another offset
    ours = tfr.accelerate(theirs)
    assert numbers(ours) == numbers(theirs)
    assert min(numbers(ours)) == 10
    assert len(calls) == traced


def test_workers_shards_of_shuffled_names_are_tensorflows(files: list[str]) -> None:
    def part(index: int) -> Any:
        names = names_of(files).shuffle(9, seed=5, reshuffle_each_iteration=False)
        return in_batches(names.shard(2, index).interleave(read).shuffle(10))

    for theirs in map(part, range(2)):
        ours = tfr.accelerate(theirs)
        assert sorted(numbers(ours)) == sorted(numbers(theirs))
        assert is_planned(ours)


@pytest.mark.parametrize("mixes", [False, True])
def test_automatic_sharding_gives_workers_tensorflows_files(files: list[str], mixes: bool) -> None:
    records = names_of(files).shuffle(9).interleave(read).shuffle(10)
    theirs = in_batches(records if mixes else names_of(files).interleave(read))
    for worker in range(2):
        shares = [
            numbers(distribute._AutoShardDataset(dataset, 2, worker))
            for dataset in (theirs, tfr.accelerate(theirs))
        ]
        assert sorted(shares[0]) == sorted(shares[1])
        assert mixes or shares[0] == shares[1]


def test_the_number_of_elements_is_known_without_opening_files(files: list[str]) -> None:
    missing = tf.data.TFRecordDataset(["missing"]).shuffle(9).batch(8)
    assert tfr.accelerate(missing).cardinality() == missing.cardinality()


def test_the_switch_leaves_datasets_alone(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFRFAST_ACCELERATE", "0")
    theirs = in_batches(tf.data.TFRecordDataset(files))
    assert tfr.accelerate(theirs) is theirs
    monkeypatch.delenv("TFRFAST_ACCELERATE")
    assert tfr.accelerate(theirs) is not theirs
    with pytest.raises(TypeError, match="takes a tf.data.Dataset, not list"):
        tfr.accelerate([theirs])


def test_large_files_are_planned_by_indexes_beside_them_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every rank sees indexes beside the data, and no rank sees another user's cache."""
    planner = importlib.import_module("tfrfast.tensorflow.plan.call_rules")
    monkeypatch.setattr(planner, "INDEXED_BYTES", 100)
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    large = write_examples(tmp_path / "data", COUNTS)
    for each in large:
        os.utime(each, (1_600_000_000, 1_600_000_000))  # indexes of younger files are not believed
    theirs = in_batches(tf.data.TFRecordDataset(large).shuffle(9))
    tfr.Reader(large).close()  # leaves an index in the cache
    explanation = tfr.explain(tfr.accelerate(theirs))
    assert str(explanation).startswith("tf.data: TensorFlow does all the work\n")
    step = explanation.steps[0]
    assert "no index beside" in step.why
    assert step.instead == "tfrfast index"
    tfr.build_index(large)
    assert "planned" in str(tfr.explain(tfr.accelerate(theirs)))


def test_nothing_fails_earlier_than_in_tensorflow(files: list[str], tmp_path: Path) -> None:
    some = [files[2], files[3], str(tmp_path / "missing")]
    mixed = in_batches(tf.data.TFRecordDataset(some).shuffle(5).take(40))
    assert len(numbers(tfr.accelerate(mixed))) == 40
    whole = tfr.accelerate(in_batches(tf.data.TFRecordDataset(some)))
    found = []
    with pytest.raises(tf.errors.NotFoundError):
        for batch in whole:
            found += batch.numpy().tolist()
    assert len(found) >= COUNTS[2] + COUNTS[3] - 7


@pytest.mark.parametrize("name", ["interleave", "repeated names"])
def test_a_checkpoint_goes_on_where_it_was_saved(
    files: list[str], name: str, tmp_path: Path
) -> None:
    chains = {"interleave": ORDERED["blocks"], "repeated names": SHUFFLED["repeated names"][1]}
    theirs = in_batches(chains[name](files))
    ours = tfr.accelerate(theirs)
    expected, found = resumed(lambda: ours, 3, tmp_path)
    assert found == expected
    plain = tf.train.Checkpoint(iterator=iter(theirs)).save(str(tmp_path / "plain"))
    with pytest.raises(tf.errors.OpError, match="TFRFAST_ACCELERATE=0"):
        tf.train.Checkpoint(iterator=iter(ours)).restore(plain)
    with pytest.raises(tf.errors.NotFoundError):
        tf.train.Checkpoint(iterator=iter(theirs)).restore(str(tmp_path / "at-3"))


def test_an_explanation_says_what_would_become_of_a_plain_dataset(files: list[str]) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        mixed = in_batches(names_of(files).interleave(read, 3).shuffle(10))
        text = str(tfr.explain(mixed))
        assert "tfr.accelerate(dataset) would be:" in text
        assert "an exact order of all records" in text
        assert "map(record_number)" in text
        words = names_of(files).interleave(tf.data.TextLineDataset).batch(8)
        assert "gains nothing: tfrfast does not plan a function" in str(tfr.explain(words))


def test_users_see_their_own_calls_alone(files: list[str]) -> None:
    """Also without the calls that TensorFlow puts before unbatch() and rebatch()."""
    variable = {"id": tf.io.VarLenFeature(tf.int64)}
    records = tf.data.TFRecordDataset(files)
    sparse = records.map(lambda record: tf.io.parse_single_example(record, variable)).batch(8)
    for each, is_fused in ((records.batch(8), True), (sparse, False)):
        for made, call in ((each.unbatch(), "unbatch()"), (each.rebatch(16), "rebatch(16)")):
            ours = tfr.accelerate(made)
            assert repr(ours).startswith("<AcceleratedDataset")
            *before, last = tfr.explain(ours).steps
            assert [step.call for step in before][-1] == "batch(8)"
            assert last.call == call
            assert last.fused == (is_fused and "rebatch" in call)
            seen, expected = (list(each.as_numpy_iterator()) for each in (ours, made))
            np.testing.assert_equal(seen, expected)


def test_a_shuffle_alone_gains_nothing_before_what_loses(files: list[str]) -> None:
    mixed = tf.data.TFRecordDataset(files).map(tf.strings.length).shuffle(9)
    buckets = mixed.bucket_by_sequence_length(lambda n: n, [4], [8, 8], padded_shapes=[])
    for lost in (buckets, mixed.padded_batch(8, [])):
        assert tfr.accelerate(lost)._variant_tensor is lost._variant_tensor


@pytest.mark.parametrize("batch", [3, 8])
def test_single_elements_of_files_in_any_order_are_made_in_blocks(
    files: list[str], batch: int
) -> None:
    """As the official transformer of tensorflow/models evaluates: filtered, then padded."""
    records = names_of(files).interleave(read, 3, num_parallel_calls=2, deterministic=False)
    rows = records.map(record_number).filter(lambda number: number % 3 > 0)
    theirs = rows.padded_batch(batch, [])
    ours = tfr.accelerate(theirs)
    assert is_planned(ours)
    assert sorted(numbers(ours)) == sorted(numbers(theirs))
    file_after_file = names_of(files).flat_map(read).map(record_number)
    expected = file_after_file.filter(lambda number: number % 3 > 0).padded_batch(batch, [])
    assert [each.numpy().tolist() for each in ours] == [each.numpy().tolist() for each in expected]
