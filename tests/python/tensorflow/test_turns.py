"""Interleaved files (num_parallel_reads): the order is TensorFlow's, whole batches are planned."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import elements, write_examples
from record_files import flip_payload_byte, some_records, write_shards

tf = pytest.importorskip("tensorflow")

from tensorflow_child import FEATURES  # noqa: E402
from tfrfast.tensorflow.read import sources  # noqa: E402
from tfrfast.tensorflow.source import Source  # noqa: E402

pytestmark = pytest.mark.newest

COUNTS = [9, 0, 23, 4, 4, 1, 0, 30, 2]
Chain = Callable[[Any], Any]


def number_of(record: Any) -> Any:
    return tf.io.parse_single_example(record, FEATURES)["id"] * 2


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_shards(tmp_path_factory.mktemp("turns"), COUNTS)


CHAINS: dict[str, Chain] = {
    "records": lambda source: source,
    "batches": lambda source: source.batch(4),
    "full batches": lambda source: source.batch(5, drop_remainder=True),
    "part of the records": lambda source: source.skip(3).shard(3, 1).take(17),
    "part, in batches": lambda source: source.skip(3).shard(3, 1).take(17).batch(4),
    "nothing": lambda source: source.skip(100).batch(4),
    "epochs": lambda source: source.take(50).repeat(2).batch(8),
    "epochs of records": lambda source: source.shard(2, 0).repeat(2),
    "epochs of batches": lambda source: source.batch(8).repeat(2),
    "mapped batches": lambda source: source.map(tf.strings.length).take(40).batch(8),
    "prefetched": lambda source: source.prefetch(20).batch(8).prefetch(1),
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("reads", [1, 2, 3, 7, 100])
def test_the_order_is_tensorflows(files: list[str], chain: str, reads: int) -> None:
    ours, theirs = (
        CHAINS[chain](library.TFRecordDataset(files, num_parallel_reads=reads))
        for library in (tfr, tf.data)
    )
    assert elements(ours) == elements(theirs)
    assert ours.element_spec == theirs.element_spec


def test_any_files_take_turns_as_with_tensorflow(tmp_path: Path) -> None:
    chance = random.Random(8)
    for trial in range(6):
        counts = [chance.choice([0, 1, 2, 5, 40]) for _ in range(chance.randint(1, 12))]
        folder = tmp_path / str(trial)
        folder.mkdir()
        files = write_shards(folder, counts)
        reads = chance.randint(2, 6)
        theirs = elements(tf.data.TFRecordDataset(files, num_parallel_reads=reads).batch(7))
        ours = tfr.TFRecordDataset(files, num_parallel_reads=reads).batch(7)
        assert elements(ours) == theirs, (counts, reads)


@pytest.mark.parametrize(("processors", "turns"), [(1, 1), (3, 1), (4, 2), (16, 6)])
def test_the_runtimes_choice_is_foreseen(
    files: list[str], processors: int, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Returns interleave()'s choice for that number of processors, in TensorFlow 2.15 and 2.21."""
    monkeypatch.setattr(sources, "usable_processors", lambda: processors)
    chosen = tfr.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE).batch(4)
    given = tf.data.TFRecordDataset(files, num_parallel_reads=turns).batch(4)
    assert elements(chosen) == elements(given)


def test_the_runtimes_choice_is_made_here() -> None:
    """Holds interleave() to our choice, for the processors of this machine."""
    dataset = tf.data.Dataset.range(64).interleave(
        lambda file: tf.data.Dataset.from_tensors(file).repeat(2),
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    assert elements(dataset).index(0, 1) == sources.turns_of_the_runtime()


def test_the_parse_is_lifted_out_and_batches_can_be_parsed(tmp_path: Path) -> None:
    files = write_examples(tmp_path, [21, 9, 13, 17])
    theirs = tf.data.TFRecordDataset(files, num_parallel_reads=3).map(number_of).batch(8)
    source = tfr.TFRecordDataset(files, num_parallel_reads=3)
    lifted = source.map(number_of).batch(8)
    assert [step.fused for step in tfr.explain(lifted).steps] == [True, True]
    assert elements(lifted) == elements(theirs)
    parsed = source.batch(8).parse_example(FEATURES).map(lambda batch: batch["id"] * 2)
    assert elements(parsed) == elements(theirs)
    assert sorted(elements(source.shuffle(9).map(number_of))) == sorted(elements(theirs.unbatch()))


def test_no_index_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write_shards(tmp_path, COUNTS)
    built = []
    planned = Source.planned

    def watched(self: Source, build_indexes: bool) -> Source | None:
        built.append(build_indexes)
        return planned(self, build_indexes)

    monkeypatch.setattr(Source, "planned", watched)
    dataset = tfr.TFRecordDataset(files, num_parallel_reads=2).take(40).repeat(2)
    assert len(list(dataset)) == 80
    assert len(elements(dataset.batch(8))) == 10
    assert not any(built)


def test_what_is_left_of_files_that_take_turns_is_shuffled_through_a_buffer(
    files: list[str],
) -> None:
    source = tfr.TFRecordDataset(files, num_parallel_reads=3).take(20)
    step = tfr.explain(source.shuffle(5, seed=1)).steps[-1]
    assert not step.fused
    assert "interleaved" in step.why
    assert sorted(elements(source.shuffle(50))) == sorted(elements(source))


class TestDamage:
    @pytest.fixture
    def damaged(self, tmp_path: Path) -> list[str]:
        files = write_shards(tmp_path, COUNTS)
        flip_payload_byte(files[2], some_records(COUNTS[2], 2), 5)
        return files

    def test_comes_in_its_turn(self, damaged: list[str]) -> None:
        def good_batches(library: Any) -> list[Any]:
            seen = []
            dataset = library.TFRecordDataset(damaged, num_parallel_reads=2).batch(4)
            with pytest.raises(tf.errors.DataLossError):
                for batch in dataset:
                    seen.append(batch.numpy().tolist())
            return seen

        theirs = good_batches(tf.data)
        assert theirs
        ours = good_batches(tfr)
        assert ours[: len(theirs)] == theirs

    def test_at_the_end_of_a_file_comes_in_its_turn(self, tmp_path: Path) -> None:
        files = write_shards(tmp_path, COUNTS)
        Path(files[2]).write_bytes(Path(files[2]).read_bytes()[:-3])

        def outcomes(library: Any) -> list[Any]:
            iterator = iter(library.TFRecordDataset(files, num_parallel_reads=2).batch(4))
            seen: list[Any] = []
            while True:
                try:
                    seen.append(next(iterator).numpy().tolist())
                except StopIteration:
                    return seen
                except tf.errors.DataLossError:
                    seen.append("damage")

        assert outcomes(tfr) == outcomes(tf.data)

    def test_a_missing_file_is_told_when_it_is_read(self, files: list[str]) -> None:
        dataset = tfr.TFRecordDataset([*files, files[0] + "x"], num_parallel_reads=2).batch(4)
        with pytest.raises(tf.errors.NotFoundError):
            elements(dataset)

    def test_is_left_out(self, damaged: list[str]) -> None:
        dataset = tfr.TFRecordDataset(damaged, num_parallel_reads=2, on_corruption="skip")
        batched = dataset.batch(4)
        assert sum(map(len, elements(batched))) == sum(COUNTS) - 1
