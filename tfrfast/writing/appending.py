"""New shards after those of a set, published together."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from tfrfast import _native
from tfrfast.base.warning import warn
from tfrfast.errors import RecordError
from tfrfast.keys.key_file import stamp_of
from tfrfast.reader import Reader
from tfrfast.storage.journal import Journal
from tfrfast.storage.output import Output, named_url, open_output
from tfrfast.storage.paths import absolute_path, natural_key, written_file
from tfrfast.storage.remote.options import Storage
from tfrfast.storage.schemes import is_url
from tfrfast.storage.unpublished import Appends, append_folder, facts_of, unpublished_by
from tfrfast.writing.key_files import derive_key_file, folders_of, keys_of
from tfrfast.writing.options import Compression, FilePath, IndexFolder
from tfrfast.writing.publishing import (
    Indexes,
    numbered_set,
    publish,
    unfinished_sets,
    uninterrupted,
)
from tfrfast.writing.work_folder import clear, hold, remove_held

__all__ = ["appended_compression", "open_set", "unfinished_appends"]


def open_set(
    prefix: FilePath,
    storage: Mapping[str, Any] | Storage | None,
    *,
    append: bool,
    index: bool,
    index_folder: IndexFolder,
    sync: bool,
    overwrite: bool,
) -> Output:
    """Returns the output of a set of shards. With `append`, an existing set keeps its shards."""
    if append:
        if overwrite:
            raise ValueError("append=True keeps the old shards, so overwrite=True makes no sense.")
        if url := named_url(prefix):
            raise ValueError(
                f"{url!r} is a URL, and append=True needs a lock that keeps other writers out, "
                "which storages of objects do not have. Write a set of another name, and read "
                "both: paths may be a list."
            )
        path = absolute_path(os.fsdecode(written_file(prefix)))
        old = _shards_of(path)
        if old:
            folder = b"" if index_folder is None else written_file(index_folder)
            return _Appended(path, old, index, folder, sync)
    return open_output(
        prefix,
        storage,
        index=index,
        index_folder=index_folder,
        sync=sync,
        overwrite=overwrite,
    )


def appended_compression(output: Output, given: Compression | None) -> Compression | None:
    """Returns the compression of new shards: that of the old ones, so that TensorFlow reads all."""
    if not isinstance(output, _Appended):
        return given
    found: Compression | None
    shard = next((each for each in output.old if os.path.getsize(each)), output.old[0])
    with Reader(shard, on_corruption="skip", progress=False, **output.options) as reader:
        found = reader.shards[0].compression  # type: ignore[assignment]
    if given not in (None, found or ""):
        raise ValueError(
            f"The set has {found or 'no'} compression, not {given!r}, and TensorFlow reads all "
            "shards of a set with one. Leave compression out."
        )
    return found


class _Appended(Output):
    """Shards that are made in a hidden folder, and then get the next numbers of a set."""

    def __init__(
        self, prefix: str, old: Sequence[str], index: bool, index_folder: bytes, sync: bool
    ) -> None:
        info = os.path.join(os.path.dirname(prefix), "dataset_info.json")
        if os.path.exists(info):
            raise ValueError(
                f"TensorFlow Datasets reads the shards that {info!r} counts, and no appended ones. "
                "Prepare a new version of the data set."
            )
        folder = append_folder(prefix)
        self._journal = Journal(folder)
        busy = "Another writer appends to this set, until it is closed"
        lock = hold(folder, wait=False, needs_lock=True, busy=busy)
        self._removing = weakref.finalize(self, _end, self._journal, lock, os.getpid())
        with contextlib.suppress(OSError):  # some filesystems have no permissions
            os.chmod(folder, 0o755)  # whoever may read the shards must see the journal
        try:
            _take_back(self._journal)
            self.old = _whole_set(prefix)
            last = numbered_set(os.path.basename(self.old[-1]))
            assert last is not None
            self._prefix, self._of = prefix, last[1]
            self._index_folder = index_folder
            #: Of a Reader of the set.
            self.options: dict[str, Any] = {"index_folder": os.fsdecode(index_folder) or None}
            _native.check_shard_places(os.fsencode(prefix), 1, index, index_folder)
            for name in ("shards", "index"):
                os.makedirs(os.path.join(folder, name))
        except BaseException:
            self._removing()
            raise
        made = os.path.join(folder, "shards", os.path.basename(prefix))
        into = os.fsencode(os.path.join(folder, "index")) if index else b""
        super().__init__(made, index, into, sync, False)

    def name_of(self, path: str) -> str:
        number = path.removeprefix(self.path + "-").partition("-")[0]
        return f"{self._prefix}-{len(self.old) + int(number):0{len(self._of)}}-of-{self._of}"

    def publish(self, paths: Sequence[str]) -> list[str]:
        names = [self.name_of(path) for path in paths]
        if self._removing.alive:
            try:
                if len(self.old) + len(names) > 10 ** len(self._of):
                    raise ValueError(
                        f"The names of the set have {len(self._of)} digits, so it cannot get "
                        f"{len(names)} shards more. `tfrfast copy` writes it anew."
                    )
                uninterrupted(self._publish, paths, names)
            finally:
                self._removing()
        return names

    def _publish(self, paths: Sequence[str], names: Sequence[str]) -> None:
        if _whole_set(self._prefix) != self.old:
            raise FileExistsError(
                17, "The set has got or lost shards while others were written", self._prefix
            )
        facts = {os.path.basename(n): facts_of(p) for n, p in zip(names, paths, strict=True)}
        self._journal.begin(facts, mode=0o644)
        indexes = Indexes(os.path.join(self._journal.folder, "index"), self._index_folder)
        try:
            publish(
                paths,
                names,
                overwrite=False,
                indexes=indexes if self.index else None,
                sync=self.sync,
            )
        except BaseException:
            _take_back(self._journal)
            raise
        self._journal.end()  # publishes
        self._extend_keys(names)

    def _extend_keys(self, names: Sequence[str]) -> None:
        folders = folders_of(self.old, self.options["index_folder"])
        if not any(name.endswith(".keys") for each in folders for name in os.listdir(each)):
            return  # a Reader of all shards might have to find their records
        try:
            with Reader(self.old, progress=False, **self.options) as before:
                for folder, keys in list(keys_of(before, folders)):
                    with Reader([*self.old, *names], progress=False, **self.options) as reader:
                        if stamp_of(reader.shards[: len(self.old)]) != keys.stamp:
                            raise ValueError("Old shards were replaced meanwhile.")
                        new = range(len(before), len(reader))
                        derive_key_file(reader, keys, folder, lambda numbers: numbers, new)
        except (RecordError, OSError, ValueError) as error:
            warn(
                f"The shards are appended, but a key file of the set is not extended: {error} "
                "tfr.build_keys makes it.",
                RuntimeWarning,
            )

    def discard(self) -> None:
        self._removing()


def _end(journal: Journal, lock: IO[str], process: int) -> None:
    # A forked child leaves the folder to its parent.
    if os.getpid() == process:
        if not journal.exists():
            remove_held(journal.folder)
        lock.close()


def _take_back(journal: Journal) -> None:
    """Removes all shards of an append that was not published, then its journal."""
    beside = os.path.dirname(journal.folder)
    for name in unpublished_by(journal.folder, os.listdir(beside)):
        os.unlink(os.path.join(beside, name))
    journal.end()
    clear(journal.folder)


def _shards_of(prefix: str) -> list[str]:
    if not os.path.isdir(os.path.dirname(prefix)):
        return []
    return sorted(_native.list_shards(os.fsencode(prefix)), key=natural_key)


def _whole_set(prefix: str) -> list[str]:
    """Returns the shards of a set. Raises ValueError if one is missing, or for two sets."""
    shards = _shards_of(prefix)
    sets = {numbered_set(shard) for shard in shards}
    if len(sets) > 1:
        raise ValueError(
            f"{shards[0]!r} and {shards[-1]!r} are of two sets, of different numbers of shards."
        )
    for sentence in unfinished_sets(shards):
        raise ValueError(f"Nothing can be appended: {sentence}")
    return shards


def unfinished_appends(paths: Sequence[str]) -> Iterator[str]:
    """Yields a sentence for each unpublished append beside files with these names."""
    for folder in {os.path.dirname(path) for path in paths if not is_url(path)}:
        if unpublished := Appends(folder).unpublished(paths):
            yield (
                f"{sorted(unpublished)[0]!r} and its like, {len(unpublished)} files in "
                f"{folder or os.curdir!r}, belong to an append that is published right now, or was "
                "interrupted. Patterns do not find them, and the next append removes them."
            )
