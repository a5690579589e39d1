"""Converts TFRecord to Parquet and back, with PyArrow. New files appear whole, or not at all."""

from __future__ import annotations

import glob
import itertools
import os
import re
import secrets
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfrfast.base.arguments import integer
from tfrfast.base.progress import ProgressBar
from tfrfast.example.encoding import encode_examples
from tfrfast.jobs.running import Advance, num_workers, run_tasks
from tfrfast.reader import Skipped, all_damage
from tfrfast.tables.scanning import Scan
from tfrfast.writing.options import Compression
from tfrfast.writing.publishing import publish
from tfrfast.writing.work_folder import WorkFolder
from tfrfast.writing.writer import ShardedWriter

__all__ = ["Exported", "Imported", "Written", "export_parquet", "import_parquet"]

_BATCH_ROWS = 1 << 14
_SHARD = re.compile(r"-\d{5,}-of-\d{5,}\.parquet")


class Written(NamedTuple):
    """The result of writing."""

    paths: list[str]
    num_records: int
    num_bytes: int


class Imported(NamedTuple):
    """The result of an import of Parquet files."""

    paths: list[str]
    num_records: int
    num_bytes: int
    #: Columns whose type an export would not restore: the type before the import, and the type
    #: after an export.
    changed_types: dict[str, tuple[str, str]]


class Exported(NamedTuple):
    """The result of `tfr.export`."""

    paths: list[str]
    num_records: int
    #: Bytes of all files.
    num_bytes: int
    #: The skipped damage.
    skipped: list[Skipped]


def export_parquet(
    scan: Scan,
    out: str,
    *,
    num_shards: int | None,
    overwrite: bool,
    progress: bool | None,
    executor: Executor | None = None,
) -> Exported:
    """Writes the rows of a scan to `out`, or to `num_shards` files whose names begin with `out`."""
    pyarrow()
    if not scan.columns:
        raise ValueError("There are no features, and a Parquet file without columns has no rows.")
    names = _names(out, num_shards)
    taken = _taken(out, num_shards)
    if taken and not overwrite:
        raise FileExistsError(f"{taken[0]!r} exists. Pass overwrite=True to replace it.")
    with WorkFolder(out) as work, ProgressBar("Exporting", progress, "records") as bar:
        tasks = plan_files(scan, len(names), work.path, executor)
        advance = bar.adding(len(scan))
        written = list(run_tasks(tasks, executor, scan.threads, advance))
        made = [path for path, _, _ in written]
        # Replaces all old files, because a glob would mix old and new files.
        publish(made, names, overwrite=overwrite, others=taken)
    return Exported(
        names,
        sum(rows for _, rows, _ in written),
        sum(map(os.path.getsize, names)),
        # Tasks in other processes open only the shards that they read.
        all_damage(scan.reader.skipped, *(damage for *_, damage in written)),
    )


def plan_files(scan: Scan, count: int, folder: str, executor: Executor | None) -> list[_WriteFile]:
    """Returns the tasks, one for each file."""
    workers = num_workers(executor, scan.threads)
    threads = 1 if executor is not None else -(-workers // min(count, workers))
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
        with open(path, "xb") as file:
            with arrow.parquet.ParquetWriter(file, arrow.schema(self.scan)) as writer:
                for batch in self.scan:
                    written = arrow.record_batch(batch)
                    writer.write_batch(written)
                    rows += written.num_rows
                    advance(written.num_rows)
            file.flush()
            os.fsync(file.fileno())
        return path, rows, self.scan.reader.skipped


def import_parquet(
    paths: Sequence[str],
    out: str,
    *,
    num_shards: int | None,
    max_bytes: int | None,
    compression: Compression | None,
    overwrite: bool,
    progress: bool | None,
) -> Imported:
    """Writes the rows of Parquet files as Examples to shards."""
    arrow = pyarrow()
    files = [_opened(arrow, path) for path in paths]
    total = sum(file.metadata.num_rows for file in files)
    if num_shards is None and max_bytes is None:
        num_shards = 1
    writer = ShardedWriter(
        out,
        num_shards=num_shards,
        max_bytes=max_bytes,
        compression=compression,
        overwrite=overwrite,
    )
    with writer, ProgressBar("Importing", progress, "rows") as bar:
        for file in files:
            for batch in file.iter_batches(_BATCH_ROWS):
                writer.write_batch(encode_examples(batch))
                bar.update(writer.num_records, total)
    changed: dict[str, tuple[str, str]] = {}
    for file in files:
        changed |= _changed_types(arrow, file.schema_arrow)
    return Imported(writer.paths, writer.num_records, writer.num_bytes, changed)


def _changed_types(arrow: Any, schema: Any) -> dict[str, tuple[str, str]]:
    """Returns the columns whose types are lost: records hold only int64, float32 and bytes."""
    types = arrow.types
    changed = {}
    for field in schema:
        found = field.type
        while types.is_list(found) or types.is_large_list(found) or types.is_fixed_size_list(found):
            found = found.value_type
        if types.is_floating(found):
            stored = arrow.float32()
        elif types.is_integer(found) or types.is_boolean(found) or types.is_temporal(found):
            stored = arrow.int64()
        elif types.is_binary(found) or types.is_large_binary(found):
            continue
        else:
            stored = arrow.binary()
        if found != stored:
            changed[field.name] = (str(found), str(stored))
    return changed


def pyarrow() -> Any:
    """Returns PyArrow with its Parquet. Raises ImportError that says how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            "Parquet needs PyArrow, which is not installed: pip install pyarrow."
        ) from None
    return pyarrow


def _opened(arrow: Any, path: str) -> Any:
    os.stat(path)  # its error is plainer than Arrow's
    try:
        return arrow.parquet.ParquetFile(path)
    except arrow.ArrowInvalid as error:
        raise ValueError(f"{path!r} cannot be read as a Parquet file: {error}") from None


def _names(out: str, num_shards: int | None) -> list[str]:
    if num_shards is None:
        return [out]
    count = integer("num_shards", num_shards, 1, 10**6)
    return [f"{_stem(out)}-{number:05}-of-{count:05}.parquet" for number in range(count)]


def _stem(out: str) -> str:
    return out.removesuffix(".parquet")


def _taken(out: str, num_shards: int | None) -> list[str]:
    """Returns the files of an earlier export to `out`: one file, or any number of shards."""
    if num_shards is None:
        return [out] if os.path.lexists(out) else []
    stem = _stem(out)
    found = glob.glob(glob.escape(stem) + "-*-of-*.parquet")
    return sorted(name for name in found if _SHARD.fullmatch(name.removeprefix(stem)))
