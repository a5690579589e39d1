"""Gives finished files their names: all files, or none."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from threading import Thread
from typing import IO, NamedTuple

from tfrfast import _native
from tfrfast.storage.durable import flush_folder

__all__ = [
    "Indexes",
    "named_errors",
    "numbered_set",
    "publish",
    "publish_own",
    "shard_name",
    "unfinished_sets",
    "uninterrupted",
]

_NUMBERED = re.compile(r"(.*)-(\d{5,7})-of-(\d{5,7})(.*)", re.DOTALL)


class Indexes(NamedTuple):
    """The indexes of shards that wait for their names."""

    #: The folder whose index lists the shards under their temporary names.
    made: str
    #: The index folder that the user has chosen. Empty for the usual folder.
    folder: bytes


def shard_name(prefix: str, number: int, count: int) -> str:
    return f"{prefix}-{number:05}-of-{count:05}"


def numbered_set(name: str) -> tuple[str, str, str] | None:
    """Returns what the names of all files of a set share, or None for a name without a number."""
    match = _NUMBERED.fullmatch(name)
    return None if match is None else (match[1], match[3], match[4])


def unfinished_sets(paths: Iterable[str]) -> list[str]:
    """Returns a sentence for each incomplete set of files with numbered names.

    A process that is killed while it publishes a set leaves some of the files, all of them whole.
    """
    folders: dict[str, list[str]] = {}
    sets: dict[tuple[str, ...], set[int]] = {}
    for path in paths:
        if (match := _NUMBERED.fullmatch(path)) is not None:
            sets.setdefault(match.group(1, 3, 4), set()).add(int(match[2]))
            folder = os.path.dirname(path)
            if folder not in folders:
                with contextlib.suppress(OSError):
                    folders[folder] = os.listdir(folder or ".")
    for folder, names in folders.items():
        for name in names:
            match = _NUMBERED.fullmatch(os.path.join(folder, name))
            if match is not None and (of := match.group(1, 3, 4)) in sets:
                sets[of].add(int(match[2]))
    told = []
    for (prefix, count, suffix), numbers in sets.items():
        whole = max(int(count), max(numbers) + 1)  # appended shards have later numbers
        absent = whole - len(numbers)
        if absent > 0:
            first = next(number for number in range(whole) if number not in numbers)
            name = f"{prefix}-{first:05}-of-{count}{suffix}"
            are = f"and {absent - 1} more are missing" if absent > 1 else "is missing"
            told.append(
                f"{name!r} {are} from the {whole} files of the set, which was not copied whole, or "
                "the process that wrote it was stopped while it gave the files their names."
            )
    return told


def publish(
    made: Sequence[str],
    names: Sequence[str],
    *,
    overwrite: bool,
    others: Iterable[str] = (),
    indexes: Indexes | None = None,
    sync: bool = False,
    resumes: bool = False,
) -> None:
    """Moves files to their names, in order, each in one step, and adds the indexes.

    A new file keeps the permissions of the file that it replaces. At the end, `others` are removed.
    Unless the system fails meanwhile, all files get their names or none does: Ctrl-C takes effect
    afterwards. But a replaced file cannot be restored.

    With `resumes`, an interrupted call leaves moved files under their names. If the same call is
    repeated, it skips these files.
    """
    files = list(zip(made, names, strict=True))
    uninterrupted(_publish, files, overwrite, others, indexes, sync, resumes)


def uninterrupted(call: Callable[..., None], *arguments: object) -> None:
    """Makes the call on another thread, so that Ctrl-C takes effect afterwards."""
    ended: Future[None] = Future()

    def work() -> None:
        if ended.set_running_or_notify_cancel():
            try:
                call(*arguments)
                ended.set_result(None)
            except BaseException as error:
                ended.set_exception(error)

    try:
        Thread(target=work).start()
        ended.result()
    finally:
        while not ended.cancel() and not ended.done():
            with contextlib.suppress(KeyboardInterrupt):
                wait([ended])


@contextlib.contextmanager
def named_errors(path: str) -> Iterator[None]:
    """Names the path in errors of writing, such as that of a full disk, which name no file."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, path) from None


def publish_own(file: IO[bytes], path: str) -> None:
    """Flushes an index or key file to the disk, then gives the file its name.

    Only the owner may write to the new file, even if others may write to the old file. Raises
    OSError if the old file is not a file of tfrfast.
    """
    os.fchmod(file.fileno(), os.fstat(file.fileno()).st_mode & 0o755)
    file.flush()
    os.fsync(file.fileno())
    _native.check_sidecar_name(os.fsencode(path))
    os.replace(file.name, path)


def _publish(
    files: list[tuple[str, str]],
    overwrite: bool,
    others: Iterable[str],
    indexes: Indexes | None,
    sync: bool,
    resumes: bool,
) -> None:
    listed = None if indexes is None else _native.MadeIndexes(os.fsencode(indexes.made))
    given: list[str] = []
    try:
        for path, name in files:
            _move(path, name, overwrite, resumes)
            given.append(name)
            if listed is not None and indexes is not None:
                listed.add(os.fsencode(os.path.basename(path)), indexes.folder, os.fsencode(name))
    except BaseException:
        for name in [] if overwrite or resumes else given:
            _remove(name)
        raise
    for name in set(others).difference(given):
        _remove(name)
    folders = {os.path.dirname(name) or "." for name in given}
    index_folders = {_index_folder(name, indexes.folder) for name in given} if indexes else set()
    for folder in index_folders:
        with contextlib.suppress(OSError):  # an index in parts works, too
            _native.compact_index(os.fsencode(folder))
    for folder in folders | index_folders if sync else ():
        flush_folder(folder)


def _move(path: str, name: str, overwrite: bool, again: bool) -> None:
    if again and not os.path.exists(path):
        return
    try:
        _native.move_file(os.fsencode(path), os.fsencode(name), overwrite)
    except FileExistsError:
        if not again or not os.path.samefile(path, name):
            raise
        os.unlink(path)  # a second name of the file that was moved


def _remove(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)


def _index_folder(name: str, chosen: bytes) -> str:
    return os.fsdecode(chosen) if chosen else _native.sibling_index_folder(os.fsencode(name))
