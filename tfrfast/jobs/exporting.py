"""Features of records as Parquet files, with PyArrow. New files appear whole, or not at all."""

from __future__ import annotations

import glob
import itertools
import os
import secrets
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfrfast.base.arguments import integer
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.tables import summary
from tfrfast.features import AnyFeatures
from tfrfast.jobs.importing import pyarrow
from tfrfast.jobs.running import Advance, Workers
from tfrfast.loading.records import open_reader
from tfrfast.reader import Reader, Skipped, all_damage
from tfrfast.storage.paths import Paths, written_file
from tfrfast.tables.scanning import Scan, scan
from tfrfast.writing.options import FilePath
from tfrfast.writing.publishing import named_errors, numbered_set, publish, shard_name
from tfrfast.writing.work_folder import WorkFolder

__all__ = ["Exported", "export"]


class Exported(NamedTuple):
    """The result of `tfr.export`."""

    paths: list[str]
    num_records: int
    #: Bytes of all files.
    num_bytes: int
    #: The skipped damage.
    skipped: list[Skipped]

    def __repr__(self) -> str:
        return summary(self)


@explains_arguments
def export(
    source: Reader | Paths,
    out: FilePath,
    *,
    num_shards: int | None = None,
    features: AnyFeatures | None = None,
    columns: Sequence[str] | None = None,
    record_column: bool | str = False,
    text: Sequence[str] = (),
    sample: int | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    progress: bool | None = None,
    executor: Executor | None = None,
    **reader_options: Any,
) -> Exported:
    """Writes the features of tf.train.Examples to Parquet, by PyArrow.

        tfr.export("data/train-*", "out/train.parquet", num_shards=8, columns=["id", "label"])

    Returns an `Exported`: the new paths and the counts. Files appear under their names when all
    files are complete. Until then they are in a hidden folder beside `out`.

    Args:
      source: a Reader, or anything that Reader takes; `reader_options` are passed on to it.
      out: the new file, or the beginning of the new files' names: `out.parquet` makes
        `out-00000-of-00008.parquet`.
      num_shards: the number of files. By default one file, with exactly the name `out`.
      features, columns, record_column, text, sample, threads: as for `tfr.scan`. By default the
        features are inferred from all records.
      overwrite: True replaces existing files. False makes them an error.
      progress: as for `tfr.verify`.
      executor: writes the files, instead of threads of this process, as for `tfr.verify`. One
        process writes each file.
    """
    name = os.fsdecode(written_file(out))
    pyarrow()
    reader = open_reader(source, reader_options)
    rows = scan(
        reader,
        features=features,
        columns=columns,
        record_column=record_column,
        text=text,
        sample=sample,
        threads=threads,
    )
    if not rows.columns:
        raise ValueError("There are no features, and a Parquet file without columns has no rows.")
    names = _names(name, num_shards)
    taken = _taken(name, num_shards)
    if taken and not overwrite:
        raise FileExistsError(f"{taken[0]!r} exists. Pass overwrite=True to replace it.")
    workers = Workers(executor, rows.threads, progress)
    with WorkFolder(name) as work:
        tasks = plan_files(rows, len(names), work.path, workers)
        written = list(workers.run("Exporting", tasks, "records"))
        made = [path for path, _, _ in written]
        # Replaces all old files, because a glob would mix old and new files.
        publish(made, names, overwrite=overwrite, others=taken)
    return Exported(
        names,
        sum(count for _, count, _ in written),
        sum(map(os.path.getsize, names)),
        # Tasks in other processes open only the shards that they read.
        all_damage(rows.reader.skipped, *(damage for *_, damage in written)),
    )


def plan_files(scan: Scan, count: int, folder: str, workers: Workers) -> list[_WriteFile]:
    """Returns the tasks, one for each file."""
    at_once = min(count, workers.count)
    threads = -(-workers.count // at_once) if workers.executor is None else 1
    ends = [len(scan) * number // count for number in range(count + 1)]
    return [
        _WriteFile(scan.part(rows=slice(first, end), threads=threads), end - first, folder)
        for first, end in itertools.pairwise(ends)
    ]


@dataclass
class _WriteFile:
    """Writes rows to a file of its own. A batch is a row group."""

    scan: Scan
    amount: int
    folder: str

    def run(self, advance: Advance) -> tuple[str, int, list[Skipped]]:
        arrow = pyarrow()
        path = os.path.join(self.folder, secrets.token_hex(8))
        rows = 0
        with named_errors(path), open(path, "xb") as file:
            with arrow.parquet.ParquetWriter(file, arrow.schema(self.scan)) as writer:
                for batch in self.scan:
                    written = arrow.record_batch(batch)
                    writer.write_batch(written)
                    rows += written.num_rows
                    advance(written.num_rows)
            file.flush()
            os.fsync(file.fileno())
        return path, rows, self.scan.reader.skipped


def _names(out: str, num_shards: int | None) -> list[str]:
    if num_shards is None:
        return [out]
    count = integer("num_shards", num_shards, 1, 10**6)
    stem = out.removesuffix(".parquet")
    return [f"{shard_name(stem, number, count)}.parquet" for number in range(count)]


def _taken(out: str, num_shards: int | None) -> list[str]:
    """Returns the files of an earlier export to `out`: one file, or any number of shards."""
    if num_shards is None:
        return [out] if os.path.lexists(out) else []
    stem = out.removesuffix(".parquet")
    found = glob.glob(glob.escape(stem) + "-*-of-*.parquet")
    sets = {name: numbered_set(name) for name in found}
    return sorted(n for n, its in sets.items() if its and its[::2] == (stem, ".parquet"))
