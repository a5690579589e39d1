"""Builds key files, which find records by the value of a feature."""

from __future__ import annotations

import os
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from tfrfast import _native
from tfrfast.base.arguments import UNLIMITED, integer
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.sizes import parse_bytes
from tfrfast.columns.arrow_nodes import ArrowNode
from tfrfast.features import FixedLen
from tfrfast.features.inference import RECORDS_TO_INFER, settle, survey_sample
from tfrfast.jobs.chosen_records import ChosenRecords, OfRecords, ShardSizes, cut_rows
from tfrfast.jobs.cutting import part_bytes
from tfrfast.jobs.running import Advance, Workers
from tfrfast.keys.entries import Entries, entries_of, hashes_of, sorted_entries
from tfrfast.keys.key_file import MAX_RECORDS, key_path, stamp_of
from tfrfast.loading.planned_features import planned_sample
from tfrfast.loading.records import open_reader
from tfrfast.order import InOrder
from tfrfast.reader import Reader, Skipped, all_damage, warn_of_damage
from tfrfast.storage.paths import Paths
from tfrfast.tables.scanning import scan
from tfrfast.writing.key_files import publish_keys
from tfrfast.writing.publishing import named_errors
from tfrfast.writing.work_folder import WorkFolder, no_empty_folders

__all__ = ["build_keys"]


@explains_arguments
def build_keys(
    source: Reader | Paths,
    feature: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    max_memory: int | str = "1GiB",
    threads: int | None = None,
    progress: bool | None = None,
    executor: Executor | None = None,
    **reader_options: Any,
) -> str:
    """Makes the key file with which `reader.by_key(feature)` finds records. Returns its path.

        tfr.build_keys("data/train-*", "image/id")
        tfr.Reader("data/train-*").by_key("image/id")[b"cat_17"]

    One pass reads all records. The file takes 8 bytes and a record number for each record: 11 bytes
    for up to 16 million records and 12 for more. The file fits these shards in this order only, and
    is refused after a change of a shard.

    Args:
      source: a Reader, or anything that Reader takes; `reader_options` are passed on to it.
      feature: a feature with one int64 or one byte string in each record. Records without it are
        not in the file. Several records may have the same key.
      folder: the folder of the file. By default the file lies beside the indexes of the first
        shard.
      max_memory: the approximate limit of memory. If the entries take more, they are sorted on the
        disk.
      threads, progress: as for Reader.
      executor: reads and sorts, instead of threads of this process, as for `tfr.verify`.
    """
    workers = Workers(executor, threads, progress)
    reader = open_reader(source, reader_options)._frames()
    path, damage = build_key_file(reader, feature, folder, max_memory, workers)
    warn_of_damage(damage)
    return path


def build_key_file(
    reader: Reader,
    feature: str,
    folder: str | os.PathLike[str] | None,
    max_memory: int | str,
    workers: Workers,
) -> tuple[str, list[Skipped]]:
    """Returns the path of the key file, and the skipped damage."""
    if len(reader) > MAX_RECORDS:
        raise ValueError(f"A key file has space for {MAX_RECORDS} records, not {len(reader)}.")
    path = key_path(reader, feature, reader._folder_of_indexes(folder, "key file"))
    memory = parse_bytes(max_memory) if isinstance(max_memory, str) else max_memory
    memory = integer("max_memory", memory, 1, UNLIMITED)
    with no_empty_folders(os.path.dirname(path)):
        _native.check_sidecar_name(os.fsencode(path))
        kind = _kind_of(reader, feature)
        stamp = stamp_of(reader.shards)
        tasks = plan_keys(ShardSizes(reader), feature, kind, workers.count, memory)
        with WorkFolder(path) as work, named_errors(path):
            entries = Entries(memory, work.path)
            damage: list[Skipped] = []
            for part, met in workers.run("Collecting keys", tasks, "records"):
                entries.add(part)
                damage += met
            publish_keys(reader, feature, kind, stamp, entries, work.inside("keys"), path)
    return path, all_damage(damage, reader.skipped)


def plan_keys(
    shards: ShardSizes, feature: str, kind: str, workers: int, memory: int
) -> list[_SortKeys]:
    """Returns the tasks. The running tasks together hold about a quarter of `memory`."""
    size = min(part_bytes(sum(shards.sizes), workers), max(memory // (4 * workers), 1 << 20))
    return [
        _SortKeys(ChosenRecords(shards, numbers), feature, kind)
        for numbers in cut_rows(shards, size)
    ]


@dataclass
class _SortKeys(OfRecords):
    """Reads the keys of a range of records, and sorts them."""

    feature: str
    kind: str

    def run(self, advance: Advance) -> tuple[npt.NDArray[Any], list[Skipped]]:
        numbers = self.rows.numbers
        assert isinstance(numbers, range)
        batches = scan(
            self.rows.reader,
            features={
                self.feature: FixedLen((), self.kind, default=b"" if self.kind == "bytes" else 0)
            },
            record_column=_name_for_records(self.feature),
            records=slice(numbers.start, numbers.stop),
            threads=1,
        )
        parts = []
        for batch in ArrowNode.batches(batches):
            keys, records = batch.children
            present = keys.present()
            numbers_here: Any = records.column()
            hashes = hashes_of(keys.column())[present]
            parts.append(entries_of(hashes, numbers_here[present] + self.rows.base))
            advance(batch.length)
        return sorted_entries(parts), self.rows.reader.skipped


def _kind_of(reader: Reader, feature: str) -> str:
    if len(reader) == 0:
        return "bytes"
    sample = planned_sample(reader, InOrder(), RECORDS_TO_INFER)
    survey = survey_sample(sample, examples_alone=False)  # keys may lie in the context
    found = settle([feature], lambda _: sample, lambda: survey)
    kind = found[feature].dtype
    if kind not in ("bytes", "int64"):
        raise ValueError(f"Feature {feature!r} holds {kind}. Keys are byte strings or int64.")
    return str(kind)


def _name_for_records(feature: str) -> str:
    """Returns a name for the column of record numbers that differs from the feature's name."""
    return "record" if feature != "record" else "record number"
