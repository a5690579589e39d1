"""Builds step files, which hold the place of each step of each record."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfrfast import _native
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.errors import FeatureError, RecordError
from tfrfast.features.names import names_in, what_was_meant
from tfrfast.jobs.chosen_records import ChosenRecords, OfRecords, ShardSizes, cut_rows
from tfrfast.jobs.cutting import part_bytes
from tfrfast.jobs.running import Advance, Workers
from tfrfast.keys.key_file import stamp_of
from tfrfast.loading.records import open_reader
from tfrfast.reader import Reader, Skipped, all_damage, warn_of_damage
from tfrfast.steps.axis import Along, encoded_axis
from tfrfast.storage.paths import Paths
from tfrfast.storage.schemes import is_url
from tfrfast.writing.publishing import named_errors, publish_own
from tfrfast.writing.work_folder import WorkFolder, no_empty_folders

__all__ = ["build_step_file", "build_steps", "step_path"]

# The number of records among which a record with steps is searched.
_SAMPLES = 16
# Few enough to stay in the processor's cache between the two checksums.
_BYTES_AT_ONCE = 4 << 20
# Enough for many requests at once.
_REMOTE_BYTES_AT_ONCE = 32 << 20
_WRITTEN_AT_ONCE = 1 << 20
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)


@explains_arguments
def build_steps(
    source: Reader | Paths,
    *,
    along: Along,
    folder: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    executor: Executor | None = None,
    **reader_options: Any,
) -> str:
    """Makes the step file for `tfr.Steps`, and returns its path.

        tfr.build_steps("data/train-*", along="steps/")

    `Steps` makes a missing step file itself. One pass reads and verifies all records but those of
    the first shards, if these have an older step file. The file fits these shards in this order
    only, and is made again after a change of a shard.

    Args:
      source: a Reader, or anything that Reader takes; `reader_options` are passed on to it.
      along: as for Steps.
      folder: the folder of the file. By default the file lies beside the indexes of the first
        shard.
      threads, progress: as for Reader.
      executor: reads, instead of threads of this process, as for `tfr.verify`.
    """
    reader = open_reader(source, reader_options)._frames()
    axis = encoded_axis(along)
    path = step_path(reader, axis, folder)
    workers = Workers(executor, threads, progress)
    warn_of_damage(build_step_file(reader, axis, path, workers))
    return path


def step_path(reader: Reader, axis: bytes, chosen: str | os.PathLike[str] | None = None) -> str:
    """Returns the path of these shards' step file: beside their indexes, or in the given folder."""
    folder = reader._folder_of_indexes(chosen, "step file")
    return os.path.join(folder, _file_names(reader, axis)[-1])


def _file_names(reader: Reader, axis: bytes) -> list[str]:
    """Returns the names of the step files of no shard, of the first one, of the first two, ..."""
    names = [hashlib.sha256(axis)]
    for shard in reader.shards:
        names.append(names[-1].copy())
        names[-1].update(b"\0" + os.fsencode(os.path.basename(shard.path)))
    return [f"{each.hexdigest()[:16]}.steps" for each in names]


class _Known(NamedTuple):
    """The steps of an older file, which has the first records, and the layout of all records."""

    num_records: int
    part: bytes
    layout: bytes


def _known(reader: Reader, axis: bytes, folder: str, renamed: Sequence[str]) -> _Known | None:
    """Returns the steps of an older file of fewer shards.

    Takes no file that leaves damaged records out, because the new file may not skip damage, and no
    file without steps, because its records decide no layout.
    """
    paths, names = [shard.path for shard in reader.shards], _file_names(reader, axis)
    there = set(os.listdir(folder or os.curdir))
    for count in range(len(paths) - 1, 0, -1):
        if names[count] in there:
            with (
                contextlib.suppress(RecordError, OSError, ValueError),
                Reader(paths[:count], **{**reader._options, "progress": False}) as before,
            ):
                path = os.path.join(folder, names[count])
                stamp = stamp_of(before.shards)
                core = _native.open_steps(before._core, path, stamp, [], [], [], {}, {})
                facts = _native.step_facts(core)
                if facts["axis"] == axis and facts["features"] and not facts["left_out"]:
                    layout = _native.step_file_layout(core, renamed)
                    return _Known(len(before), _native.step_part(core), layout)
    return None


def build_step_file(
    reader: Reader,
    axis: bytes,
    path: str,
    workers: Workers,
    renamed: Sequence[str] = (),
) -> list[Skipped]:
    """Returns the skipped damage. The context may have features with the names of the lists in
    `renamed`.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(no_empty_folders(os.path.dirname(path)))
        _native.check_sidecar_name(os.fsencode(path))
        try:
            work = stack.enter_context(WorkFolder(path))
            file = stack.enter_context(open(work.inside("steps"), "xb", buffering=0))
        except OSError as error:
            if error.errno not in _NOT_WRITABLE:
                raise
            raise OSError(
                error.errno,
                "The step file goes where indexes lie, and nothing can be written there. Name "
                'another folder, Steps(index_folder=...), or keep no file, Steps(index="memory")',
                os.path.dirname(path),
            ) from None
        made, damage = _made(reader, axis, os.path.dirname(path), workers, renamed)
        with named_errors(path):
            _write(made, file)
            publish_own(file, path)
    return damage


def in_memory(reader: Reader, axis: bytes, renamed: Sequence[str]) -> Iterator[str]:
    """Yields the path of a temporary step file, which is removed with the iterator."""
    with tempfile.NamedTemporaryFile(suffix=".steps", buffering=0) as file:
        _write(_made(reader, axis, None, Workers.of(reader), renamed)[0], file)
        yield file.name


def _write(made: _native.StepFileBytes, file: Any) -> None:
    """Writes the step file to a file without a buffer, which may take a part of a chunk."""
    at = 0
    while chunk := made.read(at, _WRITTEN_AT_ONCE):
        at += file.write(chunk)


def _made(
    reader: Reader, axis: bytes, folder: str | None, workers: Workers, renamed: Sequence[str]
) -> tuple[_native.StepFileBytes, list[Skipped]]:
    stamp = stamp_of(reader.shards)
    tables = _native.StepTables(axis)
    known = _known(reader, axis, folder, renamed) if folder is not None else None
    if known is None:
        layout, first = _layout(reader, axis, renamed), 0
    else:
        layout, first = known.layout, known.num_records
        tables.append(known.part)
    tasks = _planned(ShardSizes(reader), layout, workers.count, first)
    damage: list[Skipped] = []
    for part, met in workers.run("Finding steps", tasks, "records"):
        tables.append(part)
        damage += met
    try:
        return tables.finish(reader._fingerprint, stamp), all_damage(damage, reader.skipped)
    except ValueError as error:
        raise _explained(error, reader, axis) from None


def _explained(error: ValueError, reader: Reader, axis: bytes) -> ValueError:
    """Returns the same error, with the names that the first record has."""
    with contextlib.suppress(RecordError, OSError):
        if known := names_in([reader[0]] if len(reader) else []):
            prefixes = {name[: name.rindex("/") + 1] for name in known if "/" in name}
            name = _native.step_axis_names(axis)[0]
            meant = what_was_meant(name, prefixes if name.endswith("/") else known, "The records")
            return ValueError(f"{error}{meant}")
    return error


def _layout(reader: Reader, axis: bytes, renamed: Sequence[str]) -> bytes:
    """Returns the layout of the first intact record that has steps."""
    for record in range(min(len(reader), _SAMPLES)):
        try:
            layout = _native.step_layout(axis, reader[record], renamed)
        except (FeatureError, ValueError):  # the pass raises the error with its place
            break
        except RecordError:  # damage: the pass raises the error, or leaves the record out
            continue
        if layout is not None:
            return layout
    return _native.step_layout(axis, None, renamed)


def _planned(shards: ShardSizes, layout: bytes, workers: int, first: int) -> list[_CutRecords]:
    size = part_bytes(sum(shards.sizes), workers)
    return [
        _CutRecords(ChosenRecords(shards, range(max(first, some.start), some.stop)), layout)
        for some in cut_rows(shards, size)
        if some.stop > first
    ]


@dataclass
class _CutRecords(OfRecords):
    """Reads a range of records, and finds their steps."""

    layout: bytes

    def run(self, advance: Advance) -> tuple[bytes, list[Skipped]]:
        numbers = self.rows.numbers
        assert isinstance(numbers, range)
        maker = _native.StepPartMaker(self.layout)
        size = _REMOTE_BYTES_AT_ONCE if is_url(self.rows.reader._paths[0]) else _BYTES_AT_ONCE
        at = numbers.start
        while at < numbers.stop:
            end = maker.add(self.rows.reader._core, at, numbers.stop, size)
            advance(end - at)
            at = end
        return maker.finish(), self.rows.reader.skipped
