"""TFRecordDataset against tf.data's: the same records, order and errors.

The subjects are those of TensorFlow's own tests of the class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import elements
from record_files import (
    cut,
    flip_length_byte,
    flip_payload_byte,
    frame_starts,
    some_records,
    write_shard,
    write_shards,
)
from tfrfast.storage.remote.options import Storage

tf = pytest.importorskip("tensorflow")
functions = pytest.importorskip("tfrfast.tensorflow.build.functions")
Source = pytest.importorskip("tfrfast.tensorflow.source").Source
FileNames = pytest.importorskip("tfrfast.tensorflow.read.file_names").FileNames
internals = pytest.importorskip("tfrfast.tensorflow.internals")


@pytest.fixture(params=["streaming", "indexed"])
def make(request: pytest.FixtureRequest) -> Any:
    """A way to make our TFRecordDataset: without indexes, or with them."""
    if request.param == "streaming":
        return tfr.TFRecordDataset

    def indexed(filenames: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(filenames, (str, list)):
            for name in [filenames] if isinstance(filenames, str) else filenames:
                if isinstance(name, str) and Path(name).is_file():
                    tfr.Reader(name, compression="", on_corruption="skip").close()
        return tfr.TFRecordDataset(filenames, *arguments, **options)

    return indexed


def written(files: list[str]) -> list[bytes]:
    return elements(tf.data.TFRecordDataset(files))


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return write_shards(tmp_path, [70, 0, 31, 1])


@pytest.fixture
def no_function_is_traced() -> Iterator[None]:
    caches = (functions._attributes, functions._traced_once)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_functions_do_without_an_attribute_that_tensorflow_does_not_know(
    files: list[str], monkeypatch: pytest.MonkeyPatch, no_function_is_traced: None
) -> None:
    assert functions._attributes()  # the versions that are tested know it
    functions._attributes.cache_clear()
    monkeypatch.setattr(functions, "RUNS_AS_IT_STANDS", {"no_such_attribute": True})
    assert elements(tfr.TFRecordDataset(files)) == written(files)
    shuffled = tfr.TFRecordDataset(files).shuffle(1, seed=3)
    assert len(shuffled) == 102
    assert sorted(elements(shuffled)) == sorted(written(files))
    assert not functions._attributes()


def listed(files: list[str]) -> Any:
    return tf.data.Dataset.from_tensor_slices(files)


#: Arguments in all their forms, and places where TensorFlow calls the class.
FORMS: dict[str, Callable[[Any, list[str]], Any]] = {
    "a list": lambda make, files: make(files),
    "one name": lambda make, files: make(files[0]),
    "a path": lambda make, files: make(Path(files[0])),
    "paths": lambda make, files: make([Path(name) for name in files]),
    "a tensor": lambda make, files: make(tf.constant(files)),
    "a scalar": lambda make, files: make(tf.constant(files[0])),
    "a dataset": lambda make, files: make(listed(files)),
    "no files": lambda make, files: make(tf.constant([], tf.string)),
    "no compression": lambda make, files: make(files, ""),
    **{
        f"a buffer of {size}": lambda make, files, size=size: make(files, buffer_size=size)
        for size in (0, 1, 1 << 20)
    },
    **{
        f"{n} in turns": lambda make, files, n=n: make(files, num_parallel_reads=n)
        for n in (1, 2, 3, 10)
    },
    "a dataset in turns": lambda make, files: make(
        listed(files * 3).repeat(2), num_parallel_reads=4
    ),
    "in flat_map": lambda make, files: listed(files).flat_map(make),
    "in interleave": lambda make, files: listed(files).interleave(make, cycle_length=3),
    "vectors in flat_map": lambda make, files: listed(files).batch(2).flat_map(make),
}


@pytest.mark.parametrize("form", FORMS)
def test_records_are_tensorflows(make: Any, files: list[str], form: str) -> None:
    dataset = FORMS[form](make, files)
    assert elements(dataset) == elements(FORMS[form](tf.data.TFRecordDataset, files))
    assert elements(dataset) == elements(dataset)


def test_autotuned_parallel_reads_lose_nothing(make: Any, files: list[str]) -> None:
    read = elements(make(files, num_parallel_reads=tf.data.AUTOTUNE))
    assert sorted(read) == sorted(written(files))


def test_it_may_take_the_place_of_tensorflows(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tf.data, "TFRecordDataset", tfr.TFRecordDataset)
    names = tf.data.Dataset.from_tensor_slices(files)
    one_by_one = list(tf.data.TFRecordDataset(files).as_numpy_iterator())
    within = names.interleave(tf.data.TFRecordDataset, cycle_length=1)
    assert list(within.as_numpy_iterator()) == one_by_one
    with_scheme = tf.data.TFRecordDataset([f"file://{file}" for file in files])
    assert list(with_scheme.as_numpy_iterator()) == one_by_one


def test_a_function_may_read(make: Any, files: list[str]) -> None:
    @tf.function
    def count(names: Any) -> Any:
        return make(names).reduce(tf.constant(0), lambda total, _: total + 1)

    assert count(tf.constant(files)).numpy() == 102


def test_records_of_every_size(make: Any, tmp_path: Path) -> None:
    sizes = [0, 1, 21, 22, 23, 255, 256, 4095, 70_000, 300_000, 1 << 20, (1 << 20) + 1, 3_000_000]
    records = [bytes([i]) * size for i, size in enumerate(sizes)]
    assert elements(make(write_shard(tmp_path / "sizes", records * 2))) == records * 2


class TestRefusals:
    def test_names_that_are_no_strings(self, make: Any) -> None:
        with pytest.raises(TypeError, match="`filenames` argument must contain `tf.string`"):
            make([1, 2])
        with pytest.raises(TypeError, match="`filenames` argument must contain `tf.string`"):
            make(tf.data.Dataset.range(2))

    def test_datasets_of_lists_of_names(self, make: Any) -> None:
        names = tf.data.Dataset.from_tensors(["a", "b"])
        with pytest.raises(TypeError, match=r"shape \[\]"):
            make(names)

    @pytest.mark.parametrize(
        "options",
        [
            {"buffer_size": -1},
            {"compression_type": "gzip"},
            {"compression_type": "LZ4"},
            {"compression_type": "NONE"},
        ],
        ids=str,
    )
    def test_nonsense_is_met_as_tensorflow_meets_it(
        self, make: Any, files: list[str], options: dict[str, Any]
    ) -> None:
        def outcome(make_one: Any) -> Any:
            try:
                return elements(make_one(files, **options))
            except tf.errors.OpError as error:
                return type(error)

        assert outcome(make) == outcome(tf.data.TFRecordDataset)

    def test_missing_file(self, make: Any, files: list[str]) -> None:
        iterator = iter(make([files[2], "/no/such/file", files[0]]))
        got = [next(iterator).numpy() for _ in range(31)]
        assert got == some_records(31, 2)
        with pytest.raises(tf.errors.NotFoundError, match="/no/such/file"):
            next(iterator)

    def test_a_missing_file_does_not_keep_the_next_ones_from_being_read(
        self, files: list[str]
    ) -> None:
        dataset = tfr.TFRecordDataset([files[2], "/no/such/file", files[0]])
        assert elements(dataset.ignore_errors()) == some_records(31, 2) + some_records(70, 0)

    def test_a_folder(self, make: Any, tmp_path: Path) -> None:
        with pytest.raises(tf.errors.OpError):
            elements(make(str(tmp_path)))


class TestDamage:
    RECORDS = some_records(60, longest=400)

    @pytest.fixture
    def damaged(self, tmp_path: Path) -> list[str]:
        return [
            write_shard(tmp_path / "damaged", self.RECORDS),
            write_shard(tmp_path / "whole", some_records(20, 7)),
        ]

    def read_until_error(self, dataset: Any) -> tuple[list[bytes], Exception | None]:
        got = []
        try:
            for element in dataset:
                got.append(element.numpy())
        except tf.errors.OpError as error:
            return got, error
        return got, None

    @pytest.mark.parametrize(
        ("damage", "good"),
        [
            *((flip_payload_byte, number) for number in (0, 1, 25, 59)),
            *((flip_length_byte, number) for number in (0, 25, 59)),
            *((lambda path, *_, missing=n: cut(path, -missing), 59) for n in (1, 4, 5, 20)),
        ],
    )
    def test_comes_after_the_good_records(
        self, make: Any, damaged: list[str], damage: Any, good: int
    ) -> None:
        damage(damaged[0], self.RECORDS, good)
        got, error = self.read_until_error(make(damaged))
        assert got == self.RECORDS[:good]
        assert isinstance(error, tf.errors.DataLossError)

    @pytest.mark.parametrize("left", [1, 4, 11, 12])
    def test_a_tail_too_short_for_a_header_is_the_end(
        self, make: Any, damaged: list[str], left: int
    ) -> None:
        """Both tested TensorFlow versions take such a tail for the end of the shard. With 12 bytes,
        the header is whole and the payload is missing.
        """
        end = frame_starts(self.RECORDS)[59]
        cut(damaged[0], end + left)
        got, error = self.read_until_error(make(damaged))
        if left < 12:
            assert error is None
            assert got == self.RECORDS[:59] + some_records(20, 7)
        else:
            assert got == self.RECORDS[:59]
            assert isinstance(error, tf.errors.DataLossError)

    def test_a_tail_too_short_for_a_header_keeps_no_shuffle_from_being_made(
        self, damaged: list[str]
    ) -> None:
        cut(damaged[0], frame_starts(self.RECORDS)[59] + 5)
        dataset = tfr.TFRecordDataset(damaged).shuffle(1)
        assert sorted(elements(dataset)) == sorted(self.RECORDS[:59] + some_records(20, 7))
        assert len(elements(dataset.batch(100).unbatch())) == 79

    @pytest.mark.parametrize(
        "chain",
        [
            lambda source: source.batch(1),
            lambda source: source.batch(64),
            lambda source: source.batch(3).prefetch(1).rebatch(8),
            lambda source: source.cache("").map(tf.identity).batch(8),
            lambda source: source.filter(lambda record: tf.size(record) > 0).batch(8),
            lambda source: source.with_options(tf.data.Options()).skip(3).padded_batch(8, []),
        ],
    )
    @pytest.mark.parametrize("damage", [flip_payload_byte, flip_length_byte])
    def test_ignored_errors_lose_no_more_than_tensorflows(
        self, make: Any, damaged: list[str], damage: Any, chain: Callable[[Any], Any]
    ) -> None:
        for number in (3, 40):
            damage(damaged[0], self.RECORDS, number)

        def survivors(dataset: Any) -> set[bytes]:
            return set(elements(chain(dataset).ignore_errors().unbatch()))

        assert survivors(make(damaged)) >= survivors(tf.data.TFRecordDataset(damaged))

    @pytest.mark.parametrize("damage", [flip_payload_byte, flip_length_byte])
    def test_may_be_skipped(self, damaged: list[str], damage: Any) -> None:
        damage(damaged[0], self.RECORDS, 25)
        expected = self.RECORDS[:25] + self.RECORDS[26:] + some_records(20, 7)
        dataset = tfr.TFRecordDataset(damaged, on_corruption="skip")
        assert elements(dataset) == expected
        assert elements(dataset.batch(7).unbatch()) == expected

    def test_structural_damage_ends_a_shuffle_at_once(self, damaged: list[str]) -> None:
        cut(damaged[0], -1)
        with pytest.raises(tf.errors.DataLossError, match="damaged"):
            iter(tfr.TFRecordDataset(damaged).shuffle(10))

    @pytest.mark.parametrize("order", ["given", "shuffled"])
    def test_a_batch_that_is_hit_is_an_error_and_then_the_rest_of_it(
        self, damaged: list[str], order: str
    ) -> None:
        flip_payload_byte(damaged[0], self.RECORDS, 25)
        tfr.Reader(damaged, compression="").close()
        dataset = tfr.TFRecordDataset(damaged)
        if order == "shuffled":
            dataset = dataset.shuffle(1, seed=3)
        dataset = dataset.batch(80)
        assert dataset.cardinality().numpy() == 1
        iterator = iter(dataset)
        with pytest.raises(tf.errors.DataLossError):
            next(iterator)
        behind = [record for batch in iterator for record in batch.numpy().tolist()]
        expected = self.RECORDS[:25] + self.RECORDS[26:] + some_records(20, 7)
        assert sorted(behind) == sorted(expected)

    def test_the_tail_of_the_last_shard_is_not_missed(self, make: Any, damaged: list[str]) -> None:
        cut(damaged[1], -1)
        got, error = self.read_until_error(make(damaged))
        assert got == self.RECORDS + some_records(20, 7)[:19]
        assert isinstance(error, tf.errors.DataLossError)

    def test_full_batches_that_are_hit_are_lost_alone(self, damaged: list[str]) -> None:
        flip_payload_byte(damaged[0], self.RECORDS, 25)
        tfr.Reader(damaged, compression="").close()
        dataset = tfr.TFRecordDataset(damaged).batch(20, drop_remainder=True)
        assert dataset.element_spec.shape == [20]
        iterator = iter(dataset)
        assert next(iterator).numpy().tolist() == self.RECORDS[:20]
        with pytest.raises(tf.errors.DataLossError, match="record 25"):
            next(iterator)
        got = elements(dataset.ignore_errors().unbatch())
        assert got == self.RECORDS[:20] + self.RECORDS[40:] + some_records(20, 7)


def test_open_shards_are_not_closed_under_threads_that_outlive_the_program(
    files: list[str],
) -> None:
    names = FileNames(None, None, [files[0].encode()])
    planned = Source(names, False, "", Storage(None)).planned(build_indexes=True)
    assert not planned.plan._closing.atexit


@pytest.mark.parametrize("lacks", ["the class", "an argument"])
def test_a_tensorflow_without_the_private_names_reads_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacks: str, no_function_is_traced: None
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise TypeError("got an unexpected keyword argument")

    records = some_records(9)
    path = write_shard(tmp_path / "data.tfrecord", records)
    if lacks == "the class":
        monkeypatch.setattr(internals, "_concrete_function", None)
    else:
        monkeypatch.setattr(internals, "_graph_of_python", refuse)
    batches = tfr.TFRecordDataset(path).batch(4).as_numpy_iterator()
    assert [record for batch in batches for record in batch] == records
    shuffled = tfr.TFRecordDataset(path).shuffle(9, seed=1).batch(4).as_numpy_iterator()
    assert sorted(record for batch in shuffled for record in batch) == sorted(records)
