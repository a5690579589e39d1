"""A data set's folder: its splits, and the shards of each split."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tfrfast.storage.remote.options import Storage
from tfrfast.tfds_folder.places import Place, place_of

__all__ = ["Folder", "Split", "open_folder"]

_INFO = "dataset_info.json"
_FEATURES = "features.json"
_SHOWN = 8
_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
# A folder may claim shards that do not exist.
_MAX_SHARDS = 1 << 18
_NOT_PLAIN = re.compile(r"[/\\*?\[\]\0\ud800-\udfff]")
_STRANGE = "is not as TensorFlow Datasets writes it"


class Split(NamedTuple):
    name: str
    shard_lengths: list[int]
    path_of: Callable[[int], str]
    """The path or URL of a shard. Raises ValueError if its name leads out of the folder."""


class Folder(NamedTuple):
    splits: Mapping[str, Split]
    features: dict[str, Any] | None
    """The content of features.json, if the file exists."""


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
    try:
        splits = {
            split.name: split
            for each in info.get("splits", [])
            for split in [_split_of(place, str(info["name"]), each)]
        }
    except (AttributeError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(
            f"{place.path_of(_INFO)!r} {_STRANGE} ({type(error).__name__}: {error}). Prepare the "
            "data set again."
        ) from None
    if sum(len(split.shard_lengths) for split in splits.values()) > _MAX_SHARDS:
        raise ValueError(
            f"{place.path_of(_INFO)!r} claims more than {_MAX_SHARDS} shards. Give tfr.Reader the "
            "shards that there are."
        )
    if not splits:
        raise ValueError(
            f"'{place.path_of(_INFO)}' lists no splits: the data set was never prepared."
        )
    return Folder(splits, _read(place, _FEATURES))


def _split_of(place: Place, dataset: str, described: dict[str, Any]) -> Split:
    name = str(described["name"])
    lengths = [int(length) for length in described.get("shardLengths", [])]
    if min(lengths, default=0) < 0:
        raise ValueError(f"Split {name!r} claims a shard of {min(lengths)} records.")
    template = str(described.get("filepathTemplate") or _TEMPLATE)

    def path_of(number: int) -> str:
        return place.path_of(_shard_name(template, dataset, name, number, len(lengths)))

    return Split(name, lengths, path_of)


def _without_info(place: Place) -> FileNotFoundError:
    advice = "Give the folder of one version, such as ~/tensorflow_datasets/mnist/3.0.1"
    if below := place.folders_below(_INFO):
        more = f" and {len(below) - _SHOWN} more" if len(below) > _SHOWN else ""
        advice = f"Give one of the folders below it: {', '.join(map(repr, below[:_SHOWN]))}{more}"
    path = place.path_of(_INFO)
    return FileNotFoundError(2, f"There is no {_INFO} in {place.name!r}. {advice}", path)


def _read(place: Place, file: str) -> dict[str, Any] | None:
    """Returns the content of a JSON file, or None if the file does not exist."""
    if (content := place.read(file)) is None:
        return None
    path = place.path_of(file)
    try:
        value = json.loads(content.decode("utf-8"))
    except RecursionError:
        raise ValueError(f"{path!r} {_STRANGE}: it is nested too deeply.") from None
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
    is_numbered = count == 1 or "{SHARD_INDEX}" in template or "{SHARD_X_OF_Y}" in template
    if _NOT_PLAIN.search(name) or name in ("", os.curdir, os.pardir):
        raise ValueError(
            f"Split {split!r} names the file {name!r}. A shard lies in the folder itself, and its "
            "name is not a pattern. To read files elsewhere, give them to tfr.Reader."
        )
    if "{" in name or not is_numbered:
        raise ValueError(f"The file names of split {split!r} have an unknown form: {template!r}.")
    return name
