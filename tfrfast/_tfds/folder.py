"""A data set's folder: its splits, and the shards that each consists of."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from tfrfast._remote.options import Storage
from tfrfast._tfds.places import Place, place_of

__all__ = ["Folder", "Split", "open_folder"]

_INFO = "dataset_info.json"
_FEATURES = "features.json"
_SHOWN = 8
_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"


class Split(NamedTuple):
    name: str
    shards: list[str]
    shard_lengths: list[int]


class Folder(NamedTuple):
    splits: Mapping[str, Split]
    features: dict[str, Any] | None
    """What features.json holds, if there is such a file."""


def open_folder(folder: str | os.PathLike[str], storage: Storage) -> Folder:
    place = place_of(folder, storage)
    info = _read(place, _INFO)
    if info is None:
        raise _without_info(place)
    kind = info.get("fileFormat") or "tfrecord"
    if kind != "tfrecord":
        raise ValueError(
            f"{place.name!r} holds files of the format {kind!r}, which are not TFRecord files. "
            'Prepare the data set with file_format="tfrecord".'
        )
    splits = {}
    for each in info.get("splits", []):
        lengths = [int(length) for length in each.get("shardLengths", [])]
        template = each.get("filepathTemplate") or _TEMPLATE
        names = [
            _shard_name(template, info["name"], each["name"], number, len(lengths))
            for number in range(len(lengths))
        ]
        splits[each["name"]] = Split(each["name"], [*map(place.path_of, names)], lengths)
    if not splits:
        raise ValueError(
            f"'{place.path_of(_INFO)}' lists no splits: the data set was never prepared."
        )
    return Folder(splits, _read(place, _FEATURES))


def _without_info(place: Place) -> FileNotFoundError:
    advice = "Give the folder of one version, such as ~/tensorflow_datasets/mnist/3.0.1"
    if below := place.folders_below(_INFO):
        more = f" and {len(below) - _SHOWN} more" if len(below) > _SHOWN else ""
        advice = f"Give one of the folders below it: {', '.join(map(repr, below[:_SHOWN]))}{more}"
    path = place.path_of(_INFO)
    return FileNotFoundError(2, f"There is no {_INFO} in {place.name!r}. {advice}", path)


def _read(place: Place, file: str) -> dict[str, Any] | None:
    """What a JSON file holds. None if there is no such file."""
    if (content := place.read(file)) is None:
        return None
    path = place.path_of(file)
    try:
        value = json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{path!r} is not valid JSON: {error}. Prepare the data set again."
        ) from None
    if not isinstance(value, dict):
        raise ValueError(f"{path!r} does not hold a JSON object. Prepare the data set again.")
    return value


def _shard_name(template: str, dataset: str, split: str, number: int, count: int) -> str:
    values = {
        "DATASET": dataset,
        "SPLIT": split,
        "FILEFORMAT": "tfrecord",
        "SHARD_INDEX": f"{number:05d}",
        "NUM_SHARDS": f"{count:05d}",
        "SHARD_X_OF_Y": f"{number:05d}-of-{count:05d}",
    }
    name = template
    for key, value in values.items():
        name = name.replace(f"{{{key}}}", value)
    if "{" in name:
        raise ValueError(f"The file names of split {split!r} have an unknown form: {template!r}.")
    return name
