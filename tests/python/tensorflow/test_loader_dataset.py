"""Loader.to_tf_dataset: the loader's batches as tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from counted import assert_counted
from example_files import elements, plain, write_examples
from mixed_files import mixture_of, write_sets
from record_files import flip_byte

tf = pytest.importorskip("tensorflow")
internals = pytest.importorskip("tfrfast.tensorflow.internals")

COUNT = 101
FEATURES = {
    "id": tfr.FixedLen((), "int32"),
    "dense": tfr.FixedLen((3,), "float32"),
    "name": tfr.FixedLen((), "bytes"),
    "absent": tfr.FixedLen((2,), "int64", default=[7, 8]),
    "nameless": tfr.FixedLen((), "bytes", default=b"a default that is longer than 22 bytes"),
    "raw": tfr.FixedLen((2, 2), "uint16", raw=True),
    "numbers": tfr.VarLen("int64"),
    "words": tfr.VarLen("bytes"),
    "weights": tfr.FixedLenSequence((), "float32", default=-1.0),
    "lengths": tfr.VarLen("int64", sparse=True),
    "numbers, sparse": tfr.VarLen("int64", sparse=True, key="numbers"),
    "divided": tfr.VarLen("int64", key="numbers", partitions=[("uniform_row_length", 1)]),
    "placed": tfr.SparseIndexed("positions", "numbers", "int64", 10),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("examples"), [40, 0, 60, 1])


def batches(loader: tfr.Loader, epochs: int = 1) -> list[Any]:
    return [
        (plain(dict(batch)), batch.indices.tolist(), batch.valid.tolist())
        for _ in range(epochs)
        for batch in loader
    ]


PLANS: dict[str, dict[str, Any]] = {
    "default": {},
    "in order": {"shuffle": False},
    "blocks": {"order": tfr.BlockShuffle(8, 2, streams=4)},
    "dropped": {"remainder": "drop", "seed": 2**64 - 1},
    "padded": {"remainder": "pad", "rank": 1, "world": 3},
    "some": {"order": tfr.Shuffle(-3, indices=[5, 90, 5, 7, 100, 3] * 7)},
    "rank": {"rank": 2, "world": 3},
    "tokens": {"rank": 1, "world": 2},
    "tokens, dropped": {"rank": 1, "world": 2, "remainder": "drop"},
    "tokens, padded": {"rank": 1, "world": 2, "remainder": "pad"},
}


def loader_of(files: list[str], plan: str, **options: Any) -> tfr.Loader:
    rows = tfr.ByTokens(2000, tfr.Reader(files).lengths) if plan.startswith("tokens") else 16
    return tfr.Loader(files, rows, **options, **PLANS[plan])


@pytest.mark.parametrize("plan", PLANS)
def test_gives_the_loaders_batches(files: list[str], plan: str) -> None:
    loader = loader_of(files, plan, features=FEATURES)
    dataset = loader.to_tf_dataset(epochs=2, with_indices=True, with_valid=True)
    assert dataset.cardinality().numpy() == 2 * len(loader)
    assert elements(dataset) == batches(loader, 2)
    full = plan in ("dropped", "padded")
    for spec in tf.nest.flatten(dataset.element_spec):
        if not isinstance(spec, tf.SparseTensorSpec) and "tokens" not in plan:
            assert spec.shape[0] == (16 if full else None)


@pytest.mark.parametrize("plan", PLANS)
def test_gives_records_as_strings(files: list[str], plan: str) -> None:
    loader = loader_of(files, plan)
    dataset = loader.to_tf_dataset(epochs=1, with_indices=True, with_valid=True)
    expected = [(batch.tolist(), batch.indices.tolist(), batch.valid.tolist()) for batch in loader]
    assert elements(dataset) == expected


@pytest.mark.parametrize("arrangement", ["permuted", "spread"])
@pytest.mark.parametrize("per_source", [False, True])
def test_gives_the_batches_of_a_mixture(tmp_path: Path, arrangement: str, per_source: bool) -> None:
    mixture = mixture_of(write_sets(tmp_path), arrangement=arrangement, per_source=per_source)
    features = {"id": tfr.FixedLen((), "int64"), "tokens": tfr.VarLen("int64")}
    loader = tfr.Loader(mixture, 20, features=features)
    next(iter(loader))
    loader.change_weights({"web": 1, "code": 2, "talk": 3})
    dataset = loader.to_tf_dataset(epochs=2, with_indices=True, with_sources=True)
    loader.load_state_dict(loader.state_dict())
    expected = [
        (plain(dict(batch)), batch.indices.tolist(), batch.sources.tolist())
        for _ in range(2)
        for batch in loader
    ]
    assert elements(dataset) == expected
    assert len(expected) == 19


def test_elements_are_what_was_asked_for(files: list[str]) -> None:
    loader = tfr.Loader(files, 16)
    strings = tf.TensorSpec([None], tf.string)
    assert loader.to_tf_dataset().element_spec == strings
    indices = tf.TensorSpec([None], tf.int64)
    assert loader.to_tf_dataset(with_indices=True).element_spec == (strings, indices)
    valid = tf.TensorSpec([None], tf.bool)
    assert loader.to_tf_dataset(with_valid=True).element_spec == (strings, valid)


def test_shapes_and_types_are_static(files: list[str]) -> None:
    loader = tfr.Loader(files, 16, features=FEATURES, remainder="drop")
    sparse = tf.SparseTensorSpec([None, None], tf.int64)
    assert loader.to_tf_dataset().element_spec == {
        "id": tf.TensorSpec([16], tf.int32),
        "dense": tf.TensorSpec([16, 3], tf.float32),
        "name": tf.TensorSpec([16], tf.string),
        "absent": tf.TensorSpec([16, 2], tf.int64),
        "nameless": tf.TensorSpec([16], tf.string),
        "raw": tf.TensorSpec([16, 2, 2], tf.uint16),
        "numbers": tf.RaggedTensorSpec([16, None], tf.int64, 1, tf.int64),
        "words": tf.RaggedTensorSpec([16, None], tf.string, 1, tf.int64),
        "weights": tf.TensorSpec([16, None], tf.float32),
        "lengths": sparse,
        "numbers, sparse": sparse,
        "divided": tf.RaggedTensorSpec([16, None, 1], tf.int64, 1, tf.int64),
        "placed": tf.SparseTensorSpec([None, 10], tf.int64),
    }


def test_specs_of_tf_io(files: list[str]) -> None:
    features = {
        "id": tf.io.FixedLenFeature([], tf.int64),
        "numbers": tf.io.VarLenFeature(tf.int64),
        "words": tf.io.RaggedFeature(tf.string),
        "weights": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
    }
    loader = tfr.Loader(files, 16, features=features, shuffle=False)
    records = [batch.tolist() for batch in tfr.Loader(files, 16, shuffle=False)]
    expected = [plain(tf.io.parse_example(each, features)) for each in records]
    assert elements(loader.to_tf_dataset()) == expected


def test_goes_on_without_end(files: list[str]) -> None:
    loader = tfr.Loader(files, 16, features={"id": FEATURES["id"]})
    dataset = loader.to_tf_dataset(epochs=None)
    assert dataset.cardinality().numpy() == tf.data.INFINITE_CARDINALITY
    got = elements(dataset.take(3 * len(loader)))
    assert got == [batch[0] for batch in batches(loader, 3)]


def test_begins_where_the_loader_stands(files: list[str]) -> None:
    loader = tfr.Loader(files, 16)
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    dataset = loader.to_tf_dataset(epochs=2)
    rest = [batch.tolist() for batch in iterator]
    expected = rest + [batch.tolist() for batch in loader]
    assert dataset.cardinality().numpy() == len(expected)
    assert elements(dataset) == expected


def test_begins_where_another_world_stopped(files: list[str]) -> None:
    two = tfr.Loader(files, 10, world=2)
    iterator = iter(two)
    for _ in range(2):
        next(iterator)
    one = tfr.Loader(files, 7)
    one.load_state_dict(two.state_dict())
    dataset = one.to_tf_dataset(with_indices=True)
    assert elements(dataset) == [(batch.tolist(), batch.indices.tolist()) for batch in one]


def test_an_empty_set_is_an_empty_dataset(tmp_path: Path) -> None:
    files = write_examples(tmp_path, [0])
    for epochs in (1, 3, None):
        dataset = tfr.Loader(files, 4, remainder="pad").to_tf_dataset(epochs=epochs)
        assert elements(dataset) == []


def test_refuses_no_epochs(files: list[str]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        tfr.Loader(files, 4).to_tf_dataset(epochs=0)


def test_refuses_the_other_order_of_bytes(files: list[str]) -> None:
    features = {"raw": tfr.FixedLen((2, 2), ">u2", raw=True)}
    with pytest.raises(TypeError, match="'raw': TensorFlow has no type for >u2"):
        tfr.Loader(files, 4, features=features).to_tf_dataset()


def test_refuses_files_that_changed(tmp_path: Path) -> None:
    files = write_examples(tmp_path, [9])
    loader = tfr.Loader(files, 4)
    write_examples(tmp_path, [5])
    with pytest.raises(tfr.StaleIndexError, match="9 records, and now it has"):
        loader.to_tf_dataset()


class TestTheReadersOptions:
    """The dataset reads the files as the Loader's Reader does."""

    def test_io(self, tmp_path: Path) -> None:
        file = write_examples(tmp_path, [20])[0]
        for io, is_mapped in (("pread", False), ("mmap", True)):
            reader = tfr.Reader(file, io=io)  # type: ignore[arg-type]
            iterator = iter(tfr.Loader(reader, 4).to_tf_dataset())
            next(iterator)
            reader.close()  # the dataset has made the present mappings
            assert (file in Path("/proc/self/maps").read_text()) == is_mapped
            del iterator

    def test_verify(self, tmp_path: Path) -> None:
        file = write_examples(tmp_path, [20])[0]
        flip_byte(file, tfr.Reader(file).locate(9).offset + 12)
        reader = tfr.Reader(file, verify="header")
        dataset = tfr.Loader(reader, 4, shuffle=False).to_tf_dataset()
        assert sum(elements(dataset), []) == list(reader)
        with pytest.raises(tf.errors.DataLossError):
            list(tfr.Loader(file, 4).to_tf_dataset())

    @pytest.mark.parametrize("index", ["memory", "folder"])
    def test_index(self, tmp_path: Path, cache: Path, index: str) -> None:
        file = write_examples(tmp_path, [20])[0]
        folder = tmp_path / "indexes"
        options = {"index": "memory"} if index == "memory" else {"index_folder": folder}
        reader = tfr.Reader(file, **options)
        assert len(elements(tfr.Loader(reader, 4).to_tf_dataset())) == 5
        assert list(cache.rglob("*")) == []
        assert folder.exists() == (index == "folder")


@pytest.mark.parametrize("features", [None, {"id": FEATURES["id"]}], ids=["records", "decoded"])
class TestDamage:
    @pytest.fixture
    def damaged(self, tmp_path: Path) -> str:
        file = write_examples(tmp_path, [20])[0]
        flip_byte(file, tfr.Reader(file).locate(9).offset + 12)
        return file

    def test_is_left_out(self, damaged: str, features: Any) -> None:
        reader = tfr.Reader(damaged, on_corruption="skip")
        loader = tfr.Loader(reader, 4, features=features, remainder="drop", shuffle=False)
        got = [batch[1].numpy().tolist() for batch in loader.to_tf_dataset(with_indices=True)]
        assert got == [batch.indices.tolist() for batch in loader]
        assert got[2] == [8, 10, 11]


def test_a_record_that_does_not_fit_is_an_error(files: list[str]) -> None:
    loader = tfr.Loader(files, 4, features={"id": tfr.FixedLen((3,), "int64")}, shuffle=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="(?i)id.*record 0"):
        next(iter(loader.to_tf_dataset()))


def numbers(dataset: Any) -> list[list[int]]:
    return [indices.numpy().tolist() for _, indices in dataset]


class TestIterations:
    @pytest.mark.parametrize(
        "order", [tfr.Shuffle(), tfr.BlockShuffle(8, 2, streams=4)], ids=["exact", "blocks"]
    )
    def test_of_one_rank_have_orders_of_their_own(self, files: list[str], order: Any) -> None:
        loader = tfr.Loader(files, 16, order=order)
        dataset = loader.to_tf_dataset(with_indices=True)
        rounds = [numbers(dataset) for _ in range(4)]
        assert rounds[0] == [batch.indices.tolist() for batch in loader]
        assert len({str(each) for each in rounds}) == 4
        for each in rounds:
            assert sorted(sum(each, [])) == list(range(COUNT))
            assert len(each) == dataset.cardinality().numpy()

    def test_are_the_same_in_each_run_whatever_seed_tensorflow_has(self, files: list[str]) -> None:
        def rounds() -> list[Any]:
            dataset = tfr.Loader(files, 16, seed=5).to_tf_dataset(epochs=2, with_indices=True)
            return [numbers(dataset) for _ in range(3)]

        without = rounds()
        tf.random.set_seed(3)
        assert rounds() == without

    def test_follow_the_loaders_seed(self, files: list[str]) -> None:
        second = []
        for seed in (1, 2):
            dataset = tfr.Loader(files, 16, seed=seed).to_tf_dataset(with_indices=True)
            numbers(dataset)
            second.append(numbers(dataset))
        assert second[0] != second[1]

    def test_from_the_middle_are_as_long(self, files: list[str]) -> None:
        loader = tfr.Loader(files, 16)
        iterator = iter(loader)
        for _ in range(3):
            next(iterator)
        dataset = loader.to_tf_dataset(with_indices=True)
        rest = [batch.indices.tolist() for batch in iterator]
        assert numbers(dataset) == rest
        again = numbers(dataset)
        assert again != rest
        assert list(map(len, again)) == list(map(len, rest))
        assert len(set(sum(again, []))) == sum(map(len, rest))

    def test_in_file_order_are_the_same(self, files: list[str]) -> None:
        dataset = tfr.Loader(files, 16, shuffle=False).to_tf_dataset(with_indices=True)
        assert numbers(dataset) == numbers(dataset)

    @pytest.mark.parametrize("epochs", [1, 2])
    def test_of_several_ranks_are_the_same(self, files: list[str], epochs: int) -> None:
        ranks = [tfr.Loader(files, 8, rank=rank, world=2) for rank in range(2)]
        datasets = [each.to_tf_dataset(epochs=epochs, with_indices=True) for each in ranks]
        numbers(datasets[0])  # like a program that inspects its data first
        seen = [sum(numbers(each), []) for each in datasets]
        assert sorted(sum(seen, [])) == sorted(list(range(COUNT)) * epochs)

    def test_of_several_ranks_need_epochs(self, files: list[str]) -> None:
        loader = tfr.Loader(files, 8, world=2)
        with pytest.raises(ValueError, match="epochs must be given where world is above 1"):
            loader.to_tf_dataset()
        assert loader.to_tf_dataset(epochs=None).cardinality() == tf.data.INFINITE_CARDINALITY

    def test_of_several_ranks_are_not_sharded_again(self, files: list[str]) -> None:
        dataset = tfr.Loader(files, 8, world=2).to_tf_dataset(epochs=1)
        policy = dataset.map(lambda batch: batch).options().experimental_distribute
        assert policy.auto_shard_policy == tf.data.experimental.AutoShardPolicy.OFF


@pytest.mark.parametrize("iteration", [1, 3])
def test_checkpoints_are_positions(files: list[str], tmp_path: Path, iteration: int) -> None:
    def make() -> Any:
        return tfr.Loader(files, 8, features=FEATURES).to_tf_dataset(epochs=2).prefetch(2)

    def iterate(dataset: Any) -> Any:
        for _ in range(iteration - 1):
            next(iter(dataset))
        return iter(dataset)

    expected = elements(iterate(make()))
    iterator = iterate(make())
    checkpoint = tf.train.Checkpoint(iterator=iterator)
    for position in range(len(expected) + 1):
        if position % 5 == 0 or position == len(expected):
            path = checkpoint.write(str(tmp_path / f"saved-{position}"))
            saved = sum(file.stat().st_size for file in tmp_path.glob(f"saved-{position}.*"))
            assert saved < 10_000
            again = iter(make())
            next(again)
            tf.train.Checkpoint(iterator=again).read(path).assert_consumed()
            assert elements(again) == expected[position:]
        next(iterator, None)


def test_columns_are_aligned_and_ours_alone(files: list[str]) -> None:
    dataset = tfr.Loader(files, 16, features=FEATURES).to_tf_dataset()
    for batch in dataset:
        dense = batch["dense"].numpy()
        assert np.isfinite(dense).all()
        tf.raw_ops.Add(x=batch["dense"], y=batch["dense"])
        assert (batch["dense"].numpy() == dense).all()


@pytest.mark.parametrize("features", [None, FEATURES])
def test_epochs_count_in_the_loader(files: list[str], features: Any) -> None:
    loader = tfr.Loader(files, 7, features=features, seed=5, remainder="pad")
    batches = loader.to_tf_dataset()
    assert loader.stats().batches == 0
    for _ in batches.map(lambda batch: batch).prefetch(1):
        pass
    steps = len(loader)
    if internals.ModelProto is None:  # of what TensorFlow 2.15 does not tell
        assert loader.stats()[:3] == (COUNT, loader.stats().bytes, steps)
    else:
        assert_counted(loader.stats(), COUNT, steps)
    size = loader.stats().bytes
    assert sum(1 for _ in loader.to_tf_dataset()) == sum(1 for _ in loader) == steps
    assert loader.stats()[:3] == (3 * COUNT, 3 * size, 3 * steps)
