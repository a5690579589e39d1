"""Every adapter takes Steps in place of a Reader, and each step comes once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from cli_files import run
from step_files import FEATURES, image_of, numbers_in, open_steps, write_episodes

Road = Callable[..., list[int]]

ORDERS: list[tuple[Any, Any]] = [
    (16, tfr.Shuffle(3)),
    (16, tfr.InOrder()),
    (16, tfr.BlockShuffle(8, 2, streams=4)),
    (16, tfr.Weighted(np.ones(100), length=150)),
    (16, tfr.Shuffle(1, indices=np.arange(99, 9, -1))),
    (tfr.ByTokens(40, lengths=np.arange(100) % 20 + 1), tfr.Shuffle(3)),
]


@pytest.fixture
def steps(tmp_path: Path) -> Iterator[tfr.Steps]:
    with open_steps(tmp_path / "data") as opened:
        yield opened


def loaded(steps: tfr.Steps, batching: Any, order: Any) -> list[int]:
    loader = tfr.Loader(steps, batching, features=FEATURES, order=order)
    return [number for batch in loader for number in numbers_in(batch)]


def from_tf_data(steps: tfr.Steps, batching: Any, order: Any) -> list[int]:
    pytest.importorskip("tensorflow")
    loader = tfr.Loader(steps, batching, features=FEATURES, order=order)
    batches = loader.to_tf_dataset(epochs=1).as_numpy_iterator()
    return [number for batch in batches for number in numbers_in(batch)]


def from_tf_strings(steps: tfr.Steps, batching: Any, order: Any) -> list[int]:
    """Reads the steps one by one. TensorFlow parses them."""
    tf = pytest.importorskip("tensorflow")
    specs = {
        "steps/n": tf.io.FixedLenFeature((), tf.int64),
        "steps/a": tf.io.FixedLenFeature((4, 2), tf.float32),
        "steps/image": tf.io.FixedLenFeature((), tf.string),
    }
    records = tfr.Loader(steps, batching, order=order).to_tf_dataset(epochs=1).unbatch()
    parsed = records.map(lambda record: tf.io.parse_single_example(record, specs)).batch(7)
    return [number for batch in parsed.as_numpy_iterator() for number in numbers_in(batch)]


def from_keras(steps: tfr.Steps, batching: Any, order: Any) -> list[int]:
    pytest.importorskip("keras")
    loader = tfr.Loader(steps, batching, features=FEATURES, order=order)
    epochs = loader.to_keras(features="steps/a", label="steps/n")
    return [int(each) for step in range(len(epochs)) for each in np.ravel(epochs[step][1])]


@pytest.mark.parametrize("road", [loaded, from_tf_data, from_tf_strings, from_keras])
def test_every_order(steps: tfr.Steps, road: Road) -> None:
    for batching, order in ORDERS:
        plan = tfr.Plan(order, batching, num_records=100)
        expected = [n for step in range(plan.steps) for n in plan.indices(0, step).tolist()]
        assert road(steps, batching, order) == expected


@pytest.fixture
def mixture(tmp_path: Path) -> tfr.Mixture:
    """Twenty sets, whose steps are numbered through all sets."""
    sets = {}
    for number in range(20):
        lengths = (number % 3 + 1, number + 1)
        sets[f"robot {number}"] = (
            open_steps(tmp_path / f"data-{number}", lengths, 1000 * number),
            number % 4 + 1,
        )
    return tfr.Mixture(sets, seed=5)


def numbers_of(loader: Any, batches: int | None = None) -> list[list[int]]:
    return [numbers_in(batch) for _, batch in zip(range(batches or 10**6), loader, strict=False)]


def test_twenty_sets_are_mixed_on_every_road(mixture: tfr.Mixture) -> None:
    batches = list(tfr.Loader(mixture, 16, features=FEATURES))
    plain = [numbers_in(batch) for batch in batches]
    for numbers, batch in zip(plain, batches, strict=True):
        assert [number // 1000 for number in numbers] == batch.sources.tolist()
    counts = np.bincount([number // 1000 for numbers in plain for number in numbers])
    assert counts.min() > 0
    assert numbers_of(tfr.Loader(mixture, 16, features=FEATURES, threads=3)) == plain
    pytest.importorskip("tensorflow")
    dataset = tfr.Loader(mixture, 16, features=FEATURES).to_tf_dataset(epochs=1)
    assert numbers_of(dataset.as_numpy_iterator()) == plain


@pytest.mark.parametrize("mixes", [False, True])
def test_a_run_goes_on_with_another_number_of_ranks(
    steps: tfr.Steps, mixture: tfr.Mixture, mixes: bool
) -> None:
    source: Any = mixture if mixes else steps

    def loader_of(rank: int, world: int) -> tfr.Loader:
        how: dict[str, Any] = {} if mixes else {"seed": 9}
        share: dict[str, Any] = {"rank": rank, "world": world, "remainder": "keep"}
        return tfr.Loader(source, 8, features=FEATURES, **share, **how)

    whole = [number for batch in numbers_of(loader_of(0, 1)) for number in batch]
    before = []
    for rank in range(2):
        loader = loader_of(rank, 2)
        before += sum(numbers_of(loader, 3), [])
        state = json.loads(json.dumps(loader.state_dict()))
    assert sorted(before) == sorted(whole[:48])
    after = []
    for rank in range(4):
        loader = loader_of(rank, 4)
        loader.load_state_dict(state)
        after += sum(numbers_of(loader), [])
    assert sorted(before + after) == sorted(whole)
    assert mixes or sorted(whole) == list(range(100))


def test_what_tensorflow_cannot_open_is_said(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    path = write_episodes(tmp_path / "data")
    unkept = tfr.Steps(path, along="steps/", index="memory")
    for source in (unkept, tfr.Mixture({"a": (unkept, 1), "b": (unkept.records, 1)})):
        with pytest.raises(ValueError, match="index_folder="):
            tfr.Loader(source, 8).to_tf_dataset()
    with pytest.raises(TypeError, match=r"to_tf_dataset\(\)"):
        tfr.TFRecordDataset(unkept)
    steps = tfr.Steps(path, along="steps/")
    dataset = tfr.Loader(steps, 8, features=FEATURES).to_tf_dataset()
    with tfr.Writer(path, overwrite=True) as writer:
        writer.write(b"another")
    with pytest.raises(tfr.StaleIndexError, match="changed"):
        tfr.Loader(steps, 8, features=FEATURES).to_tf_dataset()
    del dataset


def test_tensorflow_reads_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    windows = {"steps/a": tfr.Window(after=3), "goal": tfr.Later("steps/n", seed=7)}
    path = write_episodes(tmp_path / "data")
    chosen = tfr.Steps(path, along="steps/", windows=windows, only=np.arange(0, 100, 3))
    mixture = tfr.Mixture({"some": (chosen, 2), "all": (open_steps(tmp_path / "all"), 1)})
    batches = tfr.Loader(mixture, 8).to_tf_dataset().as_numpy_iterator()
    found = [record for batch in batches for record in batch]
    assert found == [bytes(record) for batch in tfr.Loader(mixture, 8) for record in batch]


def test_tf_data_leaves_out_damaged_steps(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    path = tmp_path / "data"
    open_steps(path).close()
    times, data = os.stat(path), path.read_bytes()
    path.write_bytes(data.replace(image_of(50), image_of(50)[:-1] + b"!"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    number = {"steps/n": FEATURES["steps/n"]}
    for features in (None, number):
        left = tfr.Steps(str(path), along="steps/", on_corruption="skip")
        options: dict[str, Any] = {"shuffle": False, "features": features}
        batches = tfr.Loader(left, 8, **options).to_tf_dataset(with_indices=True)
        numbers = []
        for batch, indices in batches.as_numpy_iterator():
            parsed = batch if features else tfr.parse_example(list(batch), number)
            assert parsed["steps/n"].tolist() == indices.tolist()
            numbers += indices.tolist()
        assert numbers == [*range(47), *range(55, 100)]  # eight pictures share a checksum
        whole = tfr.Steps(str(path), along="steps/")
        with pytest.raises(tf.errors.DataLossError, match="'steps/image' at byte"):
            list(tfr.Loader(whole, 8, **options).to_tf_dataset())


def test_commands_show_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_episodes(tmp_path / "data")

    def said(*arguments: str) -> str:
        assert run(*arguments, "--steps", "steps/", path) == 0
        return capsys.readouterr().out

    assert said("count") == "100\n"
    for command in (("cat", "--record", "-1"), ("sample", "-n", "100"), ("head", "-n", "100")):
        last = [json.loads(line) for line in said(*command, "--json").splitlines()]
        assert max(each["features"]["steps/n"] for each in last) == [99]
    assert json.loads(said("info", "--json"))["steps"] == 100
    assert "100 steps of 4 episodes" in said("info")
    assert "steps/n" in said("schema")
