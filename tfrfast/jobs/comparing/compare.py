"""Compares two data sets larger than memory, by key or by content."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast.base.arguments import UNLIMITED, Int64Array, integer
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.sizes import parse_bytes
from tfrfast.errors import FeatureError
from tfrfast.example.parsing import infer_features, parse_example
from tfrfast.features import VarLen
from tfrfast.features.names import names_in, what_was_meant
from tfrfast.jobs.chosen_records import ChosenRecords, OfRecords, ShardSizes, cut_rows
from tfrfast.jobs.comparing.differences import ChangedFeature, Differences
from tfrfast.jobs.comparing.pairing import ENTRY, IN_B, WITHOUT_KEY, Paired, pair
from tfrfast.jobs.copying import verifying_anew
from tfrfast.jobs.cutting import part_bytes
from tfrfast.jobs.running import Advance, Workers
from tfrfast.keys.entries import Entries, sorted_entries
from tfrfast.loading.records import open_reader
from tfrfast.reader import Reader, Skipped, all_damage
from tfrfast.storage.paths import Paths

__all__ = ["Differences", "diff"]

_PIECE_BYTES = 8 << 20
_PAIRS_IN_TASK = 1 << 16
_RECORDS_WITH_NAMES = 32
_ABSENT, _UNFIT = 0, 2  # as `hash_records` says


@explains_arguments
def diff(
    a: Reader | Paths,
    b: Reader | Paths,
    *,
    key: str | None = None,
    max_memory: int | str = "1GiB",
    work: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    executor: Executor | None = None,
    **reader_options: Any,
) -> Differences:
    """Says which records two data sets share, and which records differ.

        found = tfr.diff("v1/train-*", "v2/train-*", key="image/id")
        print(found)
        tfr.copy("v2/train-*", found.only_b, "new/train")

    Neither the order of records nor shards or compression matter. Equal records are paired one to
    one, so a record that A has twice and B once is left over once. Two Examples are equal if they
    hold the same values under the same names; `Differences.rewritten` counts those whose bytes
    differ. Other records are equal if their bytes are.

    Args:
      a, b: a Reader, or anything that Reader takes; `reader_options` are passed on to both.
      key: a feature with one int64 or one byte string, which pairs records. Records with equal keys
        and other features are `changed`. Records without the feature are paired by content, and so
        are all records by default.
      max_memory: the approximate limit of memory: bytes, or a string like "512MiB". More than about
        1 GiB for 8 million records of both sets is sorted on the disk, 32 bytes for each record.
        The result takes 8 bytes for each record that differs.
      work: the folder for what is sorted on the disk. By default the system's temporary folder.
      threads, progress: as for Reader.
      executor: reads and hashes, instead of threads of this process, as for `tfr.verify`.

    Every record's checksums are verified. Raises the errors of reading, and FeatureError for a
    record with several keys. With `on_corruption="skip"`, damaged records count as missing.
    """
    workers = Workers(executor, threads, progress)
    if key is not None and not isinstance(key, str):
        raise TypeError(f"key is the name of a feature, not {key!r:.60}.")
    memory = parse_bytes(max_memory) if isinstance(max_memory, str) else max_memory
    memory = integer("max_memory", memory, 1, UNLIMITED)
    readers = [verifying_anew(open_reader(each, dict(reader_options))) for each in (a, b)]
    sides = [ShardSizes(reader) for reader in readers]
    with tempfile.TemporaryDirectory(prefix="tfrfast-diff-", dir=work) as folder:
        entries = Entries(memory, folder, ENTRY)
        absent = [0, 0]
        skipped: tuple[list[Skipped], list[Skipped]] = ([], [])
        tasks = plan_hashing(sides, key, workers.count, memory)
        for task, (part, without_key, damage) in zip(
            tasks, workers.run("Comparing", tasks, "records"), strict=True
        ):
            entries.add(part)
            absent[task.is_b] += without_key
            skipped[task.is_b].extend(damage)
        if key is not None:
            _refuse_missing_key(key, readers, absent)
        found = _joined([pair(part) for part in entries.sorted_parts()])
    changed = found.changed[np.argsort(found.changed[:, 0], kind="stable")]
    return Differences(
        key,
        len(readers[0]),
        len(readers[1]),
        found.same,
        found.rewritten,
        changed,
        np.sort(found.only_a),
        np.sort(found.only_b),
        _changed_features(sides, changed, workers),
        found.duplicates,
        (0, 0) if key is None else (absent[0], absent[1]),
        (all_damage(skipped[0], readers[0].skipped), all_damage(skipped[1], readers[1].skipped)),
    )


def plan_hashing(
    sides: Sequence[ShardSizes], key: str | None, workers: int, memory: int
) -> list[_HashRecords]:
    """Returns the tasks, those of A first."""
    total = sum(sum(side.sizes) for side in sides)
    size = min(part_bytes(total, workers), max(memory // (4 * workers), 1 << 20))
    return [
        _HashRecords(ChosenRecords(side, rows), key, side is not sides[0])
        for side in sides
        for rows in cut_rows(side, size)
    ]


@dataclass
class _HashRecords(OfRecords):
    """Hashes a range of records, and sorts the hashes."""

    key: str | None
    is_b: bool

    def run(self, advance: Advance) -> tuple[npt.NDArray[Any], int, list[Skipped]]:
        reader = self.rows.reader
        parts, absent = [], 0
        for numbers in self.rows.pieces(_PIECE_BYTES, advance):
            batch = reader.read(numbers)
            part = np.empty(len(batch), ENTRY)
            hashes = _native.hash_records(batch, self.key)
            part["hash"], part["content"], part["bytes"], forms = hashes
            if (unfit := np.flatnonzero(forms == _UNFIT)).size:
                raise self._unfit(int(batch.indices[unfit[0]]))
            part["number"] = (batch.indices + self.rows.base).astype(np.uint64)
            part["number"] |= np.uint64(IN_B if self.is_b else 0)
            part["number"][forms == _ABSENT] |= np.uint64(WITHOUT_KEY)
            absent += int((forms == _ABSENT).sum())
            parts.append(part)
        return sorted_entries(parts, ENTRY), absent, reader.skipped

    def _unfit(self, number: int) -> FeatureError:
        place = self.rows.reader.locate(number)
        path = self.rows.reader.shards[place.shard].path
        return FeatureError(
            f"Record {number + self.rows.base} at byte {place.offset} of {path!r} has no single "
            f"key {self.key!r}. Expected one byte string or one int64, found several values, "
            "floats, or no Example. Without a key, records are compared by content.",
            path=path,
            record=number + self.rows.base,
            offset=place.offset,
        )


@dataclass
class _CompareFeatures:
    """Finds the features that differ between changed records."""

    ours: ChosenRecords
    theirs: ChosenRecords
    amount: int

    def run(self, advance: Advance) -> list[tuple[bytes, int, int]]:
        """Returns each feature, its number of pairs, and the first pair."""
        ours, theirs = self.ours.numbers, self.theirs.numbers
        assert not isinstance(ours, range)
        assert not isinstance(theirs, range)
        readers = self.ours.reader, self.theirs.reader
        size = min(reader._records_within(_PIECE_BYTES) for reader in readers)
        found = []
        for first in range(0, self.amount, size):
            rows = slice(first, first + size)
            differing, _ = _native.compare_features(
                readers[0].read(ours[rows]), readers[1].read(theirs[rows])
            )
            found += [(name, count, first + row) for name, count, row in differing]
            advance(len(ours[rows]))
        return found


def _changed_features(
    sides: Sequence[ShardSizes], changed: Int64Array, workers: Workers
) -> list[ChangedFeature]:
    cuts = [changed[at : at + _PAIRS_IN_TASK] for at in range(0, len(changed), _PAIRS_IN_TASK)]
    tasks = [
        _CompareFeatures(
            ChosenRecords(sides[0], cut[:, 0]), ChosenRecords(sides[1], cut[:, 1]), len(cut)
        )
        for cut in cuts
    ]
    counts: dict[bytes, int] = defaultdict(int)
    examples: dict[bytes, tuple[int, int]] = {}
    # An error ends all tasks before it is raised.
    with contextlib.closing(workers.run("Comparing features", tasks, "records")) as parts:
        for cut, part in zip(cuts, parts, strict=True):
            for name, count, row in part:
                counts[name] += count
                examples.setdefault(name, tuple(cut[row].tolist()))
    return [
        _example(name, counts[name], [side.reader for side in sides], examples[name])
        for name in sorted(counts, key=lambda name: (-counts[name], name))
    ]


def _example(
    name: bytes, count: int, readers: Sequence[Reader], numbers: tuple[int, int]
) -> ChangedFeature:
    text = name.decode(errors="surrogateescape")
    values = [_values(reader[at], text) for reader, at in zip(readers, numbers, strict=True)]
    return ChangedFeature(text, count, *numbers, *values)


def _values(record: bytes, name: str) -> list[Any] | None:
    try:
        spec = infer_features([record]).get(name)
        if spec is None:
            return None
        values: Any = parse_example([record], {name: VarLen(spec.dtype)})[name].values
    except FeatureError:
        return None
    return list(values.tolist())


def _refuse_missing_key(key: str, readers: Sequence[Reader], absent: Sequence[int]) -> None:
    for reader, missing, whose in zip(readers, absent, "AB", strict=True):
        if missing and missing == len(reader):
            known = names_in(reader.read(range(min(missing, _RECORDS_WITH_NAMES))))
            meant = what_was_meant(key, known, "The records")
            raise ValueError(f"No record of {whose} has the feature {key!r}.{meant}")


def _joined(parts: Sequence[Paired]) -> Paired:
    def numbers(which: str, shape: tuple[int, ...]) -> Int64Array:
        return np.concatenate([np.empty(shape, np.int64), *(getattr(p, which) for p in parts)])

    return Paired(
        sum(part.same for part in parts),
        sum(part.rewritten for part in parts),
        numbers("changed", (0, 2)),
        numbers("only_a", (0,)),
        numbers("only_b", (0,)),
        (sum(p.duplicates[0] for p in parts), sum(p.duplicates[1] for p in parts)),
    )
