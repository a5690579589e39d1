"""What the features of a prepared data set are to people: images, labels with names, videos."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tfrfast.storage.remote.options import storage_of
from tfrfast.storage.schemes import is_url
from tfrfast.tfds_folder.places import Place, place_of

__all__ = ["FeatureKind", "is_tfds_folder", "kinds_of"]

_MAX_LEVELS = 32


class FeatureKind(NamedTuple):
    #: Such as "image 28x28x1", "label, 10 classes" or "list of text".
    text: str
    #: The names of a label's classes, by number.
    labels: list[str]


def is_tfds_folder(path: str) -> bool:
    """True for the folder of one version. A URL is a folder if it ends in a slash."""
    if is_url(path):
        return path.endswith("/")
    return os.path.isfile(os.path.join(os.path.expanduser(path), "dataset_info.json"))


def kinds_of(folder: str, described: dict[str, Any] | None) -> Mapping[str, FeatureKind]:
    """Returns the kinds of the features in features.json. Leaves out what it does not know."""
    place = place_of(folder, storage_of(None))
    found: dict[str, FeatureKind] = {}
    with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError, OverflowError):
        for name, text, is_label in _kinds("", described or {}, "", 0):
            found[name] = FeatureKind(text, _labels(place, name) if is_label else [])
    return found


def _kinds(
    name: str, feature: dict[str, Any], lists: str, level: int
) -> Iterator[tuple[str, str, bool]]:
    if level > _MAX_LEVELS:
        return
    if "featuresDict" in feature:
        for key, each in feature["featuresDict"].get("features", {}).items():
            yield from _kinds(f"{name}/{key}" if name else key, each, lists, level + 1)
    elif "sequence" in feature:
        inner = feature["sequence"]["feature"]
        yield from _kinds(name, inner, f"list of {lists}", level + 1)
    elif "classLabel" in feature:
        yield name, f"{lists}label, {int(feature['classLabel']['numClasses']):,} classes", True
    elif "image" in feature:
        image = feature["image"]
        yield name, f"{lists}image{_shape(image)} {image.get('encodingFormat', '')}".rstrip(), False
    elif "video" in feature:
        yield name, f"{lists}video{_shape(feature['video'])}", False
    elif "text" in feature:
        yield name, f"{lists}text", False
    elif "audio" in feature:
        yield name, f"{lists}audio{_shape(feature['audio'])}", False
    elif "boundingBox" in feature:
        yield name, f"{lists}box {feature['boundingBox'].get('bboxFormat', '')}".rstrip(), False
    elif "tensor" in feature:
        tensor = feature["tensor"]
        yield name, f"{lists}{tensor.get('dtype', 'tensor')}{_shape(tensor)}", False


def _shape(stored: dict[str, Any]) -> str:
    sizes = stored.get("shape", {}).get("dimensions", [])
    return (
        " " + "x".join("?" if int(size) < 0 else str(int(size)) for size in sizes) if sizes else ""
    )


def _labels(place: Place, name: str) -> list[str]:
    """Returns the names in the file of a label; none if there is no such file."""
    content = None
    with contextlib.suppress(OSError, ValueError):
        content = place.read(f"{name.replace('/', '-')}.labels.txt")
    lines = [] if content is None else content.decode(errors="replace").split("\n")
    return [name for line in lines if (name := line.strip())]  # as TensorFlow Datasets reads them
