"""Writes the folders beside this script, and the values that tensorflow_datasets reads from the
folders. To run it again, in an environment with tensorflow and tensorflow_datasets:

    python tests/golden/tfds/write.py
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds
from tensorflow_datasets.core.example_parser import ExampleParser

HERE = Path(__file__).parent
SPLITS = [
    "train",
    "test",
    "all",
    "train+test",
    "test + train[:10%]",
    "train[:10%]",
    "train[10%:]",
    "train[25%:75%]",
    "train[12.5%:37.5%]",
    "train[-30%:]",
    "train[:-50%]",
    "train[3:7]",
    "train[5:]",
    "train[:5]",
    "train[-5:-2]",
    "train[2shard]",
    "train[0shard]",
    "train[:2shard]",
    "train[-1shard:]",
    "train[1shard:3shard]",
    "train[:33%]+train[66%:]+test[:1]",
    "train[-100%:100%]",
]
FEATURES = tfds.features.FeaturesDict(
    {
        "id": tfds.features.Scalar(np.int32),
        "flag": tfds.features.Scalar(np.bool_),
        "label": tfds.features.ClassLabel(names=["cat", "dog"]),
        "text": tfds.features.Text(),
        "image": tfds.features.Image(shape=(1, 1, 3)),
        "weights": tfds.features.Tensor(shape=(2, 3), dtype=np.float32),
        "double": tfds.features.Tensor(shape=(2,), dtype=np.float64),
        "unsigned": tfds.features.Scalar(np.uint64),
        "matrix": tfds.features.Tensor(shape=(None, 2), dtype=np.float32),
        "square": tfds.features.Tensor(shape=(2, None), dtype=np.int64),
        "packed": tfds.features.Tensor(shape=(3,), dtype=np.uint16, encoding="bytes"),
        "zipped": tfds.features.Tensor(shape=(3,), dtype=np.uint16, encoding="zlib"),
        "tokens": tfds.features.Sequence(np.int64),
        "words": tfds.features.Sequence(tfds.features.Text()),
        "pair": tfds.features.Sequence(np.int16, length=2),
        "objects": tfds.features.Sequence(
            {"bbox": tfds.features.BBoxFeature(), "name": tfds.features.Text()}
        ),
        "nested": {"a": tfds.features.Scalar(np.uint8), "deep": {"b": tfds.features.Text()}},
        "lists": tfds.features.Sequence(tfds.features.Sequence(np.int64)),
        "deeper": tfds.features.Sequence(
            tfds.features.Sequence(tfds.features.Sequence(tfds.features.Text()))
        ),
        "boxes": tfds.features.Sequence(tfds.features.Sequence(tfds.features.BBoxFeature())),
        "langs": tfds.features.Translation(["en", "fr"]),
        "video": tfds.features.Video(shape=(None, 1, 1, 3)),
        "audio": tfds.features.Audio(),
        "steps": tfds.features.Dataset({"obs": tfds.features.Tensor(shape=(2,), dtype=np.float32)}),
    }
)


def example(i: int) -> dict[str, Any]:
    box = tfds.features.BBox(0.0, 0.25, 0.5, 1.0)
    return {
        "id": i,
        "flag": i % 3 == 0,
        "label": i % 2,
        "text": f"text {i}",
        "image": np.full((1, 1, 3), i, np.uint8),
        "weights": np.arange(6, dtype=np.float32).reshape(2, 3) + i,
        "double": np.array([i + 0.5, -i]),
        "unsigned": i,
        "matrix": np.arange(i % 4 * 2, dtype=np.float32).reshape(-1, 2),
        "square": np.arange(i % 3 * 2).reshape(2, -1),
        "packed": np.arange(3, dtype=np.uint16) + 256 * i,
        "zipped": np.arange(3, dtype=np.uint16),
        "tokens": list(range(i % 5)),
        "words": [f"w{j}" for j in range(i % 3)],
        "pair": [i, -i],
        "objects": [{"bbox": box, "name": f"o{j}"} for j in range(i % 3)],
        "nested": {"a": 255 - i, "deep": {"b": f"b{i}"}},
        "lists": [list(range(j)) for j in range(i % 4)],
        "deeper": [[["a"] * j for j in range(k)] for k in range(i % 3)],
        "boxes": [[box] * j for j in range(i % 3)],
        "langs": {"en": f"e{i}", "fr": f"f{i}"},
        "video": np.full((i % 2 + 1, 1, 1, 3), i, np.uint8),
        "audio": np.arange(i % 4),
        "steps": [{"obs": [j, i]} for j in range(i % 3)],
    }


class Little(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version("1.0.0")

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(builder=self, features=FEATURES)

    def _split_generators(self, manager: Any) -> dict[str, Any]:
        return {"train": self._generate_examples(0, 11), "test": self._generate_examples(11, 15)}

    def _generate_examples(self, begin: int, end: int) -> Iterator[tuple[int, Any]]:
        for i in range(begin, end):
            yield i, example(i)


def plain(value: Any) -> Any:
    """A value of tfds.as_numpy in the form of JSON."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if hasattr(value, "to_list"):  # a ragged tensor
        return plain(value.to_list())
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    array = np.asarray(value)
    if array.dtype == object:
        return plain(array.tolist())
    return array.tolist()


def main() -> None:
    shutil.rmtree(HERE / "little", ignore_errors=True)
    builder = Little(data_dir=HERE)
    with tempfile.TemporaryDirectory() as folder:
        config = tfds.download.DownloadConfig(num_shards=4)
        builder.download_and_prepare(download_dir=folder, download_config=config)
    in_order = tfds.ReadConfig(interleave_cycle_length=1)
    raw = tfds.decode.PartialDecoding({"id": True})
    ids = {}
    for split in SPLITS:
        read = builder.as_dataset(split=split, read_config=in_order, decoders=raw)
        ids[split] = [int(each["id"]) for each in tfds.as_numpy(read)]
    skip = {name: tfds.decode.SkipDecoding() for name in ("image", "video", "zipped")}
    read = builder.as_dataset(split="train", read_config=in_order, decoders=skip)
    examples = []
    for each in read:
        flat = dict(each)
        flat["steps"] = {"obs": [step["obs"].numpy() for step in flat["steps"]]}
        examples.append({name: plain(_numpy(value)) for name, value in flat.items()})
    specs = ExampleParser(builder.info.features.get_serialized_info()).flat_feature_specs
    known = {
        "tensorflow_datasets": tfds.__version__,
        "ids": ids,
        "stored": sorted(specs),
        "train": examples,
    }
    (HERE / "expected.json").write_text(json.dumps(known, sort_keys=True) + "\n", encoding="utf-8")


def _numpy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numpy(each) for key, each in value.items()}
    return value.numpy() if hasattr(value, "numpy") else value


if __name__ == "__main__":
    main()
