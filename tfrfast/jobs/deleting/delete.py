"""Deletes records. Only the shards that hold them are written again, each replaced whole."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import Int64Array, checked_threads
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.tables import summary
from tfrfast.base.warning import warn
from tfrfast.columns.rows import row_numbers
from tfrfast.errors import RecordError, StaleIndexError
from tfrfast.jobs.building_keys import build_key_file
from tfrfast.jobs.chosen_records import ChosenRecords, OfRecords, ShardSizes
from tfrfast.jobs.copying import Copied, WriteShard
from tfrfast.jobs.deleting.deletion import FOLDER, Deletion, ShardLosses, version_of
from tfrfast.jobs.deleting.stale_files import remove_stale_files
from tfrfast.jobs.running import Advance, Workers
from tfrfast.keys.key_file import KeyFile
from tfrfast.reader import Reader, Skipped, all_damage
from tfrfast.storage.disk_cache import DiskCache, forget_objects
from tfrfast.storage.journal import Journal
from tfrfast.storage.paths import Paths, absolute, absolute_path, expand_paths, refuse_urls
from tfrfast.tables.selecting import records_where
from tfrfast.writing.key_files import derive_key_file, folders_of, keys_of
from tfrfast.writing.options import compression_level
from tfrfast.writing.publishing import uninterrupted
from tfrfast.writing.shard_set import Unpublished
from tfrfast.writing.work_folder import clear, held

__all__ = ["Deleted", "delete"]

_PIECE_BYTES = 16 << 20


class Deleted(NamedTuple):
    """The result of `tfr.delete`."""

    #: The shards that lose records, and how many each.
    shards: dict[str, int]
    num_records: int
    #: The keys that no record has.
    missing: list[Any]
    #: The damage that was left out, with `on_corruption="skip"`.
    skipped: list[Skipped]

    def __repr__(self) -> str:
        return summary(self)


@explains_arguments
def delete(
    paths: Paths,
    *,
    keys: Mapping[str, Any] | None = None,
    where: str | None = None,
    records: Any = None,
    dry_run: bool = False,
    on_corruption: str = "raise",
    index_folder: str | os.PathLike[str] | None = None,
    decompressed_cache: DiskCache | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> Deleted:
    """Deletes records from shards of this machine. Returns a `Deleted`.

        tfr.delete("data/train-*", keys={"user": ["u_17", "u_40"]})
        tfr.delete("data/train-*", where="label = 3", dry_run=True)

    Only the shards that hold such records are written again, and each is replaced in one step.
    Before the first replacement, a journal beside the shards holds the numbers of the records to
    go. `tfr.delete(paths)` alone goes on from the journal of an interrupted deletion. Do not repeat
    a call with `records`: if the deletion was complete, the numbers mean others. See
    docs/living.md.

    Args:
      paths: the whole set, as for Reader. All shards lie in one folder.
      keys: a feature, and the keys whose records go; all records that share a key go. A key file
        of the feature is used if there is one.
      where: instead, a condition in SQL on features, which DuckDB or Polars evaluates.
      records: instead, numbers of records, a slice or a mask.
      dry_run: True only returns what would go.
      on_corruption: "raise" refuses shards with damage, before anything is changed. "skip" leaves
        the damaged records of the rewritten shards out, too.
      index_folder: the folder of the indexes and key files, as for Reader.
      decompressed_cache: forgets the bytes of the rewritten shards, which it may keep.
      threads, progress: as for `tfr.verify`.
      executor: writes the shards, instead of threads of this process.
    """
    threads = checked_threads(threads)
    if sum(each is not None for each in (keys, where, records)) > 1:
        raise ValueError("Say one of keys=, where= and records=.")
    wanted = _keys(keys)
    names = absolute(expand_paths(paths))
    refuse_urls(names, "tfr.delete replaces")
    folder = _folder_of(names)
    indexes = None if index_folder is None else absolute_path(index_folder)
    options: dict[str, Any] = {"threads": threads, "progress": progress}
    request = _request(names, wanted, where, records)
    beside = os.path.dirname(folder)
    busy = f"Another process deletes records in {beside!r} right now"
    with contextlib.nullcontext() if dry_run else held(Journal(folder), busy):
        deletion = Deletion.load(folder)
        missing: list[Any] = []
        damage: list[Skipped] = []
        if deletion is None:
            if not request:
                raise ValueError(
                    "Say which records go, by their keys, by a condition or by their numbers: no "
                    f"deletion is unfinished in {beside!r}."
                )
            options |= {"on_corruption": on_corruption, "index_folder": indexes}
            versions = [version_of(name) for name in names]
            with Reader(names, **options) as reader:
                space = None if dry_run else folder
                numbers, missing = _chosen(reader, wanted, where, records, space)
                shards = _losses(reader, numbers, names, versions)
                _refuse_what_cannot_be_written(reader, shards)
                _check(reader, shards, executor)
                damage = reader.skipped
                if not shards or dry_run:
                    return _result(shards, missing, damage)
                facts = {
                    "request": request,
                    "on_corruption": on_corruption,
                    "paths": names,
                    "names": [os.path.basename(os.path.realpath(name)) for name in names],
                    "features": [
                        file.feature for _, file in keys_of(reader, folders_of(names, indexes))
                    ],
                    "index_folder": indexes,
                    "cache_folder": decompressed_cache and decompressed_cache.folder,
                }
            _warn_of_counts(os.path.join(beside, "dataset_info.json"))
            clear(folder)
            deletion = Deletion.begin(folder, facts, shards)
        elif request not in ("", deletion.request):
            raise ValueError(
                f"{deletion}, and the numbers of records have moved. Finish it first: "
                "tfr.delete(paths) without anything else, or `tfrfast delete --finish`."
            )
        elif {loss.name for loss in deletion.shards}.isdisjoint(
            os.path.basename(os.path.realpath(name)) for name in names
        ):
            raise ValueError(
                f"{deletion}, but of other shards than these: {deletion.shards[0].given!r} is one."
            )
        if dry_run:
            return _result([deletion.shards[number] for number in deletion.left()], missing, damage)
        damage = all_damage(damage, _carry_out(deletion, options, executor))
        return _result(deletion.shards, missing, damage)


def _result(shards: Sequence[ShardLosses], missing: list[Any], damage: list[Skipped]) -> Deleted:
    counts = {shard.given: len(shard.gone) for shard in shards}
    return Deleted(counts, sum(counts.values()), missing, damage)


def _folder_of(names: Sequence[str]) -> str:
    """Returns the hidden folder beside the shards, links followed."""
    if not names:
        raise ValueError("paths names no shard.")
    folders = sorted({os.path.dirname(os.path.realpath(name)) for name in names})
    if len(folders) != 1:
        raise ValueError(
            f"The shards lie in {len(folders)} folders, of which {folders[0]!r} is the first. A "
            "deletion has one journal, beside its shards: delete folder by folder."
        )
    return os.path.join(folders[0], FOLDER)


def _request(
    names: Sequence[str], keys: list[tuple[str, list[Any]]], where: str | None, records: Any
) -> str:
    """Returns a hash of what is asked for, or "" for nothing.

    The numbers of records are taken as they were given, because they mean others once some have
    gone.
    """
    if not keys and where is None and records is None:
        return ""
    if isinstance(records, slice):
        records = repr(records)
    elif records is not None:
        numbers = np.asarray(records)
        whole = numbers.astype(np.int64) if numbers.dtype.kind in "iu" else numbers
        records = hashlib.sha256(whole.tobytes()).hexdigest()
    wanted = [(feature, sorted(map(repr, some))) for feature, some in keys]
    asked = sorted(map(os.path.realpath, names)), wanted, where, records
    return hashlib.sha256(repr(asked).encode(errors="surrogateescape")).hexdigest()


def _keys(keys: Any) -> list[tuple[str, list[Any]]]:
    """Returns the feature and its keys. They are read once, because they may be an iterator."""
    if keys is None:
        return []
    if not isinstance(keys, Mapping) or len(keys) != 1 or not isinstance(next(iter(keys)), str):
        raise TypeError(
            'keys is a dict of one feature and its keys, like {"user": ["u_17"]}, not '
            f"{keys!r:.60}."
        )
    ((feature, wanted),) = keys.items()
    if getattr(wanted, "ndim", None) == 0:
        wanted = wanted.item()
    one = isinstance(wanted, (bytes, str)) or not hasattr(wanted, "__iter__")
    return [(feature, [wanted] if one else list(wanted))]


def _chosen(
    reader: Reader,
    keys: list[tuple[str, list[Any]]],
    where: str | None,
    records: Any,
    space: str | None,
) -> tuple[Int64Array, list[Any]]:
    """Returns the numbers of the records to go, ascending, and the keys that no record has.

    A key file that is missing is made in the folder `space`.
    """
    if where is not None:
        return records_where(reader, where), []
    if records is not None:
        return np.unique(row_numbers(records, len(reader), "Record")), []
    ((feature, wanted),) = keys
    with contextlib.ExitStack() as stack:
        try:
            keyed = reader.by_key(feature)
        except (OSError, StaleIndexError):
            made = stack.enter_context(tempfile.TemporaryDirectory(dir=space))
            build_key_file(reader, feature, made, "1GiB", Workers.of(reader))
            keyed = reader.by_key(feature, folder=made)
        parsed = [keyed._parse(each) if isinstance(each, str) else each for each in wanted]
        found = [keyed.all(each).indices for each in parsed]
    missing = [key for key, some in zip(wanted, found, strict=True) if not len(some)]
    return np.unique(np.concatenate([np.empty(0, np.int64), *found])), missing


def _losses(
    reader: Reader, numbers: Int64Array, names: Sequence[str], versions: Sequence[list[int]]
) -> list[ShardLosses]:
    """Returns the shards that hold the records. A file that has two names in the set loses what it
    loses under both.
    """
    starts = ShardSizes(reader).starts
    ends = np.searchsorted(numbers, starts)
    losses: dict[str, ShardLosses] = {}
    for shard in np.flatnonzero(np.diff(ends)).tolist():
        gone = numbers[ends[shard] : ends[shard + 1]] - starts[shard]
        real = os.path.basename(os.path.realpath(names[shard]))
        if real in losses:
            gone = np.union1d(losses[real].gone, gone)
        count = int(starts[shard + 1] - starts[shard])
        losses[real] = ShardLosses(names[shard], real, versions[shard], count, gone)
    return list(losses.values())


def _refuse_what_cannot_be_written(reader: Reader, losses: Sequence[ShardLosses]) -> None:
    compressions = {shard.path: shard.compression for shard in reader.shards}
    for loss in losses:
        compression_level(compressions[loss.given], None)
        links = os.stat(loss.given).st_nlink
        if links > 1:
            raise ValueError(
                f"{loss.given!r} has {links} names (hard links), and the others would keep the "
                "deleted records. Remove the other names, or copy the file in its place."
            )


def _warn_of_counts(info: str) -> None:
    if os.path.exists(info):
        warn(
            f"{info!r} counts the records of each shard for TensorFlow Datasets, and a deletion "
            "does not change it: correct its shardLengths.",
            RuntimeWarning,
        )


def _rows_that_stay(reader: Reader, losses: Sequence[ShardLosses]) -> list[ChosenRecords]:
    known = ShardSizes(reader)
    numbers = {path: number for number, path in enumerate(reader._paths)}
    starts = known.starts.tolist()
    places = [numbers[loss.given] for loss in losses]
    return [
        ChosenRecords(known, range(starts[at], starts[at + 1]), loss.gone)
        for at, loss in zip(places, losses, strict=True)
    ]


def _check(reader: Reader, losses: Sequence[ShardLosses], executor: Executor | None) -> None:
    """Reads the records that stay in the shards, before anything is changed. Raises for damage."""
    if reader._skips_damage:
        return
    tasks = [_ReadRecords(rows) for rows in _rows_that_stay(reader, losses)]
    for _ in Workers.of(reader, executor).run("Checking", tasks, "records"):
        pass


class _ReadRecords(OfRecords):
    """Only reads records."""

    def run(self, advance: Advance) -> None:
        for numbers in self.rows.pieces(_PIECE_BYTES, advance):
            self.rows.reader.read(numbers)


def _carry_out(
    deletion: Deletion,
    options: dict[str, Any],
    executor: Executor | None,
) -> list[Skipped]:
    """Replaces the shards that are left. Returns the damage that was left out."""
    options |= {"on_corruption": deletion.on_corruption, "index_folder": deletion.index_folder}
    left = deletion.left()
    losses = [deletion.shards[number] for number in left]
    keys = _KeyFiles(deletion, options)
    damage: list[Skipped] = []
    try:
        if losses:
            with (
                Reader([loss.given for loss in losses], **options) as reader,
                contextlib.closing(
                    _rewritten(reader, losses, deletion.journal.folder, executor)
                ) as rewritten,
            ):
                for number, made in zip(left, rewritten, strict=True):
                    damage += made.skipped
                    uninterrupted(_replace, deletion, number, made.paths[0], keys)
        uninterrupted(_finish, deletion, keys)
    except BaseException as error:
        if not deletion.replaced:
            deletion.end()
        elif isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(
                "The deletion is complete"
                if not deletion.journal.exists()
                else "Some shards are without the records. tfr.delete(paths) alone goes on, "
                "as does `tfrfast delete --finish`"
            ) from None
        raise
    return damage


def _rewritten(
    reader: Reader, losses: Sequence[ShardLosses], folder: str, executor: Executor | None
) -> Generator[Copied]:
    """Yields each new shard. Ends the tasks when it is closed."""
    tasks = []
    rows_that_stay = _rows_that_stay(reader, losses)
    for shard, rows, loss in zip(reader.shards, rows_that_stay, losses, strict=True):
        if shard.num_records != loss.num_records:
            raise StaleIndexError(
                f"{loss.given!r} has {shard.num_records} records, and had {loss.num_records} when "
                "this deletion was begun.",
                path=loss.given,
            )
        compression: Any = shard.compression
        tasks.append(WriteShard(rows, Unpublished(folder, index=True, compression=compression)))
    for name in ("shards", "index"):
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        os.makedirs(os.path.join(folder, name))
    yield from Workers.of(reader, executor).run("Deleting", tasks, "records")


def _replace(deletion: Deletion, number: int, made: str, keys: _KeyFiles) -> None:
    path = deletion.path(number)
    if version_of(path) != deletion.shards[number].version:
        deletion.left()  # raises
    deletion.add(number, made)
    keys.remove_once()
    _native.move_file(os.fsencode(made), os.fsencode(path), True)
    with contextlib.suppress(OSError, RecordError):  # the next reader makes an index itself
        index = _native.MadeIndexes(os.fsencode(os.path.join(deletion.journal.folder, "index")))
        index.add(
            os.path.basename(made), os.fsencode(deletion.index_folder or ""), os.fsencode(path)
        )


def _finish(deletion: Deletion, keys: _KeyFiles) -> None:
    paths = [deletion.path(number) for number in range(len(deletion.shards))]
    for folder in keys.folders:
        with contextlib.suppress(OSError):  # an index in parts works, too
            _native.compact_index(os.fsencode(folder))
    if deletion.cache_folder is not None:
        forget_objects(deletion.cache_folder, paths)
    keys.remove()
    keys.make()
    deletion.end()


class _KeyFiles:
    """The key files of the set, which are removed before the first replacement, and made again from
    the old ones. They are made from the records if that was interrupted, and if damage went, too.
    """

    def __init__(self, deletion: Deletion, options: dict[str, Any]) -> None:
        self._deletion = deletion
        self._options = options
        self.folders = folders_of(deletion.paths, deletion.index_folder)
        self._removed = False
        self._old: list[tuple[str, KeyFile]] = []
        if not deletion.replaced and deletion.features:
            with Reader(deletion.paths, **options) as reader:
                self._old = list(keys_of(reader, self.folders))
                starts = ShardSizes(reader).starts
                self._count = len(reader)
            gone = {loss.name: loss.gone for loss in deletion.shards}
            names = [os.path.basename(os.path.realpath(path)) for path in deletion.paths]
            self._gone: Int64Array = np.concatenate(
                [
                    first + gone[name]
                    for first, name in zip(starts, names, strict=False)
                    if name in gone
                ]
            )

    def remove_once(self) -> None:
        if not self._removed:
            self.remove()
            self._removed = True

    def remove(self) -> None:
        names = [loss.name for loss in self._deletion.shards]
        remove_stale_files(self.folders, self._deletion.beside, names)

    def make(self) -> None:
        if not self._deletion.features:
            return
        with Reader(self._deletion.paths, **self._options) as reader:
            if self._old and len(reader) != self._count - len(self._gone):
                self._old = []
            for folder, stored in self._old:
                derive_key_file(reader, stored, folder, self._moved)
            for feature in [] if self._old else self._deletion.features:
                try:
                    build_key_file(reader, feature, None, "1GiB", Workers.of(reader))
                except (RecordError, ValueError) as error:  # no record has the feature, or damage
                    warn(f"The key file of {feature!r} is gone: {error}", RuntimeWarning)

    def _moved(self, numbers: Int64Array) -> Int64Array:
        before = np.searchsorted(self._gone, numbers)
        after = np.searchsorted(self._gone, numbers, side="right")
        return np.where(before < after, -1, numbers - before)
