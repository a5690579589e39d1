"""The end of `tfr.shuffle`: finished shards and their indexes take their places."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

from tfrfast import _native
from tfrfast._shuffle.target import Target
from tfrfast._shuffle.work_folder import WorkFolder
from tfrfast._writing.options import index_folder_bytes
from tfrfast.reader import Skipped


class Shuffled(NamedTuple):
    """What a shuffle has made."""

    paths: list[str]
    """All shards, in order."""
    splits: dict[str, list[str]]
    """Those of each split."""
    num_records: int
    """In all shards together."""
    num_bytes: int
    """Of the records with their frames, before compression."""
    content_hash: str
    """The sum of a hash of every record, which is the same before and after, in any order."""
    skipped: list[Skipped]
    """The damage that `on_corruption="skip"` has left out."""


class Publication:
    """Gives finished shards their names. The work folder's state lists them all beforehand."""

    def __init__(self, work: WorkFolder, target: Target) -> None:
        self._work = work
        self._target = target

    def has_begun(self) -> bool:
        return self._work.state.get("stage") == "publish"

    def replaces_its_input(self) -> bool:
        """Whether an interrupted publication must be finished now, so that no records are lost.

        Some of its input may be gone and exist only in the work folder.
        """
        state = self._work.state
        if not self.has_begun() or not state["replaces_input"]:
            return False
        if state["target"] != self._target.fingerprint() or not self._target.overwrite:
            raise ValueError(
                "A shuffle to these names was interrupted while its shards replaced its own input. "
                f"Some records are now only in {self._work.path!r}. Call it again with the "
                "arguments it had, to let it finish."
            )
        return True

    def begin(self, inputs: list[str], written: list[list[int]]) -> None:
        """Call this when all shards are complete and only their names are missing."""
        state = self._work.state
        counts = [0] * len(self._target.outputs)
        for output, *_ in written:
            counts[output] += 1
        numbers = [0] * len(counts)
        state["published"] = []
        for name, (output, *_) in enumerate(written):
            prefix = self._target.outputs[output].prefix
            final = f"{prefix}-{numbers[output]:05}-of-{counts[output]:05}"
            numbers[output] += 1
            state["published"].append([str(name), final, output])
        going = {_own_name(path) for path in self._target.taken_names()}
        state["replaces_input"] = any(
            _own_name(path) in going or os.path.realpath(path) in going for path in inputs
        )
        state["target"] = self._target.fingerprint()
        state["stage"] = "publish"
        self._work.save(durable=self._target.sync)

    def finish(self) -> Shuffled:
        """May be interrupted and called again."""
        state = self._work.state
        outputs = self._target.outputs
        splits: dict[str, list[str]] = {output.name: [] for output in outputs}
        folders = set()
        index_folders = set()
        for name, final, output in state["published"]:
            index_from = self._work.inside("index", f"{name}.index")
            index_to = self._index_path(final)
            if self._target.index is not False and os.path.exists(index_from):
                os.makedirs(os.path.dirname(index_to), exist_ok=True)
                _native.move_loose_index(os.fsencode(index_from), os.fsencode(index_to))
                index_folders.add(os.path.dirname(index_to))
            self._publish_shard(self._work.inside("shards", name), final)
            if self._target.index is not False:
                # The move changed the shard's ctime, which the index records.
                _native.stamp_index(os.fsencode(index_to), os.fsencode(final))
            splits[outputs[output].name].append(final)
            folders.add(os.path.dirname(final) or ".")
        if self._target.overwrite:
            self._remove_others()
        if self._target.sync:
            for folder in folders | index_folders:
                _flush_folder(folder)
        for folder in index_folders:
            _native.collect_loose_indexes(os.fsencode(folder), only_if_many=False)
        records, payload_bytes, content_hash = state["totals"]
        self._work.forget()
        paths = [path for each in splits.values() for path in each]
        return Shuffled(
            paths,
            {name: each for name, each in splits.items() if name},
            records,
            payload_bytes + 16 * records,
            f"{content_hash:016x}",
            [Skipped(*each) for each in state.get("skipped", [])],
        )

    def _publish_shard(self, temporary: str, final: str) -> None:
        if not os.path.exists(temporary):
            return  # published before the interruption
        try:
            _native.move_file(os.fsencode(temporary), os.fsencode(final), self._target.overwrite)
        except FileExistsError:
            if not os.path.samefile(temporary, final):
                raise
            os.unlink(temporary)  # a second name of the published shard

    def _remove_others(self) -> None:
        kept = {final for _, final, _ in self._work.state["published"]}
        for path in self._target.taken_names():
            if path not in kept:
                os.unlink(path)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._index_path(path))

    def _index_path(self, shard: str) -> str:
        folder = index_folder_bytes(self._target.index)
        if folder:
            return _native.index_path_in(folder, os.fsencode(shard))
        return _native.sibling_index_path(os.fsencode(shard))


def _own_name(path: str) -> str:
    """The path with its folder resolved. It names a symlink itself, not what that points at."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _flush_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some network filesystems cannot flush a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
