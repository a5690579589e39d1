"""Reads a folder that tensorflow_datasets wrote. tests/golden/tfds also holds the values that
tensorflow_datasets read.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

GOLDEN = Path(__file__).parents[1] / "golden" / "tfds"
FOLDER = GOLDEN / "little" / "1.0.0"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy, for tests that change it."""
    return Path(shutil.copytree(FOLDER, tmp_path / "little" / "1.0.0"))


def ids_of(split: str, folder: Path = FOLDER) -> list[int]:
    found = tfr.tfds(folder, split)
    indices = np.arange(len(found.reader)) if found.indices is None else found.indices
    ids: list[int] = tfr.parse_example(found.reader[indices], found.features)["id"].tolist()
    return ids


@pytest.mark.parametrize("split", EXPECTED["ids"])
def test_a_split_names_the_records_that_tfds_gives(split: str) -> None:
    assert ids_of(split) == EXPECTED["ids"][split]


def test_only_the_shards_of_the_split_are_opened() -> None:
    assert len(tfr.tfds(FOLDER, "train[2shard]").reader.shards) == 1
    assert len(tfr.tfds(FOLDER, "train[:5]+test[:1]").reader.shards) == 3
    assert tfr.tfds(FOLDER, "train").indices is None
    assert tfr.tfds(FOLDER, "train[2shard]").indices is None
    assert tfr.tfds(FOLDER, "train[:5]").indices is not None


def test_parts_may_repeat_records_and_be_empty() -> None:
    assert ids_of("train[:2]+train[1:3]") == [6, 5, 5, 4]
    assert ids_of("train[5:5]") == ids_of("train[:0]+train[:0%]") == ids_of("train[:0shard]") == []


@pytest.mark.parametrize(
    ("split", "says"),
    [
        ("valid", "no split 'valid', only 'train', 'test'"),
        ("train[", "not understood"),
        ("", "not understood"),
        ("train+", "not understood"),
        ("train[:]", "not understood"),
        ("train[5]", "not understood"),
        ("train[10%]", "not understood"),
        ("train[1:2:3]", "not understood"),
        ("train[a:b]", "not understood"),
        ("train[1.5:2]", "'1.5' is not a number of records"),
        ("train[10%:20]", "same unit"),
        ("train[:12]", "outside the 11 records"),
        ("train[-12:]", "outside the 11 records"),
        ("train[:101%]", "outside the 100%"),
        ("train[:5shard]", "outside the 4 shards"),
        ("train[4shard]", "there are 4 shards"),
        ("train[7:3]", "ends before it begins"),
        ("all[:5]", "cannot be sliced"),
    ],
)
def test_a_split_that_makes_no_sense_is_an_error(split: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tfr.tfds(FOLDER, split)


def plain(column: Any, row: int) -> Any:
    """A row of a column in the form of expected.json."""
    value = column[row]
    if isinstance(column, tfr.Ragged):
        value = value.tolist()
    value = value.tolist() if hasattr(value, "tolist") else value
    return as_json(value)


def as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return [as_json(each) for each in value] if isinstance(value, list) else value


def test_features_hold_what_tfds_reads() -> None:
    train = tfr.tfds(FOLDER, "train")
    batch = tfr.parse_example(train.reader[:], train.features)
    for row, expected in enumerate(EXPECTED["train"]):
        expected["langs/en"], expected["langs/fr"] = (
            expected["langs"]["en"],
            expected["langs"]["fr"],
        )
        expected["nested/a"] = expected["nested"]["a"]
        expected["nested/deep/b"] = expected["nested"]["deep"]["b"]
        expected["objects/bbox"] = expected["objects"]["bbox"]
        expected["objects/name"] = expected["objects"]["name"]
        expected["steps/obs"] = expected["steps"]["obs"]
        expected["square"] = sum(expected["square"], [])  # the values come without their shape
        for name in batch:
            assert plain(batch[name], row) == expected[name], name
    types = {name: batch[name].dtype.name for name in ("id", "flag", "packed", "pair")}
    assert types == {"id": "int32", "flag": "bool", "packed": "uint16", "pair": "int16"}


def test_every_stored_feature_has_a_spec() -> None:
    features = tfr.tfds(FOLDER, "test").features
    stored = {name.partition("/ragged_")[0] for name in EXPECTED["stored"]}
    assert set(features) == stored


@pytest.mark.parametrize("described", [None, {"featuresDict": {"features": {"id": {"json": 1}}}}])
def test_what_is_not_described_is_inferred(folder: Path, described: Any) -> None:
    (folder / "features.json").unlink()
    if described is not None:
        (folder / "features.json").write_text(json.dumps(described))
    features = tfr.tfds(folder, "train").features
    assert features["id"] == tfr.FixedLen((), "int64")
    assert features["text"] == tfr.FixedLen((), "bytes")


def rewrite(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_the_folder_above_is_an_error_that_names_those_below(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"Give one of the folders below it: '.*1\.0\.0'"):
        tfr.tfds(folder.parent, "train")
    with pytest.raises(FileNotFoundError, match="Give the folder of one version"):
        tfr.tfds(folder / "absent", "train")


def test_other_formats_and_unprepared_folders_are_refused(folder: Path) -> None:
    info = folder / "dataset_info.json"
    rewrite(info, fileFormat="array_record")
    with pytest.raises(ValueError, match="'array_record', which are not TFRecord files"):
        tfr.tfds(folder, "train")
    rewrite(info, fileFormat="tfrecord", splits=[])
    with pytest.raises(ValueError, match="lists no splits"):
        tfr.tfds(folder, "train")
    info.write_text("{")
    with pytest.raises(ValueError, match="not valid JSON"):
        tfr.tfds(folder, "train")
    info.write_text("[]")
    with pytest.raises(ValueError, match="not hold a JSON object"):
        tfr.tfds(folder, "train")


def rewrite_splits(folder: Path, **changes: Any) -> None:
    info = folder / "dataset_info.json"
    splits = [{**each, **changes} for each in json.loads(info.read_text())["splits"]]
    rewrite(info, splits=splits)


@pytest.mark.parametrize(
    "template",
    ["../{SPLIT}", "/etc/passwd", "*", "a?", "[ab]", "..", "a/b", "a\\b", "a\0b", "\ud800"],
)
def test_a_shard_lies_in_the_folder_and_is_named(folder: Path, template: str) -> None:
    rewrite_splits(folder, filepathTemplate=template)
    with pytest.raises(ValueError, match="A shard lies in the folder itself"):
        tfr.tfds(folder, "train")
    rewrite_splits(folder, filepathTemplate=None)
    rewrite(folder / "dataset_info.json", name="../little")
    with pytest.raises(ValueError, match="A shard lies in the folder itself"):
        tfr.tfds(folder, "train")


@pytest.mark.parametrize("file", ["dataset_info.json", "features.json"])
def test_what_describes_the_folder_is_a_small_file(folder: Path, file: str) -> None:
    path = folder / file
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match="not a regular file"):
        tfr.tfds(folder, "train")
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="not a regular file"):
        tfr.tfds(folder, "train")
    path.unlink()
    with path.open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(ValueError, match="more than 16 MiB"):
        tfr.tfds(folder, "train")


@pytest.mark.parametrize(
    "features",
    [
        '{"sequence": {"feature": ' * 20_000 + "{}" + "}}" * 20_000,
        '{"sequence": {"feature": ' * 100 + '{"text": {}}' + "}}" * 100,
        '{"featuresDict": 3}',
        '{"featuresDict": {"features": {"a": 1}}}',
        '{"sequence": {"feature": {"text": {}}, "length": 1e999}}',
        '{"tensor": {"dtype": "int64", "shape": {"dimensions": [%s1]}}}' % ("1," * 100),
        '{"tensor": {"dtype": "int64", "shape": {"dimensions": ["x"]}}}',
        '{"video": {"shape": {"dimensions": []}}}',
    ],
    ids=lambda text: text[:60],
)
def test_features_that_tfds_never_writes_are_an_error(folder: Path, features: str) -> None:
    (folder / "features.json").write_text(features)
    with pytest.raises(ValueError, match=r"features\.json|invalid literal"):
        tfr.tfds(folder, "train")


def test_shards_that_are_only_claimed_take_no_time(folder: Path) -> None:
    rewrite_splits(folder, shardLengths=["0"] * 150_000)
    with pytest.raises(ValueError, match="claims more than 262144 shards"):
        tfr.tfds(folder, "train")
    rewrite_splits(folder, shardLengths=["3"] + ["1"] * 50_000)
    shutil.copy(
        folder / "little-train.tfrecord-00000-of-00004",
        folder / "little-train.tfrecord-00000-of-50001",
    )
    assert len(tfr.tfds(folder, "train[:3]").reader) == 3
    rewrite_splits(folder, shardLengths=["-3", "6"])
    with pytest.raises(ValueError, match="claims a shard of -3 records"):
        tfr.tfds(folder, "train")
    rewrite_splits(folder, shardLengths=7)
    with pytest.raises(ValueError, match="not as TensorFlow Datasets writes it"):
        tfr.tfds(folder, "train")


def test_shards_must_hold_what_the_folder_says(folder: Path) -> None:
    shard = folder / "little-train.tfrecord-00001-of-00004"
    shutil.copy(folder / "little-test.tfrecord-00000-of-00004", shard)
    assert ids_of("train[0shard]", folder) == [6, 5, 4]
    with pytest.raises(ValueError, match=r"has 1 records, but dataset_info\.json says 3"):
        tfr.tfds(folder, "train")
    shard.unlink()
    with pytest.raises(FileNotFoundError):
        tfr.tfds(folder, "train")


def test_shards_may_be_named_in_other_ways(folder: Path) -> None:
    info = json.loads((folder / "dataset_info.json").read_text())
    for split in info["splits"]:
        split["filepathTemplate"] = "{SPLIT}_{SHARD_INDEX}_{NUM_SHARDS}.bin"
    (folder / "dataset_info.json").write_text(json.dumps(info))
    for shard in folder.glob("little-*"):
        split, number = shard.name.removeprefix("little-").split(".tfrecord-")
        shard.rename(folder / f"{split}_{number.replace('-of-', '_')}.bin")
    assert ids_of("train", folder) == EXPECTED["ids"]["train"]
    for template in ("{COLOUR}_{SHARD_INDEX}", "train_00000_00004.bin"):  # of all shards
        rewrite_splits(folder, filepathTemplate=template)
        with pytest.raises(ValueError, match="unknown form"):
            tfr.tfds(folder, "train")


def test_steps_are_those_that_tfds_reads(folder: Path) -> None:
    train = tfr.tfds(folder, "train")
    wanted = [obs for each in EXPECTED["train"] for obs in each["steps"]["obs"]]
    steps = train.steps()
    assert steps.indices is None
    batch = tfr.parse_example(steps.reader[:], steps.features)
    assert batch["steps/obs"].tolist() == wanted
    ids = [each["id"] for each in EXPECTED["train"] for _ in each["steps"]["obs"]]
    assert batch["id"].tolist() == ids
    some = tfr.tfds(folder, "train[3:]+train[:2]").steps()
    batch = tfr.parse_example(some.reader[some.indices], some.features)
    episodes = EXPECTED["train"][3:] + EXPECTED["train"][:2]
    assert batch["steps/obs"].tolist() == [obs for each in episodes for obs in each["steps"]["obs"]]
    last: Any = tfr.Later("steps/obs", seed=1, min_steps=99)
    windowed = train.steps(windows={"steps/obs": tfr.Window(before=1, pad="zeros"), "end": last})
    batch = tfr.parse_example(windowed.reader[:], windowed.features)
    assert batch["steps/obs"].shape == (len(wanted), 2, 2)
    assert batch["steps/obs"][:, 1].tolist() == wanted
    assert batch["steps/obs/valid"][:, 1].all()
    ends = [each["steps"]["obs"][-1] for each in EXPECTED["train"] for _ in each["steps"]["obs"]]
    assert batch["end"].tolist() == ends
