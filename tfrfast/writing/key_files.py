"""The key files of a set that loses records, or gets new ones."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import Int64Array
from tfrfast.errors import FeatureError, RecordError
from tfrfast.example.parsing import parse_example
from tfrfast.features import VarLen
from tfrfast.keys.entries import Entries, entries_of, hashes_of, sorted_entries
from tfrfast.keys.key_file import KeyFile, KeyHeader, is_of, key_path, stamp_of, write_keys
from tfrfast.reader import Reader
from tfrfast.writing.publishing import named_errors, publish_own
from tfrfast.writing.work_folder import WorkFolder

__all__ = [
    "derive_key_file",
    "folders_of",
    "keys_of",
    "publish_keys",
]

_MAX_MEMORY = 1 << 30
_BYTES_AT_ONCE = 16 << 20
_ENTRIES_AT_ONCE = 1 << 20


def folders_of(paths: Sequence[str], chosen: str | None) -> list[str]:
    """Returns the folders where key files of these shards may lie."""
    names = {each for path in paths[:1] for each in (path, os.path.realpath(path))}
    beside = {_native.sibling_index_folder(os.fsencode(name)) for name in names}
    return [
        each for each in sorted({*beside, *([chosen] if chosen else [])}) if os.path.isdir(each)
    ]


def keys_of(reader: Reader, folders: Iterable[str]) -> Iterator[tuple[str, KeyFile]]:
    """Yields the folder and each valid key file of these shards."""
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".keys"):
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError, RecordError):
                    file = KeyFile(path, reader._core)
                    if path == key_path(reader, file.feature, folder) and is_of(reader, file):
                        yield folder, file


def derive_key_file(
    reader: Reader,
    old: KeyFile,
    folder: str,
    moved: Callable[[Int64Array], Int64Array],
    new: range = range(0),
) -> None:
    """Makes a set's key file in the folder from the one that the set had before it changed.

    `moved` gives the new number of each old record, and -1 where there is none. Only the `new`
    records are read. Raises the errors of reading, and FeatureError.
    """
    feature, kind = old.feature, "int64" if old.has_ints else "bytes"
    path = key_path(reader, feature, folder)
    _native.check_sidecar_name(os.fsencode(path))
    stamp = stamp_of(reader.shards)
    with WorkFolder(path) as work, named_errors(path):
        entries = Entries(_MAX_MEMORY, work.path)
        for at in range(0, old.num_entries, _ENTRIES_AT_ONCE):
            some = slice(at, at + _ENTRIES_AT_ONCE)
            hashes, places = old.hashes[some], moved(old.numbers_of(some))
            entries.add(entries_of(hashes[places >= 0], places[places >= 0]))
        size = reader._records_within(_BYTES_AT_ONCE)
        for at in range(new.start, new.stop, size):
            records = reader.read(range(at, min(at + size, new.stop)))
            column: Any = parse_example(records, {feature: VarLen(kind)})[feature]
            counts = np.diff(column.row_splits)
            if counts.max(initial=0) > 1:
                raise FeatureError(f"Feature {feature!r} has several values in a record.")
            hashes = hashes_of(column.values)
            entries.add(sorted_entries([entries_of(hashes, records.indices[counts > 0])]))
        publish_keys(reader, feature, kind, stamp, entries, work.inside("keys"), path)


def publish_keys(
    reader: Reader, feature: str, kind: str, stamp: int, entries: Entries, made: str, path: str
) -> None:
    """Writes the entries to the file `made`, which then gets its name."""
    header = KeyHeader(
        feature,
        kind,
        len(reader),
        entries.count,
        entries.distinct(),
        reader._fingerprint,
        stamp,
    )
    with open(made, "xb") as file:
        write_keys(file, header, entries.sorted_parts())
        publish_own(file, path)
