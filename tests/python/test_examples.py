"""The example pipelines that need no TensorFlow, on small data."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from example_scripts import EXAMPLES, load_example


def test_single_record_files_are_merged_and_mixed_exactly(tmp_path: Path) -> None:
    example = load_example("single_record_files")
    pattern = example.write_files(tmp_path / "files", 2000)
    shards = example.merge(pattern, tmp_path / "merged" / "train", 3)
    assert len(shards) == 3
    mixing = example.judge(shards, 2000)
    assert mixing.once_in_shards == mixing.once_in_epoch == 2000
    assert abs(mixing.z_of_shards) < 4
    assert abs(mixing.z_of_epoch) < 4
    assert example._unfairness(np.arange(2000)) > 100  # the measure sees an order that is not mixed


def test_tar_files_become_shards_with_each_sample_once(tmp_path: Path) -> None:
    example = load_example("webdataset_shards")
    pattern = example.write_tars(tmp_path / "tars", 530, 3)
    shards = example.convert(pattern, tmp_path / "records" / "train", 2)
    assert len(shards) == 2
    found = {}
    for batch in tfr.Loader(shards, 64, features=example.FEATURES, seed=1):
        rows = zip(batch["key"].tolist(), batch["png"].tolist(), batch["cls"], strict=True)
        found.update({key: (png, label) for key, png, label in rows})
    assert found == {b"train/%07d" % i: (b"picture %d" % i, i % 10) for i in range(530)}


def test_members_with_one_name_up_to_the_first_dot_are_a_sample(tmp_path: Path) -> None:
    example = load_example("webdataset_shards")
    with tarfile.open(tmp_path / "some.tar", "w") as tar:
        for name in ("a.b/one.JPG", "a.b/one.seg.png", "two.cls"):
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"7"))
    assert list(example.samples_of(str(tmp_path / "some.tar"))) == [
        {"key": b"a.b/one", "jpg": b"7", "seg.png": b"7"},
        {"key": b"two", "cls": 7},
    ]


def test_deterministic_batches(tmp_path: Path) -> None:
    example = load_example("deterministic")
    shards = example.write_data(tmp_path / "data", 520)
    expected = example.epoch_digests(example.make_loader(shards, 1))
    assert len(set(expected)) == len(expected) == 11
    for threads in (2, 7):
        assert example.epoch_digests(example.make_loader(shards, threads)) == expected
    assert example.restarted(shards, 4, 2) == expected


@pytest.mark.parametrize("world", [1, 3, 8])
def test_evaluation_counts_each_example_once(tmp_path: Path, world: int) -> None:
    example = load_example("evaluation")
    path = example.write_data(tmp_path / "data")
    expected = example.unbatched(path)
    assert expected.examples == 761
    for metrics in (example.batched(path), example.on_ranks(path, world)):
        assert metrics[:2] == expected[:2]
        assert metrics.squared_error == pytest.approx(expected.squared_error, rel=1e-12)


def test_captions_look_features_up_instead_of_copying_them(tmp_path: Path) -> None:
    example = load_example("captions")
    data = example.write_data(tmp_path / "data", 40)
    pairs = list(zip(example.copied_batches(data), example.looked_up_batches(data), strict=True))
    assert len(pairs) > 5
    for copied, looked_up in pairs:
        np.testing.assert_array_equal(copied.tokens, looked_up.tokens)
        np.testing.assert_array_equal(copied.vectors, looked_up.vectors)
    size = {name: Path(path).stat().st_size for name, path in data._asdict().items()}
    assert size["captions"] + size["images"] < size["copied"] / 5


def test_numpy_loop_splits_balances_and_learns(tmp_path: Path) -> None:
    example = load_example("numpy_loop")
    digits = load_example("mnist_data").write_digits(tmp_path / "data", "floats", 1500)
    with tfr.Reader(digits.train) as reader:
        labels = example.labels_of(reader)
        assert f"record 1: label {labels[1]}, height 28" in example.show_records(reader)[1]
        split = example.split_records(reader)
        assert sorted([*split.train, *split.validation]) == list(range(1500))
        epoch = example.balanced(labels, split.train, 100)
        assert np.bincount(labels[epoch]).tolist() == [100] * 10
        assert not set(epoch) & set(split.validation)
        weights = example.train(reader, epoch, epochs=5)
        untrained = example.accuracy(reader, split.validation, np.zeros_like(weights))
        assert example.accuracy(reader, split.validation, weights) > untrained + 0.3


def test_digits_as_bytes_are_the_same_digits(tmp_path: Path) -> None:
    data = load_example("mnist_data")
    columns = []
    for pixels in ("floats", "bytes"):
        digits = data.write_digits(tmp_path / pixels, pixels, 50, 20)
        assert len(digits.train) == 10
        with tfr.Reader(digits.train) as reader:
            columns.append(tfr.parse_example(reader[:], data.features(pixels)))
    for name in ("image", "label"):
        np.testing.assert_array_equal(columns[0][name], columns[1][name])


@pytest.mark.parametrize("script", ["evaluation.py", "captions.py --images 20"])
def test_scripts_run(script: str) -> None:
    name, *arguments = script.split()
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout
