"""Features of records as Parquet files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.features import AnyFeatures
from tfrfast.jobs.parquet import Exported, export_parquet
from tfrfast.loading.records import open_reader
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths, written_file
from tfrfast.tables.scanning import scan
from tfrfast.writing.options import FilePath

__all__ = ["Exported", "export"]


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
      progress: True or False shows or hides a bar on stderr. By default it appears on a terminal,
        after a second.
      executor: writes the files, instead of threads of this process: `ProcessPoolExecutor()`, or
        any other `concurrent.futures.Executor`. Its processes must see the same files under the
        same names. One process writes each file.
    """
    reader = open_reader(source, reader_options)
    name = os.fsdecode(written_file(out))
    rows = scan(
        reader,
        features=features,
        columns=columns,
        record_column=record_column,
        text=text,
        sample=sample,
        threads=threads,
    )
    return export_parquet(
        rows, name, num_shards=num_shards, overwrite=overwrite, progress=progress, executor=executor
    )
