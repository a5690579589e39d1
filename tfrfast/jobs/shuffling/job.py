"""The work of `tfr.shuffle`: records to buckets, buckets to shards."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
from collections.abc import Iterator
from typing import Any

from tfrfast import _native
from tfrfast.base.progress import ProgressBar
from tfrfast.base.sizes import counted
from tfrfast.errors import CorruptRecordError, StaleIndexError
from tfrfast.jobs.shuffling.good_records import GoodRecords
from tfrfast.jobs.shuffling.inputs import Inputs, IntactRecords
from tfrfast.jobs.shuffling.publication import Publication, Shuffled
from tfrfast.jobs.shuffling.resumable_folder import ResumableFolder
from tfrfast.jobs.shuffling.sorted_rows import SortedRows, Written
from tfrfast.jobs.shuffling.target import Target
from tfrfast.reader import Reader, Skipped
from tfrfast.storage.paths import absolute_path
from tfrfast.writing.publishing import unfinished_sets
from tfrfast.writing.shard_set import Unpublished

_SMALL_SHARD_BYTES = 64 << 10
_TINY_SHARD_BYTES = 1 << 10
_STEP_BYTES = 64 << 20  # between two checks for Ctrl-C and updates of the progress bar
_CHECKPOINT_BYTES = 4 << 30
_MAX_AHEAD_BYTES = 128 << 20
_MAX_BUFFER_BYTES = 1 << 20
_MIN_BUFFER_BYTES = 4 << 10


class ShuffleJob:
    """One shuffle: deals records to buckets, sorts each bucket into shards, and publishes the
    shards.

    The work folder's state holds all facts for a resume. It is saved after each piece of work:
    after an input was dealt out, after a shard was written, and before publication.
    """

    def __init__(
        self,
        inputs: Inputs,
        target: Target,
        memory: int,
        work: ResumableFolder,
        progress: bool | None,
        skip_damage: bool = False,
    ) -> None:
        self._inputs = inputs
        self._skip_damage = skip_damage
        self._target = target
        self._outputs = target.outputs
        self._work = work
        self._progress = progress
        self._unpublished = Unpublished(
            absolute_path(work.path),
            index=target.index,
            compression=target.compression,
            level=target.level,
            sync=target.sync,
        )
        self._done_bytes = 0
        self._bytes = sum(inputs.sizes)
        plan = [target.fingerprint(), self._cut(memory), inputs.fingerprint]
        plan += ["skip"] if skip_damage else []
        self._plan = hashlib.sha256(json.dumps(plan).encode()).hexdigest()

    def _cut(self, memory: int) -> int | str:
        """Cuts the work. Returns what a resume depends on."""
        self._max_ahead_bytes = min(memory // 4, _MAX_AHEAD_BYTES)
        # In a bucket, a frame also holds the record's number, and has a sort entry in memory.
        self._num_buckets = max(1, -(-self._bytes * 9 // 8 // (memory // 4)))
        buffer_bytes = memory // 4 // self._num_buckets
        if self._num_buckets > 1 and buffer_bytes < _MIN_BUFFER_BYTES:
            needed = math.isqrt(self._bytes * 9 // 8 * 16 * _MIN_BUFFER_BYTES) * 17 // 16
            raise ValueError(
                f"Shuffling {self._bytes} bytes takes max_memory={needed} or more, not {memory}."
            )
        self._buffer_bytes = min(buffer_bytes, _MAX_BUFFER_BYTES)
        return self._num_buckets

    def run(self) -> Shuffled:
        publication = Publication(self._work, self._target)
        if self._work.state.get("plan") != self._plan or publication.is_lost():
            self._refuse_taken_names()
            self._refuse_empty_shards_at_once()
            self._work.begin(self._nothing_done())
        self._state = self._work.state
        has_begun = publication.has_begun()
        if not has_begun:
            self._refuse_taken_names()
        self._make_folders()
        if not has_begun:
            self._target.check_places()
            with ProgressBar("Shuffling", self._progress) as self._bar:
                self._make_shards()
            self._check_totals()
            publication.begin(self._inputs.shards, self._state["written"])
        return publication.finish()

    def _make_shards(self) -> None:
        """Makes all shards in the work folder."""
        buckets = self._deal_out()
        self._refuse_more_shards_than(self._state["totals"][0])
        self._write_shards(buckets)

    def _make_folders(self) -> None:
        for folder in (self._work.inside("shards"), self._work.inside("index")):
            os.makedirs(folder, exist_ok=True)
        device = os.stat(self._work.path).st_dev
        for output in self._outputs:
            folder = os.path.dirname(output.prefix) or "."
            os.makedirs(folder, exist_ok=True)
            if os.stat(folder).st_dev != device:
                raise OSError(
                    errno.EXDEV,
                    f"The folder for intermediate files is not on the filesystem of {folder!r}, to "
                    "which finished shards are moved in one step. Choose another one with work=",
                    self._work.path,
                )

    # -- the state of the work

    def _nothing_done(self) -> dict[str, Any]:
        return {
            "plan": self._plan,
            "stage": "deal",
            "shard": 0,
            "offset": 0,
            "record": 0,
            "totals": [0, 0, 0],
            "bucket_bytes": [0] * self._num_buckets,
            "bucket_records": [0] * self._num_buckets,
            "written": [],  # the shards
            "skipped": [],  # skipped damage
        }

    def _save_state(self) -> None:
        if self._num_buckets > 1:  # otherwise all records are in memory, and nothing can be resumed
            self._work.save()

    def _refuse_taken_names(self) -> None:
        taken = [] if self._target.overwrite else self._target.taken_names()
        if taken:
            found = " ".join(unfinished_sets(taken)) or "Their set is whole, so it is finished."
            raise FileExistsError(
                errno.EEXIST,
                f"There are shards of this name, {taken[0]!r} among {len(taken)}. {found} Choose "
                "another name, or pass overwrite=True to replace all of them",
                taken[0],
            )

    def _refuse_empty_shards_at_once(self) -> None:
        """Counts the records first if shards would be so small that records might be too few.

        Objects are read only once, so only existing indexes count their records.
        """
        is_remote = self._inputs.any_object()
        small = _TINY_SHARD_BYTES if is_remote else _SMALL_SHARD_BYTES
        if self._wanted_shards * small <= self._bytes:
            return
        unknown = (StaleIndexError, OSError) if is_remote else ()
        with (
            contextlib.suppress(*unknown),
            Reader(
                self._inputs.shards,
                index="require" if is_remote else "memory",
                on_corruption="skip",
                progress=False,
                storage=self._inputs.storage,
            ) as reader,
        ):
            self._refuse_more_shards_than(len(reader))

    @property
    def _wanted_shards(self) -> int:
        return sum(output.num_shards or 0 for output in self._outputs)

    def _refuse_more_shards_than(self, records: int) -> None:
        wanted = self._wanted_shards
        if 0 < records < wanted:
            self._work.forget()
            raise ValueError(
                f"num_shards is {wanted:,}, but the input has {counted(records, 'records')}. "
                "Ask for no more shards than records."
            )

    # -- first half: input to buckets

    def _deal_out(self) -> _native.ShuffleBuckets:
        state = self._state
        left = [0] * self._num_buckets
        begun = self._first_position_of_next_shard()
        position = 0
        for bucket, records in enumerate(state["bucket_records"]):
            position += records
            if position > begun or state["stage"] == "deal":  # other inputs may be removed by now
                left[bucket] = state["bucket_bytes"][bucket]
        buckets = _native.ShuffleBuckets(
            os.fsencode(self._work.path) if self._num_buckets > 1 else b"",
            self._buffer_bytes,
            self._target.seed,
            tuple(state["totals"]),
            left,
            [n if b else 0 for n, b in zip(state["bucket_records"], left, strict=True)],
        )
        if state["stage"] != "deal":
            self._advance(self._bytes)
            return buckets
        self._done_bytes += sum(self._inputs.sizes[: state["shard"]]) + state["offset"]
        since = 0
        skipped = [Skipped(*each) for each in state.get("skipped", [])]
        good = GoodRecords(buckets, self._inputs, skipped) if self._skip_damage else None
        records = good or IntactRecords(buckets, self._inputs, self._max_ahead_bytes)
        while state["shard"] < len(self._inputs.shards):
            number, offset = state["shard"], state["offset"]
            next_offset, record, ended = records.add_shard(
                number, offset, state["record"], _STEP_BYTES
            )
            if good:
                state["skipped"] = good.skipped
            self._advance(next_offset - offset)
            since += next_offset - offset
            state["offset"], state["record"] = (0, 0) if ended else (next_offset, record)
            state["shard"] += ended
            # A new reader would not notice that an object has changed since its first record.
            may_stop = ended or not good or not self._inputs.is_object(number)
            if since >= _CHECKPOINT_BYTES and may_stop:
                self._keep_buckets(buckets)
                since = 0
        state["stage"] = "write"
        self._keep_buckets(buckets)
        return buckets

    def _keep_buckets(self, buckets: _native.ShuffleBuckets) -> None:
        buckets.write_out()
        self._state["totals"] = list(buckets.totals)
        self._state["bucket_bytes"] = buckets.bucket_bytes
        self._state["bucket_records"] = buckets.bucket_records
        self._save_state()

    def _advance(self, newly: int) -> None:
        self._done_bytes += newly
        self._bar.update(self._done_bytes, 2 * self._bytes)

    # -- second half: buckets to shards

    def _first_position_of_next_shard(self) -> int:
        return sum(records for _, _, records, *_ in self._state["written"])

    def _write_shards(self, buckets: _native.ShuffleBuckets) -> None:
        rows = SortedRows(buckets.take, self._state["bucket_records"])
        rows.skip_to(self._first_position_of_next_shard())
        self._advance(sum(written[3] for written in self._state["written"]))
        for output, records in enumerate(self._records_of_outputs(self._state["totals"][0])):
            for wanted in self._cuts(output, records):
                limit = self._outputs[output].max_bytes
                written = rows.write_shard(self._unpublished, output, wanted, limit, self._advance)
                self._state["written"].append(written)
                self._save_state()
                for used in rows.newly_used():
                    buckets.remove(used)

    def _records_of_outputs(self, total: int) -> Iterator[int]:
        end = 0
        reached = 0.0
        for output in self._outputs:
            begin = end
            reached += output.share
            last = output is self._outputs[-1]
            end = total if last else min(total, round(total * reached))
            yield end - begin

    def _cuts(self, number: int, records: int) -> Iterator[int]:
        """Yields the maximal number of records of each of the output's shards yet to be written."""
        output = self._outputs[number]
        if output.num_shards:
            yield from equal_parts(records, output.num_shards)[len(self._written_for(number)) :]
            return
        while True:
            written = self._written_for(number)
            left = records - sum(each[2] for each in written)
            if left == 0 and written:
                return
            yield left

    def _written_for(self, output: int) -> list[Written]:
        return [written for written in self._state["written"] if written[1] == output]

    def _check_totals(self) -> None:
        after = [sum(written[i] for written in self._state["written"]) for i in (2, 3, 4)]
        after[2] %= 2**64
        if after != list(self._state["totals"]):
            raise CorruptRecordError(
                f"The written shards (records, bytes, hash {after}) differ from the input "
                f"({self._state['totals']}); nothing was published. Is the disk of "
                f"{self._work.path!r} in order? Remove that folder, and shuffle again.",
                path=self._work.path,
            )


def equal_parts(count: int, parts: int) -> list[int]:
    """Divides `count` into parts that differ by at most one."""
    return [count * (part + 1) // parts - count * part // parts for part in range(parts)]
