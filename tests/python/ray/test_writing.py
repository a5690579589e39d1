"""Datasets become shards of exactly their rows, in order, or nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from example_files import some_example
from orders import shuffled

tray = pytest.importorskip("tfrfast.ray", exc_type=ModuleNotFoundError)

ID = {"id": tfr.FixedLen((), "int64")}
LISTS = {
    "id": tfr.FixedLen((), "int64"),
    "label": tfr.FixedLen((), "int64"),
    "dense": tfr.FixedLen((3,), "float32"),
    "name": tfr.FixedLen((), "bytes"),
    "words": tfr.VarLen("bytes"),
    "numbers": tfr.VarLen("int64"),
    "positions": tfr.VarLen("int64"),
    "weights": tfr.VarLen("float32"),
    "marks": tfr.VarLen("int64"),
    "raw": tfr.FixedLen((), "bytes"),
    "lengths": tfr.VarLen("int64"),
}


def files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_what_was_read_is_written_byte_for_byte(
    local_ray: Any, shards: list[str], tmp_path: Path
) -> None:
    dataset = tray.read(shards, features=LISTS, override_num_blocks=5)
    done = tray.write(dataset, tmp_path / "out/train", num_shards=4)
    assert done.num_records == 1500
    assert done.paths == [str(tmp_path / f"out/train-{i:05}-of-00004") for i in range(4)]
    with tfr.Reader(done.paths, index="require") as reader:
        assert [shard.num_records for shard in reader.shards] == [375] * 4
        known = tfr.parse_example(list(reader), LISTS)
        expected = tfr.parse_example([some_example(number) for number in range(1500)], LISTS)
        for name in LISTS:
            assert known[name].tolist() == expected[name].tolist()
    assert files(tmp_path / "out") == [f"train-{i:05}-of-00004" for i in range(4)]
    assert [name for name in files(tmp_path) if name.startswith("out")] == ["out", "out.tfrfast"]


def test_rows_keep_the_order_of_a_shuffle(
    local_ray: Any, shards: list[str], tmp_path: Path
) -> None:
    dataset = tray.read(shards, features=ID, order=tfr.Shuffle(9), override_num_blocks=6)
    done = tray.write(dataset, tmp_path / "train", num_shards=7, compression="GZIP", sync=False)
    ids = [row["id"] for row in tray.read(done.paths, features=ID, records=slice(None)).take_all()]
    assert ids == shuffled(1500, 9).tolist()


def test_tensors_and_text_are_written(local_ray: Any, tmp_path: Path) -> None:
    import ray

    images = np.arange(5 * 2 * 3, dtype=np.uint8).reshape(5, 2, 3)
    dataset = ray.data.from_items([{"n": n, "text": f"é{n}"} for n in range(5)]).map_batches(
        lambda batch: {
            **batch,
            "image": images[batch["n"]],
            "pixels": images[batch["n"]].astype(np.float64),
            "some": np.array([images[n, : n % 2 + 1] for n in batch["n"]], dtype=object),
        }
    )
    done = tray.write(dataset, tmp_path / "train", num_shards=2, raw=["image"])
    features = {
        "n": tfr.FixedLen((), "int64"),
        "text": tfr.FixedLen((), "bytes"),
        "image": tfr.FixedLen((2, 3), "uint8", raw=True),
        "pixels": tfr.FixedLen((2, 3), "float32"),
        "some": tfr.VarLen("int64"),
    }
    batch = tfr.parse_example(list(tfr.Reader(done.paths)), features)
    order = batch["n"].tolist()
    assert sorted(order) == list(range(5))
    assert batch["text"].tolist() == [f"é{n}".encode() for n in order]
    assert batch["image"].tolist() == images[order].tolist()
    assert batch["pixels"].tolist() == images[order].tolist()
    assert batch["some"].tolist() == [images[n, : n % 2 + 1].reshape(-1).tolist() for n in order]


def test_a_dataset_without_rows_makes_empty_shards(local_ray: Any, tmp_path: Path) -> None:
    import ray

    dataset = ray.data.range(10).filter(lambda row: row["id"] < 0)
    done = tray.write(dataset, tmp_path / "train", num_shards=3)
    assert done.num_records == 0
    assert len(tfr.Reader(done.paths)) == 0
    assert len(done.paths) == 3


def _fail_at_700(row: dict[str, Any]) -> dict[str, Any]:
    if row["id"] == 700:
        raise ZeroDivisionError("at 700")
    return row


def test_a_job_that_fails_leaves_nothing_and_runs_again(
    local_ray: Any, shards: list[str], tmp_path: Path
) -> None:
    dataset = tray.read(shards, features=ID, override_num_blocks=5)
    with pytest.raises(Exception, match="at 700"):
        tray.write(dataset.map(_fail_at_700), tmp_path / "train", num_shards=4)
    assert files(tmp_path) == []
    tray.write(dataset, tmp_path / "train", num_shards=4)
    with pytest.raises(FileExistsError, match="train-00000-of-00004"):
        tray.write(dataset.map(_fail_at_700), tmp_path / "train", num_shards=2)
    done = tray.write(dataset, tmp_path / "train", num_shards=2, overwrite=True)
    assert done.num_records == 1500
    assert files(tmp_path) == ["train-00000-of-00002", "train-00001-of-00002"]


def test_what_no_feature_holds_is_refused(local_ray: Any, tmp_path: Path) -> None:
    import ray

    dataset = ray.data.from_items([{"what": {"a": 1}}])
    with pytest.raises(tfr.FeatureError, match="what"):
        tray.write(dataset, tmp_path / "train", num_shards=1)
    assert files(tmp_path) == []
