"""Counts the lengths of records once, and keeps them in a file beside the indexes."""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast.base.progress import ProgressBar
from tfrfast.errors import CorruptRecordError, StaleIndexError
from tfrfast.keys.key_file import key_path, stamp_of
from tfrfast.order import Batching, Plan
from tfrfast.order.counted import CountedBatching, KeptLengths, not_held
from tfrfast.reader import Reader, warn_of_damage
from tfrfast.writing.publishing import named_errors, publish_own
from tfrfast.writing.work_folder import WorkFolder, no_empty_folders

__all__ = ["counted", "in_files", "kept_lengths"]

_MAGIC = b"tfr.lens"
_VERSION = 1
# magic, version, bytes of a length, records, fingerprint, stamp, bytes of the name, checksum of the
# lengths, zero; then a checksum of all this and the name; the name; the lengths
_HEADER = struct.Struct("<8sIIQQQIII")
_CRC = struct.Struct("<I")
_PIECES = 64  # between which Ctrl-C is noticed and progress is drawn
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)


def counted(batching: Batching, reader: Reader) -> Any:
    """Returns the batching with the lengths of the reader's records, if it names features."""
    if not isinstance(batching, CountedBatching):
        return batching
    names = batching._names_to_count()
    if not names:
        return batching
    for name in names:
        if reader._is_drawn(name):
            raise ValueError(
                f"Feature {name!r} is drawn from several in each epoch, so its lengths cannot be "
                "counted once. Name another feature. Or give a ByTokens an array with the largest "
                "length that each step can have."
            )
    tables = tuple(not_held(kept_lengths(reader, name)) for name in names)
    return batching._copy(_tables=tables)


def kept_lengths(reader: Reader, feature: str) -> _native.LengthTable:
    """Returns the number of values that the feature has in each record. Counts them in one pass
    over the records, unless a file of these shards has them.

    No file is kept with `index="memory"`, where nothing can be written, or if damaged records were
    left out, which another Reader must not take for empty ones.
    """
    keeps = reader._options["index"] != "memory" and bool(reader.shards)
    path = ""
    if keeps:
        folder = reader._folder_of_indexes(None, "file of lengths")
        path = key_path(reader, feature, folder).removesuffix(".keys") + ".lengths"
        with contextlib.suppress(FileNotFoundError, CorruptRecordError, StaleIndexError):
            table = _native.LengthTable.open(os.fsencode(path), reader._core)
            facts = table.feature, len(table), table.fingerprint, table.stamp
            if facts == (feature, len(reader), reader._fingerprint, stamp_of(reader.shards)):
                return table
    stamp = stamp_of(reader.shards)
    lengths, are_whole = _count(reader, feature)
    if keeps and are_whole:
        try:
            _write(path, reader, feature, stamp, lengths)
            return _native.LengthTable.open(os.fsencode(path), reader._core)
        except OSError as error:
            if error.errno not in _NOT_WRITABLE:
                raise
    return _native.LengthTable(lengths.astype(np.int64))


def in_files(plan: Plan) -> tuple[Plan, list[Any]]:
    """Returns the plan with all its lengths in files, which TensorFlow's ops can read, and the
    temporary files, which live as long as the list.
    """
    batching = plan.batching
    if not isinstance(batching, CountedBatching) or all(each.path for each in batching._tables):
        return plan, []
    files = []
    tables = []
    for table in batching._tables:
        if not table.path:
            file = tempfile.NamedTemporaryFile(suffix=".lengths")  # noqa: SIM115
            _write_to(file, "", 0, 0, table.lengths().astype(np.uint32))
            file.flush()
            table = KeptLengths(os.fsencode(file.name), table.hash, len(table))
            files.append(file)
        tables.append(table)
    kept = batching._copy(_tables=tuple(tables))
    return Plan(plan.order, kept, num_records=plan.num_records, **plan._share()), files


def _count(reader: Reader, feature: str) -> tuple[npt.NDArray[np.uint32], bool]:
    """Returns the lengths, and whether no record was left out."""
    lengths = np.zeros(len(reader), np.uint32)
    are_whole = True
    threads = reader._options["threads"] or _native.usable_processors()
    bounds = np.linspace(0, len(reader), _PIECES + 1).astype(np.int64)
    with ProgressBar("Counting lengths", reader._options["progress"], "records") as bar:
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            if begin < end:
                lengths[begin:end], is_whole = _native.count_lengths(
                    reader._core, feature, begin, end, threads
                )
                are_whole &= is_whole
            bar.update(end, len(reader))
    warn_of_damage(reader.skipped)
    if len(lengths) and not lengths.any():
        raise ValueError(f"No record has values of feature {feature!r}, so there is no length.")
    return lengths, are_whole


def _write(
    path: str, reader: Reader, feature: str, stamp: int, lengths: npt.NDArray[np.uint32]
) -> None:
    with no_empty_folders(os.path.dirname(path)), WorkFolder(path) as work:
        _native.check_sidecar_name(os.fsencode(path))
        with named_errors(path), open(work.inside("lengths"), "xb") as file:
            _write_to(file, feature, reader._fingerprint, stamp, lengths)
            publish_own(file, path)


def _write_to(
    file: Any, feature: str, fingerprint: int, stamp: int, lengths: npt.NDArray[np.uint32]
) -> None:
    width = 2 if int(lengths.max(initial=0)) < 1 << 16 else 4
    values = lengths.astype(f"<u{width}").tobytes()
    name = feature.encode()
    packed = _HEADER.pack(
        _MAGIC,
        _VERSION,
        width,
        len(lengths),
        fingerprint,
        stamp,
        len(name),
        _native.crc32c(values, 0),
        0,
    )
    file.write(packed + _CRC.pack(_native.crc32c(packed + name, 0)) + name)
    file.write(values)
