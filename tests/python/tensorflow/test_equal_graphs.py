"""Equal constructions of a dataset are equal graphs. So the folder of a snapshot, which TensorFlow
derives from the graph, does not depend on earlier datasets.

The tests compare graphs and not TensorFlow's fingerprints: a dataset with several functions has
other fingerprints each time, even with TensorFlow's own classes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from example_files import write_examples
from graph_digests import graph_digest

tf = pytest.importorskip("tensorflow")

SPECS = {"id": tf.io.FixedLenFeature([], tf.int64)}
Make = Callable[[Any], Any]

MAKERS: dict[str, Make] = {
    "records": lambda source: source,
    "batches": lambda source: source.batch(3),
    "shuffled": lambda source: source.shuffle(1, seed=1),
    "shuffled once": lambda source: source.shuffle(1, seed=1, reshuffle_each_iteration=False),
    "shuffled batches": lambda source: source.shuffle(1, seed=1).batch(3),
    "epochs": lambda source: source.shuffle(1, seed=1).repeat(2).batch(3),
    "columns": lambda source: source.shuffle(1, seed=1).batch(3).parse_example(SPECS),
    "full columns": lambda source: source.batch(3, drop_remainder=True).parse_example(SPECS),
    "no seed": lambda source: source.shuffle(1).batch(3),
    "a piece": lambda source: source.skip(2).take(20).shard(3, 1).shuffle(1, seed=1).batch(3),
}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return write_examples(tmp_path, [20, 0, 13])


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("is_indexed", [False, True], ids=["streaming", "planned"])
def test_equal_constructions_are_equal_graphs(
    files: list[str], make: Make, is_indexed: bool
) -> None:
    if is_indexed:
        tfr.Reader(files).close()
    assert (tfr.TFRecordDataset(files).cardinality() == 33) == is_indexed
    one = graph_digest(make(tfr.TFRecordDataset(files)))
    tf.random.set_seed(5)  # since then, other datasets have used seeds, names and numbers
    tf.data.Dataset.range(3).shuffle(3).map(lambda number: number + 1)
    tf.compat.v1.set_random_seed(None)
    assert graph_digest(make(tfr.TFRecordDataset(files))) == one


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_indexes_change_no_graph(files: list[str], make: Make) -> None:
    before = graph_digest(make(tfr.TFRecordDataset(files)))
    tfr.Reader(files).close()
    assert tfr.TFRecordDataset(files).cardinality() == 33
    assert graph_digest(make(tfr.TFRecordDataset(files))) == before


def test_a_loader_makes_equal_graphs(files: list[str]) -> None:
    def make(seed: int) -> str:
        loader = tfr.Loader(files, 4, features=SPECS, seed=seed)
        return graph_digest(loader.to_tf_dataset(epochs=2))

    assert make(1) == make(1)
    assert make(1) != make(2)


def test_what_differs_makes_another_graph(files: list[str]) -> None:
    tfr.Reader(files).close()
    digests = [graph_digest(make(tfr.TFRecordDataset(files))) for make in MAKERS.values()]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize("reshuffles", [False, True])
def test_the_users_seed_is_part_of_the_graph(files: list[str], reshuffles: bool) -> None:
    def make(seed: int) -> str:
        source = tfr.TFRecordDataset(files)
        return graph_digest(source.shuffle(1, seed=seed, reshuffle_each_iteration=reshuffles))

    assert make(1) != make(2)


def test_a_seed_that_was_drawn_is_left_out_as_tensorflow_leaves_out_its_own(
    files: list[str],
) -> None:
    source = tfr.TFRecordDataset(files)
    one, other = source.shuffle(1), source.shuffle(1)
    assert list(one.as_numpy_iterator()) != list(other.as_numpy_iterator())
    assert graph_digest(one) == graph_digest(other)
    theirs = [tf.data.TFRecordDataset(files).shuffle(50) for _ in range(2)]
    assert graph_digest(theirs[0]) == graph_digest(theirs[1])


SNAPSHOTS: dict[str, Make] = {
    "records": lambda source: source,
    "a piece": lambda source: source.skip(2).take(20).shard(3, 1),
    "epochs": lambda source: source.repeat(2).batch(3),
    "epochs of batches": lambda source: source.batch(3, drop_remainder=True).repeat(2).prefetch(2),
    "single maps": lambda source: source.map(tf.strings.length).batch(3).take(5).prefetch(2),
    "padded": lambda source: source.map(lambda each: tf.reshape(each, [1])).padded_batch(3),
    "maps": lambda source: source.batch(3).map(tf.strings.length).map(tf.square),
    "another method": lambda source: source.batch(3).take_while(lambda _: True).map(tf.size),
}


@pytest.mark.parametrize("make", SNAPSHOTS.values(), ids=SNAPSHOTS)
@pytest.mark.parametrize("reads", [None, 2])
def test_a_snapshot_is_found_again(
    files: list[str], tmp_path: Path, make: Make, reads: int | None
) -> None:
    def elements(source: Any) -> list[Any]:
        return [each.tolist() for each in map(np.asarray, source.as_numpy_iterator())]

    expected = elements(make(tf.data.TFRecordDataset(files, num_parallel_reads=reads)))
    kept = tmp_path / "snapshot"
    for _ in range(3):
        source = make(tfr.TFRecordDataset(files, num_parallel_reads=reads)).snapshot(str(kept))
        assert elements(source) == expected
    # TensorFlow itself gives a function several fingerprints, about once in a hundred graphs.
    if make not in [
        SNAPSHOTS[name] for name in ("single maps", "padded", "maps", "another method")
    ]:
        assert len([each for each in kept.iterdir() if each.is_dir()]) == 1
    assert "TensorFlow's own reader reads for it" in str(tfr.explain(source))


@pytest.mark.parametrize(
    "make",
    [
        lambda files: tfr.TFRecordDataset(files).shuffle(1, seed=1).batch(3),
        lambda files: tfr.TFRecordDataset(files, on_corruption="skip").batch(3),
    ],
    ids=["shuffled", "skip"],
)
def test_other_snapshots_hold_what_they_are_made_of_and_say_that_none_is_found(
    files: list[str], tmp_path: Path, make: Make
) -> None:
    source = make(files).snapshot(str(tmp_path / "snapshot"))
    assert len(list(source)) == 11
    assert "it writes its files again in each run" in str(tfr.explain(source))
