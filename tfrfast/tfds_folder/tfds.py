"""Opens data sets that TensorFlow Datasets has prepared."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.example.parsing import infer_features
from tfrfast.features import Features
from tfrfast.reader import Reader
from tfrfast.steps.choosing import Only
from tfrfast.steps.later import Later
from tfrfast.steps.one_of import OneOf
from tfrfast.steps.steps import Steps
from tfrfast.steps.window import Window
from tfrfast.storage.remote.options import storage_of
from tfrfast.tfds_folder.episodes import along_of, specs_of_steps, steps_feature
from tfrfast.tfds_folder.features import UndescribedError, specs_of
from tfrfast.tfds_folder.folder import Folder, Split, open_folder
from tfrfast.tfds_folder.splits import RecordRange, parts_of

__all__ = ["TfdsSplit", "tfds"]


class _SplitFields(NamedTuple):
    reader: Reader
    """Reads the shards of the split."""
    features: Features
    """The features of each record, for `parse_example` and `Loader`."""
    indices: npt.NDArray[np.int64] | None
    """The split's record numbers in `reader`, in order. None for all records of the reader."""


class TfdsSplit(_SplitFields):
    """A split of a data set of TensorFlow Datasets."""

    _described: dict[str, Any] | None = None

    def steps(
        self,
        *,
        windows: Mapping[str, Window | Later | OneOf] | None = None,
        only: Only | None = None,
    ) -> TfdsSplit:
        """Returns the steps of a data set whose records are episodes, such as RLDS.

            train = tfr.tfds("~/tensorflow_datasets/droid/1.0.0", split="train").steps()
            loader = tfr.Loader(train.reader, 256, features=train.features)

        `reader` is a `Steps` with these `windows` and `only`, and `features` describe one step.
        `indices` are the numbers of the split's steps. Raises ValueError if features.json
        describes no steps.
        """
        along = along_of_steps(self)
        assert self._described is not None
        windows = dict(windows or {})
        steps = Steps(self.reader, along=along, windows=windows, only=only)
        indices = self.indices
        if indices is not None:
            first_steps, lengths = steps.episodes
            counts = lengths[indices]
            begins = np.repeat(first_steps[indices] - (np.cumsum(counts) - counts), counts)
            indices = begins + np.arange(counts.sum())
        name = steps_feature(self._described)
        return TfdsSplit(steps, specs_of_steps(self._described, name, windows), indices)


def along_of_steps(split: TfdsSplit) -> dict[str, int | None]:
    """Returns the features of a split's steps, as Steps takes them. Raises ValueError if its
    records are no episodes.
    """
    name = steps_feature(split._described)
    assert split._described is not None
    return along_of(split._described, name)


@explains_arguments
def tfds(folder: str | os.PathLike[str], split: str, **reader_options: Any) -> TfdsSplit:
    """Opens a split that TensorFlow Datasets has prepared, without tensorflow_datasets.

        train = tfr.tfds("~/tensorflow_datasets/mnist/3.0.1", split="train[:10%]")
        loader = tfr.Loader(train.reader, 128, features=train.features, indices=train.indices)

    `folder` is the folder of one version, with `dataset_info.json`, or its URL (s3://, gs://,
    az://, hf://, https://). `split` is written as in `tfds.load`, and names the same records:
    "train", "train[:10%]", "train[100:-100]", "train[2shard]", "train[:4shard]", "all", or several
    joined by "+". The features come from `features.json`. Other features are inferred from the
    first records. `reader_options` are options of Reader, such as `storage` and `cache`.

    Features of dicts have names such as "objects/bbox". Encoded pictures, sound and video frames
    stay byte strings. Lists, and other dimensions of unknown size, are `Ragged` columns.

    Raises FileNotFoundError if the folder or a shard is missing, OSError if a URL cannot be read,
    and ValueError if the split does not exist, or if a shard does not hold as many records as
    `dataset_info.json` says.
    """
    found = open_folder(folder, storage_of(reader_options.get("storage")))
    lengths = {name: each.shard_lengths for name, each in found.splits.items()}
    parts = parts_of(split, lengths)
    shards = _shards_of(parts, found)
    reader = Reader([path for path, _ in shards], **reader_options)
    try:
        for shard, (path, length) in zip(reader.shards, shards, strict=True):
            if shard.num_records != length:
                raise ValueError(
                    f"{path!r} has {shard.num_records} records, but dataset_info.json says "
                    f"{length}. Prepare the data set again, or restore the file."
                )
        indices = _indices_of(parts, shards, found)
        opened = TfdsSplit(reader, _features_of(found, reader), indices)
        opened._described = found.features
        return opened
    except BaseException:
        reader.close()
        raise


def _shards_of(parts: list[RecordRange], found: Folder) -> list[tuple[str, int]]:
    """Returns the path and length of each shard to read, once each, in the order of the parts.

    A split without records still has one shard, which the Reader opens.
    """
    shards: dict[str, int] = {}
    for part in parts:
        split, first = found.splits[part.name], 0
        for number, length in enumerate(split.shard_lengths):
            if part.begin < first + length and first < part.end:
                shards[split.path_of(number)] = length
            first += length
    if not shards:
        split = found.splits[parts[0].name]
        shards |= {split.path_of(0): length for length in split.shard_lengths[:1]}
    return list(shards.items())


def _indices_of(
    parts: list[RecordRange], shards: list[tuple[str, int]], found: Folder
) -> npt.NDArray[np.int64] | None:
    first_in_reader = {}
    total = 0
    for path, length in shards:
        first_in_reader[path] = total
        total += length
    pieces = [np.empty(0, np.int64)]
    for part in parts:
        pieces += _pieces_of(part, found.splits[part.name], first_in_reader)
    indices = np.concatenate(pieces)
    is_all = len(indices) == total and np.array_equal(indices, np.arange(total))
    return None if is_all else indices


def _pieces_of(
    part: RecordRange, split: Split, first_in_reader: dict[str, int]
) -> list[npt.NDArray[np.int64]]:
    pieces = []
    first = 0
    for number, length in enumerate(split.shard_lengths):
        begin, end = max(part.begin, first), min(part.end, first + length)
        if begin < end:
            offset = first_in_reader[split.path_of(number)] - first
            pieces.append(np.arange(begin + offset, end + offset, dtype=np.int64))
        first += length
    return pieces


def _features_of(found: Folder, reader: Reader) -> Features:
    if found.features is not None:
        try:
            return specs_of(found.features)
        except UndescribedError:
            pass
    return infer_features(reader)
