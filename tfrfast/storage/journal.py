"""Journals, in the hidden folders of jobs: what a killed process was about to do."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from typing import Any

from tfrfast._native import crc32c
from tfrfast.storage.durable import flush_folder, replace_file

__all__ = ["JOURNAL", "Journal", "line_of"]

JOURNAL = "journal"


class Journal:
    """A file of facts. A line holds one fact: a checksum, and a value in JSON.

    While the file exists, the work of its folder is unfinished. The file appears with its first
    fact, and more facts may follow. Only the holder of the folder's lock may write.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = os.path.join(folder, JOURNAL)
        #: The owner of the file, when it was last read.
        self.owner: int | None = None
        self._bytes = 0  # of intact lines

    def exists(self) -> bool:
        return os.path.exists(self.path)

    def begin(self, fact: Any, *, sync: bool = True, mode: int | None = None) -> None:
        """Replaces all facts by this one. With `sync`, it is on the disk when this call returns."""
        line = line_of(json.dumps(fact).encode())
        replace_file(self.path, line, sync=sync, mode=mode)
        self._bytes = len(line)
        for each in (self.folder, os.path.dirname(self.folder)) if sync else ():
            flush_folder(each)

    def add(self, fact: Any) -> None:
        """Adds a fact, which is on the disk when this call returns."""
        line = line_of(json.dumps(fact).encode())
        with open(self.path, "r+b") as file:
            file.truncate(self._bytes)
            file.seek(self._bytes)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._bytes += len(line)

    def read(self) -> list[Any]:
        """Returns all facts, or none if there is no journal.

        Leaves out a last line that is cut or damaged, because its add() did not return. Raises
        ValueError for other damage, and OSError if the file cannot be read. In a shared folder, the
        file may be a stranger's.
        """
        self.owner = None
        try:
            with open(self.path, "rb", opener=_open_plain_file) as file:
                self.owner = os.fstat(file.fileno()).st_uid
                *lines, cut = file.read().split(b"\n")
        except (FileNotFoundError, NotADirectoryError):
            return []
        facts: list[Any] = []
        self._bytes = 0
        for number, line in enumerate(lines, 1):
            try:
                facts.append(_fact_of(line))
            except (ValueError, RecursionError) as error:
                if facts and number == len(lines) and not cut:
                    break  # a crash has damaged what was about to be added
                raise ValueError(f"its line {number} is damaged ({error})") from None
            self._bytes += len(line) + 1
        if not facts:
            raise ValueError("it has no whole line")
        return facts

    def end(self, *, sync: bool = True) -> None:
        """Removes the journal, because the work is done or given up."""
        if sync:
            flush_folder(os.path.dirname(self.folder))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        if sync:
            flush_folder(self.folder)


def line_of(text: bytes) -> bytes:
    """Returns the line of a journal that holds this JSON."""
    return b"%08x %b\n" % (crc32c(text), text)


def _fact_of(line: bytes) -> Any:
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % crc32c(text):
        raise ValueError("its checksum does not match")
    return json.loads(text)


def _open_plain_file(path: str, _: int) -> int:
    """For open(). Opens a file, and refuses a link or a pipe, which a stranger may have made."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise ValueError("it is not a file")
