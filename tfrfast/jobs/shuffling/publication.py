"""The end of `tfr.shuffle`: finished shards and their indexes get their names."""

from __future__ import annotations

import os
from typing import NamedTuple

from tfrfast.base.tables import summary
from tfrfast.jobs.shuffling.resumable_folder import ResumableFolder
from tfrfast.jobs.shuffling.sorted_rows import Written
from tfrfast.jobs.shuffling.target import Target
from tfrfast.reader import Skipped
from tfrfast.writing.publishing import Indexes, publish, shard_name


class Shuffled(NamedTuple):
    """The result of a shuffle."""

    paths: list[str]
    """All shards, in order."""
    splits: dict[str, list[str]]
    """The shards of each split."""
    num_records: int
    """Records in all shards together."""
    num_bytes: int
    """Bytes of the records with their frames, before compression."""
    content_hash: str
    """The sum of a hash of every record. The order of records does not change the sum."""
    skipped: list[Skipped]
    """The damage that `on_corruption="skip"` has skipped."""

    def __repr__(self) -> str:
        return summary(self)


class Publication:
    """Gives finished shards their names. The work folder's state lists all names beforehand."""

    def __init__(self, work: ResumableFolder, target: Target) -> None:
        self._work = work
        self._target = target

    def has_begun(self) -> bool:
        return self._work.state.get("stage") == "publish"

    def replaces_its_input(self) -> bool:
        """True if an interrupted publication must be finished now, so that no records are lost.

        Some input may be gone, and its records exist only in the work folder.
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

    def begin(self, inputs: list[str], written: list[Written]) -> None:
        """Call this when all shards are complete and only their names are missing."""
        state = self._work.state
        counts = [0] * len(self._target.outputs)
        for _, output, *_ in written:
            counts[output] += 1
        numbers = [0] * len(counts)
        state["published"] = []
        for name, output, *_ in written:
            prefix = self._target.outputs[output].prefix
            final = shard_name(prefix, numbers[output], counts[output])
            numbers[output] += 1
            state["published"].append([name, final, output])
        going = {_own_name(path) for path in self._target.taken_names()}
        state["replaces_input"] = any(
            _own_name(path) in going or os.path.realpath(path) in going for path in inputs
        )
        state["target"] = self._target.fingerprint()
        state["stage"] = "publish"
        self._work.save(durable=self._target.sync)

    def is_lost(self) -> bool:
        """True if shards are gone that an interrupted run had already published."""
        return any(
            not os.path.exists(self._work.inside("shards", name)) and not os.path.exists(final)
            for name, final, _ in self._work.state.get("published", [])
        )

    def finish(self) -> Shuffled:
        """May be interrupted and called again."""
        state, target = self._work.state, self._target
        published = state["published"]
        self._work.begin_publishing()
        indexes = Indexes(self._work.inside("index"), target.index_folder)
        publish(
            [self._work.inside("shards", name) for name, _, _ in published],
            [final for _, final, _ in published],
            overwrite=target.overwrite,
            others=target.taken_names() if target.overwrite else (),
            indexes=indexes if target.index else None,
            sync=target.sync,
            resumes=True,
        )
        splits: dict[str, list[str]] = {output.name: [] for output in target.outputs}
        for _, final, output in published:
            splits[target.outputs[output].name].append(final)
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


def _own_name(path: str) -> str:
    """Returns the path with its folder resolved. The path of a symlink names the link, not its
    target.
    """
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
