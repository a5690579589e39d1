"""Exchanges text indexes with other tools."""

from __future__ import annotations

import os

from tfrfast import _native
from tfrfast.base.warning import core_warnings
from tfrfast.jobs.indexing.building import build_index
from tfrfast.jobs.indexing.places import BuiltIndex
from tfrfast.storage.paths import Paths, expand_paths, refuse_urls, written_file


def export_text_indexes(paths: Paths, folder: str | os.PathLike[str]) -> list[str]:
    """Writes the index of each shard as text, `<folder>/<shard name>.idx`.

    The text has a line for each record, `<offset of the frame> <length of the frame>`, as NVIDIA
    DALI and the `tfrecord` package read it. A shard without an index is read once. Returns the
    paths of the texts. Raises ValueError for compressed shards and for URLs, and OSError if a file
    cannot be written.
    """
    shards = _shards_of(paths)
    texts = check_text_places(shards, folder)
    with core_warnings():
        for shard, text in zip(shards, texts, strict=True):
            _native.export_text_index(os.fsencode(shard), os.fsencode(text))
    return texts


def import_text_indexes(
    paths: Paths,
    folder: str | os.PathLike[str],
    *,
    index_folder: str | os.PathLike[str] | None = None,
) -> list[BuiltIndex]:
    """Makes the indexes of `paths` from text indexes, `<folder>/<shard name>.idx`.

    The indexes are saved where `build_index` saves them, or in `index_folder`. Readers trust an
    imported index, so each shard is read once and must have exactly these records. Raises
    ValueError if a shard has other records, and OSError if a file cannot be read or written.
    """
    shards = _shards_of(paths)
    into = b"" if index_folder is None else written_file(index_folder)
    for shard, text in zip(shards, _text_paths(shards, folder), strict=True):
        _native.import_text_index(os.fsencode(text), os.fsencode(shard), into)
    return build_index(shards, folder=index_folder, progress=False)


def check_text_places(shards: list[str], folder: str | os.PathLike[str]) -> list[str]:
    """Returns the places of the text indexes. Raises if they cannot be written there."""
    os.makedirs(os.fsdecode(written_file(folder)), exist_ok=True)
    texts = _text_paths(shards, folder)
    for text in texts:
        _native.check_place(os.fsencode(text))
    return texts


def _shards_of(paths: Paths) -> list[str]:
    shards = list(dict.fromkeys(expand_paths(paths)))
    refuse_urls(shards, "text indexes are of")
    return shards


def _text_paths(shards: list[str], folder: str | os.PathLike[str]) -> list[str]:
    return [os.path.join(os.fspath(folder), os.path.basename(shard) + ".idx") for shard in shards]
