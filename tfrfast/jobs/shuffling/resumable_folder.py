"""The intermediate files and the progress of `tfr.shuffle`, which survive an interruption."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from typing import Any

from tfrfast import _native
from tfrfast.storage.journal import Journal
from tfrfast.storage.output import named_url, shards_path
from tfrfast.storage.paths import written_file
from tfrfast.writing import work_folder
from tfrfast.writing.work_folder import clear, hold, no_empty_folders

# A file that stands beside the journal from the time when shards begin to get their names, and may
# replace the input.
_PUBLISHING = "publishing"
_BUSY = "Another process is shuffling to these names right now"


@contextlib.contextmanager
def held(folder: str) -> Iterator[None]:
    """Makes and locks the folder. One process holds the folder at a time."""
    with no_empty_folders(os.path.dirname(folder)), hold(folder, wait=False, busy=_BUSY):
        yield


class ResumableFolder:
    """The folder of one shuffle. One process holds the folder at a time.

    `state` is the last saved state, or empty. The journal has only the last one.
    """

    def __init__(self, path: str, *, sync: bool = True) -> None:
        self.path = path
        self._sync = sync
        self._journal = Journal(path)
        self.state: dict[str, Any] = {}

    def inside(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Loads the state. Removes the folder at the end, unless a saved state can be resumed."""
        if os.path.exists(self.inside("state.json")):  # perhaps with the only copy of the records
            raise FileExistsError(
                f"{self.path!r} holds a shuffle that an earlier version of tfrfast began. Finish "
                "it with that version, or delete the folder if its input is whole."
            )
        if os.path.exists(self.inside(_PUBLISHING)) and not self._journal.exists():
            self._refuse_without_journal("is missing")
        with (
            no_empty_folders(os.path.dirname(self.path)),
            work_folder.held(self._journal, _BUSY),
        ):
            self._load()
            yield

    def _load(self) -> None:
        self.state = {}
        try:
            for state in self._journal.read():
                self.state = state
        except ValueError as error:  # a power cut may damage what is not flushed
            self._refuse_without_journal(f"cannot be read: {error}")

    def _refuse_without_journal(self, why: str) -> None:
        made = self.inside("shards")
        if os.path.isdir(made) and os.listdir(made):  # perhaps the only copy of the records
            raise ValueError(
                f"The journal of an unfinished shuffle in {self.path!r} {why}. If the input is "
                f"whole, delete that folder, and call again. Otherwise move the shards in {made!r} "
                "away first: they hold the missing records."
            ) from None

    def begin(self, state: dict[str, Any]) -> None:
        """Removes all earlier work, even of another shuffle to the same names."""
        self.forget()
        clear(self.path)
        self.state = state

    def save(self, *, durable: bool = False) -> None:
        self._journal.begin(self.state, sync=durable)

    def begin_publishing(self) -> None:
        """Call this after the save, before the first shard gets its name."""
        with open(self.inside(_PUBLISHING), "w", encoding="utf-8"):
            pass

    def forget(self) -> None:
        """Removes the saved state, so that nothing can be resumed."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.inside(_PUBLISHING))
        self._journal.end(sync=self._sync)


def can_resume(out: str, work: str | os.PathLike[str] | None) -> bool:
    """True if a shuffle to these names has left a state that the same call can resume."""
    if url := named_url(out):
        if work is None:
            return False
        out, work = shards_path(url, upload_folder(url, work)), None
    return Journal(resumable_folder_path(out, work)).exists()


def upload_folder(url: str, work: str | os.PathLike[str]) -> str:
    """Returns the folder in `work` for shuffles to that URL."""
    which = hashlib.sha256(url.encode(errors="surrogateescape")).hexdigest()[:8]
    return os.path.join(os.fsdecode(written_file(work)), f"upload-{url.rpartition('/')[2]}-{which}")


def resumable_folder_path(out: str, work: str | os.PathLike[str] | None) -> str:
    """Returns the folder of this shuffle."""
    folder, name = os.path.split(out)
    if work is not None:
        # Shuffles to the same names in different folders may share `work`.
        where = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:8]
        return os.path.join(os.fsdecode(written_file(work)), f"shuffle-{name}-{where}")
    sibling = _native.sibling_index_folder(os.fsencode(os.path.join(folder, "any")))
    place = _first_that_exists(sibling)
    may_be_there = os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK)
    # Shards are moved at the end, which works only within one filesystem.
    if may_be_there and os.stat(place).st_dev == os.stat(_first_that_exists(folder)).st_dev:
        return os.path.join(sibling, f"shuffle-{name}")
    return os.path.join(folder, f".tfrfast-shuffle-{name}")


def _first_that_exists(folder: str) -> str:
    while folder and not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return folder or "."
