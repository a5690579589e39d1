"""Places in file order: files that change under an iterator, and what is walked and lost."""

from __future__ import annotations

import gc
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import outcomes
from patience import PATIENCE_S
from record_files import cut, frame_starts, some_records, write_shards

tf = pytest.importorskip("tensorflow")

from tfrfast.tensorflow.build.file_order import FileOrder  # noqa: E402
from tfrfast.tensorflow.library import ops  # noqa: E402
from tfrfast.tensorflow.sequence import EVERYTHING  # noqa: E402

Pipeline = Callable[[Any], Any]

PIPELINES: dict[str, Pipeline] = {
    "records": lambda source: source,
    "skip": lambda source: source.skip(3),
    "shard": lambda source: source.shard(2, 1),
    "batches": lambda source: source.batch(7),
    "mapped": lambda source: source.map(tf.strings.length).batch(16),
    "window": lambda source: source.window(2).flat_map(lambda window: window.batch(2)),
}


def values(iterator: Any) -> list[Any]:
    return [each.tolist() if hasattr(each, "tolist") else each for each in iterator]


def remove(path: Path) -> None:
    path.unlink()


def rename(path: Path) -> None:
    path.rename(f"{path}.elsewhere")


def replace(path: Path) -> None:
    shutil.copy(path, f"{path}.new")
    with open(f"{path}.new", "r+b") as file:
        file.truncate(1000)
    os.replace(f"{path}.new", path)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(path.read_bytes()[:500])


@pytest.mark.parametrize("change", [remove, rename, replace, grow])
def test_an_iterator_reads_the_files_that_it_opened(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    names = write_shards(tmp_path, [300, 100], longest=2_000)
    datasets = [
        PIPELINES[name](tfr.TFRecordDataset(names, num_parallel_reads=turns))
        for name, turns in (("records", None), ("shard", None), ("batches", None), ("batches", 2))
    ]
    expected = [values(dataset.as_numpy_iterator()) for dataset in datasets]
    begun = [dataset.as_numpy_iterator() for dataset in datasets]
    found = [values(next(iterator) for _ in range(15)) for iterator in begun]
    change(Path(names[0]))
    time.sleep(1.1)  # longer than the files of a shuffle are left unchecked
    assert [head + values(rest) for head, rest in zip(found, begun, strict=True)] == expected


def test_an_iterator_reads_files_that_it_has_only_walked(tmp_path: Path) -> None:
    names = write_shards(tmp_path, [300, 200], longest=20)
    dataset = tfr.TFRecordDataset(names).batch(7)
    expected = values(dataset.as_numpy_iterator())
    iterator = dataset.as_numpy_iterator()
    found = values([next(iterator)])
    for name in names:
        _wait_for_index(name)
    for name in names:
        _rewrite(name)
    list(dataset.take(1))  # another iteration looks at the files
    assert found + values(iterator) == expected


def test_a_shuffle_goes_on_with_its_files_beside_one_of_their_successors(tmp_path: Path) -> None:
    names = write_shards(tmp_path, [3000, 2000], longest=20)

    def shuffled() -> Any:
        return tfr.TFRecordDataset(names).shuffle(1, 1, False).batch(16)

    dataset = shuffled()
    before = values(dataset.as_numpy_iterator())
    iterator = dataset.as_numpy_iterator()
    found = values([next(iterator)])
    for name in names:
        _rewrite(name)
    after = sorted(tf.data.TFRecordDataset(names).as_numpy_iterator())
    for again in (shuffled(), dataset):
        assert sorted(again.unbatch().as_numpy_iterator()) == after
    assert found + values(iterator) == before


def _wait_for_index(name: str) -> None:
    """Waits until an iterator has walked through the whole file."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return tfr.Reader(name, index="require").close()
        except tfr.StaleIndexError:
            assert time.monotonic() < end
            time.sleep(0.01)


def _rewrite(name: str) -> None:
    """Replaces a file by one of as many records and bytes, with the records' bytes reversed, and
    their order, too.
    """
    records = [record[::-1] for record in tf.data.TFRecordDataset(name).as_numpy_iterator()]
    with tf.io.TFRecordWriter(f"{name}.new") as writer:
        for record in records[::-1]:
            writer.write(record)
    os.replace(f"{name}.new", name)


def test_a_checkpoint_of_another_file_is_refused(tmp_path: Path) -> None:
    names = write_shards(tmp_path, [3000, 30])
    iterator = iter(tfr.TFRecordDataset(names).batch(10))
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))
    del iterator
    gc.collect()  # closes the files
    replace(Path(names[0]))
    again = iter(tfr.TFRecordDataset(names).batch(10))
    tf.train.Checkpoint(iterator=again).read(path)
    with pytest.raises(tf.errors.FailedPreconditionError, match="replaced or changed"):
        list(again)


def test_files_are_opened_when_their_records_are_wanted(tmp_path: Path) -> None:
    (name,) = write_shards(tmp_path, [100])
    source = tfr.TFRecordDataset([name, str(tmp_path / "missing")])
    assert len(list(source.take(100))) == 100
    assert len(list(source.take(100).batch(10))) == 10
    with pytest.raises(tf.errors.NotFoundError):
        list(source.take(101))


@pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)
@pytest.mark.parametrize("is_indexed", [False, True], ids=["unknown", "indexed"])
def test_records_before_damage_come_before_the_error(
    tmp_path: Path, pipeline: Pipeline, is_indexed: bool
) -> None:
    names = write_shards(tmp_path, [30, 10])
    cut(names[0], frame_starts(some_records(30, 0))[17] + 20)
    if is_indexed:
        tfr.Reader(names, on_corruption="skip").close()
    theirs = outcomes(pipeline(tf.data.TFRecordDataset(names)))
    assert tf.errors.DataLossError in theirs
    assert outcomes(pipeline(tfr.TFRecordDataset(names))) == theirs


def test_a_device_without_bytes_has_no_records(tmp_path: Path) -> None:
    (name,) = write_shards(tmp_path, [10])
    for names in ([os.devnull], [os.devnull, name], [name, os.devnull]):
        theirs = values(tf.data.TFRecordDataset(names).as_numpy_iterator())
        assert values(tfr.TFRecordDataset(names).as_numpy_iterator()) == theirs
        assert len(tfr.Reader(names)) == len(theirs)


def test_a_place_of_another_version_is_refused(tmp_path: Path) -> None:
    (name,) = write_shards(tmp_path, [10])
    source = tfr.TFRecordDataset(name).batch(7)._work.plan.pipeline.source
    _, text, _, wanted = FileOrder(source)._given(EVERYTHING)

    def walked(state: list[int]) -> list[int]:
        made = ops.tfrfast_walk(text, wanted, tf.constant(state, tf.int64), tf.zeros(2, tf.int64))
        return made[0].numpy().tolist()

    state = walked([])
    assert walked(state)
    state[3] += 1  # the layout, of which every version has another
    with pytest.raises(tf.errors.InvalidArgumentError, match="not a place"):
        walked(state)


def test_a_place_between_large_batches_is_refused_by_small_ones(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with tfr.Writer(path) as writer:
        writer.write_batch([b"x" * 1000] * 20_000)
    large = iter(tfr.TFRecordDataset(str(path)).batch(100))
    next(large)
    saved = tf.train.Checkpoint(iterator=large).save(str(tmp_path / "saved"))
    small = iter(tfr.TFRecordDataset(str(path)).batch(10))
    with pytest.raises(tf.errors.InvalidArgumentError, match="not a place"):
        tf.train.Checkpoint(iterator=small).restore(saved)
        list(small)
