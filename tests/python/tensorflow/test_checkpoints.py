"""Iterators saved and restored, at every position."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import elements, plain, write_examples
from record_files import write_shards

tf = pytest.importorskip("tensorflow")

from against_tensorflow import resumed  # noqa: E402

COUNTS = [6, 0, 7, 2]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return write_shards(tmp_path, COUNTS)


def planned(files: list[str]) -> Any:
    tfr.Reader(files).close()
    return tfr.TFRecordDataset(files)


DATASETS: dict[str, Callable[[list[str]], Any]] = {
    "stream": tfr.TFRecordDataset,
    "stream, batches": lambda files: tfr.TFRecordDataset(files).batch(4),
    "names": lambda files: tfr.TFRecordDataset(tf.data.Dataset.from_tensor_slices(files)),
    "parallel reads": lambda files: tfr.TFRecordDataset(files, num_parallel_reads=2),
    "planned": planned,
    "planned, batches": lambda files: planned(files).repeat(2).batch(5),
    "planned, part": lambda files: planned(files).skip(3).shard(2, 1).repeat(2),
    "shuffled": lambda files: planned(files).shuffle(1, seed=1),
    "shuffled, batches": lambda files: planned(files).shuffle(1, seed=1).batch(3),
    "shuffled, epochs": lambda files: planned(files).shuffle(1, seed=1).batch(3).repeat(3),
    "shuffled once": lambda files: planned(files).shuffle(
        1, seed=1, reshuffle_each_iteration=False
    ),
    "blocks": lambda files: planned(files).shuffle(seed=1, order=tfr.BlockShuffle(4, 2)).batch(3),
    "prefetched": lambda files: planned(files).shuffle(1, seed=1).batch(3).prefetch(2),
}


def test_all_iterations_are_of_one_dataset(files: list[str]) -> None:
    """TensorFlow optimises each dataset once, which takes longer than an epoch of a few batches."""
    shuffled = planned(files).shuffle(9).batch(4)
    seen = [id(shuffled._apply_debug_options()) for _ in range(3)]
    assert len(set(seen)) == 1
    assert shuffled._apply_debug_options() is not shuffled, "it has options of its own"
    for _ in range(2):
        assert sorted(r for batch in shuffled for r in batch.numpy()) == sorted(
            record.numpy() for record in tf.data.TFRecordDataset(files)
        )


# TensorFlow has no symbolic checkpoints of interleave(). Another test holds the defaults.
NOT_SYMBOLIC = ["parallel reads"]
EXPLICIT = [*NOT_SYMBOLIC, "stream, batches", "planned", "planned, part", "shuffled, epochs"]


@pytest.mark.parametrize(
    ("name", "symbolic"),
    [*((name, True) for name in DATASETS if name not in NOT_SYMBOLIC)]
    + [(name, False) for name in EXPLICIT],
)
def test_restores_at_every_position(
    files: list[str], name: str, symbolic: bool, tmp_path: Path
) -> None:
    dataset = DATASETS[name](files).with_options(symbolic_options(symbolic))
    iterator = iter(dataset)
    checkpoint = tf.train.Checkpoint(iterator=iterator)

    def save(position: int) -> str:
        return str(checkpoint.write(str(tmp_path / f"saved-{position}")))

    saved = [save(0)]
    seen = []
    for element in iterator:
        seen.append(plain(element))
        saved.append(save(len(seen)))
    assert seen

    for position in range(0, len(saved), max(1, len(saved) // 5)):
        again = iter(dataset)
        for _ in range(position % 3):  # also after reading other batches
            next(again, None)
        tf.train.Checkpoint(iterator=again).read(saved[position]).assert_consumed()
        assert elements(again) == seen[position:], position


POSITIONS_ALONE = "Checkpoints of its iterators hold positions alone."


def looked_up(records: Any) -> Any:
    """Has tables, and an assert in a branch: TensorFlow counts neither as state."""
    known = tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([0], tf.int64))
    table = tf.lookup.StaticVocabularyTable(known, 3)

    def checked(words: Any) -> Any:
        tf.debugging.assert_non_negative(words)
        return words

    def look_up(batch: Any) -> Any:
        words = table.lookup(batch)
        return tf.cond(tf.size(words) > 9, lambda: checked(words), lambda: -words)

    return records.batch(50).map(look_up)


@pytest.mark.parametrize(
    "make",
    [
        lambda files: tfr.TFRecordDataset(files).shuffle(1).batch(50).prefetch(2),
        lambda files: tfr.TFRecordDataset(files).shuffle(1).batch(50).map(tf.size).repeat(2),
        lambda files: looked_up(tfr.TFRecordDataset(files).shuffle(1)),
        lambda files: tfr.Loader(files, 50).to_tf_dataset().prefetch(2),
    ],
    ids=["shuffle", "map", "tables and asserts", "loader"],
)
def test_shuffles_and_loaders_save_positions(
    make: Callable[[list[str]], Any], tmp_path: Path
) -> None:
    files = write_shards(tmp_path, [2000], longest=4000)
    dataset = make(files)
    assert str(tfr.explain(dataset)).endswith(POSITIONS_ALONE)
    iterator = iter(dataset)
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))
    assert sum(file.stat().st_size for file in Path(path).parent.glob("saved*")) < 20_000


@pytest.mark.parametrize(
    "chain",
    [
        lambda source: source.shuffle(5),
        lambda source: source.map(tf.identity, 2, deterministic=False),
        lambda source: tf.data.Dataset.zip((source, source)),
        lambda source: source.with_options(symbolic_options(False)),
    ],
)
def test_all_is_saved_where_positions_cannot_be(files: list[str], chain: Any) -> None:
    dataset = chain(planned(files).shuffle(1))
    said = str(tfr.explain(dataset))
    assert "Checkpoints of its iterators hold all that is read ahead: " in said
    assert dataset._apply_debug_options().options().experimental_symbolic_checkpoint is not True


def test_file_order_says_nothing_of_checkpoints(files: list[str]) -> None:
    assert "Checkpoints" not in str(tfr.explain(planned(files).batch(3)))


SPECS = {"id": tf.io.FixedLenFeature([], tf.int64)}
IN_FILE_ORDER: dict[str, Callable[[Any], Any]] = {
    "records": lambda source: source,
    "part": lambda source: source.skip(3).shard(2, 1).repeat(2),
    "batches": lambda source: source.repeat(2).batch(4),
    "full batches": lambda source: source.take(11).batch(4, drop_remainder=True).repeat(3),
    "columns": lambda source: source.batch(4).parse_example(SPECS),
    "full columns": lambda source: source.batch(4, drop_remainder=True).parse_example(SPECS),
    "symbolic": lambda source: source.batch(4).with_options(symbolic_options()),
    "blocks": lambda source: source.skip(23).shard(2, 1).batch(2),
    "symbolic blocks": lambda source: (
        source.skip(23).shard(2, 1).batch(2).with_options(symbolic_options())
    ),
}


def symbolic_options(are_symbolic: bool = True) -> Any:
    options = tf.data.Options()
    options.experimental_symbolic_checkpoint = are_symbolic
    return options


@pytest.mark.newest
@pytest.mark.parametrize("name", IN_FILE_ORDER)
@pytest.mark.parametrize("indexed_first", [False, True], ids=["saved without", "saved with"])
def test_restores_whether_there_are_indexes_or_not(
    name: str, indexed_first: bool, tmp_path: Path, cache: Path
) -> None:
    has_blocks = "blocks" in name  # of records that are passed over
    files = (
        write_shards(tmp_path, [40, 30], longest=600_000)
        if has_blocks
        else write_examples(tmp_path, COUNTS)
    )
    chain = IN_FILE_ORDER[name]
    are_indexed = indexed_first

    def dataset() -> Any:
        """With indexes and without, in turns."""
        nonlocal are_indexed
        shutil.rmtree(cache, ignore_errors=True)
        if are_indexed:
            tfr.Reader(files).close()
        are_indexed = not are_indexed
        return chain(tfr.TFRecordDataset(files))

    expected = elements(chain(tfr.TFRecordDataset(files, num_parallel_reads=1)))
    for position in (1, 7 if has_blocks else 2):
        left, found = resumed(dataset, position, tmp_path)
        assert found == left == expected[position:]
