"""Random access to the records of TFRecord shards."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from tfrfast import _native
from tfrfast.base.arguments import checked_threads
from tfrfast.base.progress import ProgressBar
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.sizes import counted
from tfrfast.base.tables import html_table
from tfrfast.base.warning import core_warnings, show_core_warnings, warn
from tfrfast.columns import Bytes, Column
from tfrfast.columns.shown import ROWS_SHOWN, html_columns
from tfrfast.errors import FeatureError, RecordError
from tfrfast.features.compiling import compile_features
from tfrfast.features.inference import settle
from tfrfast.features.sources import Sample
from tfrfast.keys.key_file import key_path, open_key_file
from tfrfast.keys.keyed import Keyed
from tfrfast.storage.disk_cache import DiskCache
from tfrfast.storage.paths import (
    Paths,
    absolute,
    absolute_path,
    encoded,
    expand_paths,
    written_file,
)
from tfrfast.storage.remote.options import Storage, storage_of


class Location(NamedTuple):
    """The place of a record: its shard's number, its frame's first byte, its payload's length."""

    shard: int
    """The number of the shard in `Reader.shards`."""
    offset: int
    """The first byte of the record's frame, in the uncompressed shard."""
    length: int
    """The number of bytes of the record, without its frame."""


class Skipped(NamedTuple):
    """Skipped bytes, and the number of records lost in them (None: unknown)."""

    path: str
    """The shard."""
    begin: int
    """The first skipped byte."""
    end: int
    """The first byte after the skipped bytes."""
    records: int | None
    """The number of lost records, or None if unknown."""


def all_damage(*found: Iterable[Skipped]) -> list[Skipped]:
    """Returns each damaged place once, in order, that parts of a job or several readers found."""
    return sorted({each for part in found for each in part}, key=lambda each: each[:3])


def warn_of_damage(damage: Sequence[Skipped]) -> None:
    """Warns of skipped damage that the result of a job does not list."""
    if damage:
        first = damage[0]
        warn(
            f"Damage was left out: {counted(len(damage), 'places')}, the first at bytes "
            f"{first.begin} to {first.end} of {first.path!r}. tfr.verify lists all.",
            RuntimeWarning,
        )


class Shard:
    """A file of a Reader."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._native_frames: _native.ShardFrames = facts["frames"]
        self.path: str = facts["path"]
        self.num_records: int = facts["num_records"]
        self.num_bytes: int = facts["num_bytes"]
        self._stream_bytes: int = facts["stream_bytes"]
        # The time of modification, and the three words of an index's version tag.
        self._version: tuple[int, int, int, int] = facts["version"]
        self.compression: str | None = facts["compression"] or None
        #: The index file in use, or None if the index was built in memory.
        self.index: str | None = facts["index"] or None

    @cached_property
    def _frames(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self._native_frames.offsets_and_lengths()

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The first byte of each record's frame, in the uncompressed shard."""
        return self._frames[0]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of bytes of each record."""
        return self._frames[1]

    def __repr__(self) -> str:
        return f"Shard({self.path!r}, num_records={self.num_records}, num_bytes={self.num_bytes})"


class Reader:
    """Reads any record of TFRecord shards by its number, and verifies it.

        reader = tfr.Reader("data/train-*")
        record, batch = reader[12_345], reader[[9, 2, 7]]  # bytes, and a RecordBatch

    Raises FileNotFoundError if nothing matches, and CorruptRecordError for damage. With more than
    64 shards, shards that `build_index` has indexed are opened at their first read. A shard that
    was removed or changed by then raises StaleIndexError.

    Args:
      paths: a path, a URL (s3://, gs://, az://, hf://, https://), a glob, or an iterable of these.
        An existing path is taken literally; the matches of a glob are sorted so that shard 10
        follows shard 9.
      compression: "auto" recognises the compression of each shard. "GZIP" and "ZLIB" require that
        compression of all shards; None or "" requires plain shards.
      verify: "full" checks both CRCs of every record, "header" only the CRC of its length. Both
        modes compare the length with the index.
      on_corruption: "raise", or "skip" to leave damaged records out; see `skipped`.
      io: "mmap" maps shards and "pread" reads them. "auto" maps shards on local filesystems.
      index: "auto" uses a valid index, or builds an index and keeps it in the cache folder;
        "memory" builds the index and keeps nothing; "require" makes a missing or stale index an
        error.
      index_folder: the only folder where indexes are looked up and kept. By default they lie beside
        the data, or else in the cache folder.
      threads: the number of threads that index, or serve one read. By default the number of
        processors that this process may use.
      progress: True or False shows or hides a bar on stderr while indexing. By default it appears
        on a terminal, after a second.
      storage: options for URLs, which replace the environment's: region, endpoint, anonymous,
        profile, account_name, credentials, timeout, connect_timeout, retries, retry_seconds.
      cache: a `DiskCache` that keeps bytes from URLs on this machine.
      decompressed_cache: a `DiskCache` that keeps the inflated bytes of compressed shards. Each
        part of a shard is inflated once for all processes of this machine, and then read like a
        plain file.

    Many threads may use one reader. A pickle holds the reader's arguments, and the copy opens the
    same files.
    """

    #: True if records are made from parts, so that no record is a frame of a shard.
    _makes_records = False
    #: The joined readers, whose records follow each other.
    _parts: list[Reader] | None = None
    #: The folder that was current when the reader was opened, if it still existed.
    _folder: str | None = None
    _core: _native.Reader
    #: The core's function, bound once because it is called often.
    _item: Callable[[Any], Any]

    @explains_arguments
    def __init__(
        self,
        paths: Paths,
        *,
        compression: Literal["auto", "", "GZIP", "ZLIB"] | None = "auto",
        verify: Literal["full", "header"] = "full",
        on_corruption: Literal["raise", "skip"] = "raise",
        io: Literal["auto", "mmap", "pread"] = "auto",
        index: Literal["auto", "memory", "require"] = "auto",
        index_folder: str | os.PathLike[str] | None = None,
        threads: SupportsIndex | None = None,
        progress: bool | None = None,
        storage: Mapping[str, Any] | Storage | None = None,
        cache: DiskCache | None = None,
        decompressed_cache: DiskCache | None = None,
    ) -> None:
        threads = checked_threads(threads)
        reached = storage_of(storage, cache, decompressed_cache)
        names = expand_paths(paths, reached)
        folder = None if index_folder is None else os.fsdecode(written_file(index_folder))
        if index == "memory" and folder is not None:
            raise ValueError(
                'index="memory" keeps no index. Leave out index_folder, or pass index="auto".'
            )
        self._options: dict[str, Any] = {
            "compression": compression,
            "verify": verify,
            "on_corruption": on_corruption,
            "io": io,
            "index": index,
            "index_folder": None if folder is None else absolute_path(folder),
            "threads": threads,
            "progress": progress,
            "storage": reached,
        }
        self._paths = names
        with contextlib.suppress(FileNotFoundError):
            self._folder = os.getcwd()
        with core_warnings(), ProgressBar("Indexing", progress) as bar:
            self._core = _native.Reader(
                encoded(names),
                compression=compression or "",
                verify=verify,
                on_corruption=on_corruption,
                io=io,
                index=index,
                index_folder=os.fsencode(folder or ""),
                threads=threads or _native.usable_processors(),
                storage=reached.core,
                progress=bar.update,
            )
        self._item = self._core.item

    @classmethod
    def _join(cls, readers: Mapping[str, Reader]) -> Reader:
        """Returns a reader of all readers' records end to end, which shares their files and
        indexes.

        Raises ValueError for readers with different options.
        """
        (first_name, first), *others = readers.items()
        options = first._options
        for name, other in others:
            for option in options.keys() - {"threads", "progress"}:
                if other._options[option] != options[option]:
                    raise ValueError(
                        f"The reader of {name!r} was opened with "
                        f"{option}={other._options[option]!r}, and that of {first_name!r} with "
                        f"{option}={options[option]!r}. The readers of a Mixture need the same."
                    )
        joined = cls.__new__(cls)
        joined._options = options
        joined._paths = [path for reader in readers.values() for path in reader._paths]
        parts = list(readers.values())
        joined._makes_records = any(reader._makes_records for reader in parts)
        joined._parts = parts
        joined._core = _native.Reader.joined([reader._core for reader in parts])
        joined._item = joined._core.item
        return joined

    def __len__(self) -> int:
        return self._core.__len__()

    @overload
    def __getitem__(self, key: int) -> bytes: ...
    @overload
    def __getitem__(
        self, key: slice | Sequence[int] | NDArray[np.integer[Any]]
    ) -> _native.RecordBatch: ...
    def __getitem__(self, key: Any) -> Any:
        return self._item(key)

    def __iter__(self) -> Iterator[bytes]:
        return self._core.__iter__()

    def read(self, indices: Sequence[int] | NDArray[np.integer[Any]]) -> _native.RecordBatch:
        """Returns the requested records, in that order, as a RecordBatch."""
        return self._core.read(indices)

    @explains_arguments
    def by_key(self, feature: str, *, folder: str | os.PathLike[str] | None = None) -> Keyed:
        """Returns the records by this feature's value, as in `reader.by_key("id")[b"cat_17"]`.

        Takes the key file of `tfr.build_keys`, beside the indexes or in `folder`. Raises
        FileNotFoundError if the file does not exist, and StaleIndexError if it belongs to other
        data.
        """
        path = key_path(self, feature, self._folder_of_indexes(folder, "key file"))
        file = open_key_file(path, self, self._core, feature)
        return Keyed(self._core, path, file, self._records_within(16 << 20))

    def close(self) -> None:
        """Closes all files. Using the reader afterwards is an error."""
        self._core.close()
        show_core_warnings()

    @property
    def closed(self) -> bool:
        return self._core.closed

    @property
    def _fingerprint(self) -> int:
        """A hash of shard names, sizes and record counts, which differs between data sets."""
        return self._core.fingerprint

    @cached_property
    def _source_starts(self) -> NDArray[np.int64]:
        return self._core.source_starts()

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of bytes of each record."""
        shards = self._frames().shards
        return np.concatenate([np.empty(0, np.int64), *(shard.lengths for shard in shards)])

    def _records_within(self, num_bytes: int) -> int:
        """Returns the number of records, from 1 to 65,536, that take about `num_bytes`."""
        mean = sum(shard.num_bytes for shard in self.shards) // max(len(self), 1)
        return max(1, min(1 << 16, num_bytes // max(mean, 1)))

    @property
    def _skips_damage(self) -> bool:
        """True if damaged records are left out."""
        return bool(self._options["on_corruption"] == "skip")

    def _described(self) -> bytes:
        """Returns the shards, their sizes and record counts, and the reader's options, as bytes.

        From these bytes, the native code of any process opens the same data, and refuses changed
        shards.
        """
        for part in self._parts or ():
            part._described()  # raises if the part cannot be described
        return self._core.describe()

    def _absolute_paths(self) -> list[str]:
        """Returns the paths of the same files in any current folder."""
        if self._parts is not None:
            return [path for part in self._parts for path in part._absolute_paths()]
        return absolute(self._paths, self._folder)

    def _frames(self) -> Reader:
        """Returns this reader. Raises TypeError if its records are not frames of shards."""
        if self._makes_records:
            raise TypeError(
                f"This needs whole records, and {self!r} makes records from parts. Give the Reader "
                "of whole records: `steps.records`."
            )
        return self

    def _folder_of_indexes(self, chosen: str | os.PathLike[str] | None, what: str) -> str:
        """Returns the folder for a file of all shards: the chosen folder, or that of the indexes of
        the first shard.
        """
        folder = self._options["index_folder"] if chosen is None else chosen
        if folder is not None:
            return os.fsdecode(written_file(folder))
        if not self.shards:
            raise ValueError(f"Without shards there is no {what}.")
        first = self.shards[0].path
        if "://" in first:
            raise ValueError(
                f"No folder lies beside {first!r}. Name a folder for the {what}: folder=..., or a "
                "Reader's index_folder=..."
            )
        return _native.sibling_index_folder(os.fsencode(absolute_path(first, self._folder)))

    def _with_columns(self, names: Sequence[str]) -> Reader:
        """Returns a reader of the same records, which may leave out all other features."""
        return self

    def _without_windows(self) -> Reader:
        """Returns a reader of the same records, without the windows of steps."""
        return self

    def _known_features(self) -> Mapping[str, Any]:
        """Returns the features that are known before any record is read."""
        return {}

    def _is_drawn(self, feature: str) -> bool:
        """Returns whether each epoch draws the feature anew from several."""
        return any(part._is_drawn(feature) for part in self._parts or ())

    def _fitted(self, features: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the features with what these records say about them, such as their windows."""
        fitted = [part._fitted(features) for part in self._parts or ()]
        for name in features:
            if any(each[name] != fitted[0][name] for each in fitted):
                raise ValueError(
                    f"The readers of a Mixture have different windows of {name!r}. Give them "
                    "windows of as many steps, and with the same pad."
                )
        return fitted[0] if fitted else features

    def locate(self, i: int) -> Location:
        """Returns the place of record `i`. Reads only the index."""
        return Location(*self._core.locate(i))

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """The files, in order."""
        core = self._core
        return tuple(Shard(core.describe_shard(i)) for i in range(core.num_shards()))

    @property
    def skipped(self) -> list[Skipped]:
        """The damage that `on_corruption="skip"` has skipped so far."""
        return [Skipped(*each) for each in self._core.skipped()]

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        if self._parts is not None:
            return _join_again, (self._parts,)
        return _open, (self._absolute_paths(), self._options)

    def __repr__(self) -> str:
        if not hasattr(self, "_core"):  # a debugger may show a reader whose __init__ failed
            return "Reader(not opened)"
        if self.closed:
            return "Reader(closed)"
        return f"Reader({self._core.num_shards()} shards, {len(self)} records)"

    def _repr_html_(self) -> str:
        if not hasattr(self, "_core") or self.closed:
            return html_table(repr(self), [], [])
        try:
            records = self.read(range(min(ROWS_SHOWN, len(self))))
        except (RecordError, OSError) as error:
            return html_table(self._title(), [str(error)], [])
        return html_columns(
            self._title(), _columns_of(records, self._core), records.indices.tolist()
        )

    def _title(self) -> str:
        shards = counted(self._core.num_shards(), "shards")
        return f"Reader: {counted(len(self), 'records')}, {shards}"


def _columns_of(records: _native.RecordBatch, reader: _native.Reader) -> Mapping[str, Column]:
    """Returns the features of records, or the records themselves if they are not Examples."""
    sample = Sample(records.tolist(), records.indices.tolist(), reader)
    try:
        compiled = compile_features(settle("infer", lambda count: sample))
        native = compiled.parser.parse_flat(records.data, records.offsets, records.indices)
    except (FeatureError, ValueError):
        return {"record": Bytes(records.data, records.offsets)}
    return compiled.assemble(native)


def _join_again(parts: list[Reader]) -> Reader:
    return Reader._join({str(number): part for number, part in enumerate(parts)})


def _open(paths: list[str], options: dict[str, Any]) -> Reader:
    return Reader(paths, **options)
