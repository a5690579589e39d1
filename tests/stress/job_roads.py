"""Jobs and commands as roads: the records that they wrote, or how many they say that there are."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import tfrfast as tfr
from road import (
    ARROW,
    COMMAND,
    FEATURES,
    HEADERS,
    ORDERED,
    PUBLISHES,
    READS,
    SKIPS,
    Opened,
    Road,
    Task,
)
from tfrecord_model import scan
from truth import CommandFailedError, Item, Total, content_of

#: What a job returns: its rows, and whether it has reported damage.
Done = tuple[Iterable["Item | Total"], bool]


def written(paths: Iterable[str]) -> Iterator[Item]:
    """Yields the records of new shards, by a model that knows nothing of tfrfast."""
    for path in sorted(paths):
        frames, damage = scan(Path(path).read_bytes())
        assert damage == [each for each in frames if not each.payload_is_good] == [], path
        yield from ((None, each.payload) for each in frames)


def exported(paths: Iterable[str]) -> Iterator[Item]:
    import pyarrow.parquet

    for path in paths:
        for row in pyarrow.parquet.read_table(path).to_pylist():
            yield None, content_of(row["id"], row["text"])


def job(work: Callable[[Task], Done]) -> Callable[[Task], Opened]:
    """Returns a road whose every epoch does the whole job again."""

    def open_job(task: Task) -> Opened:
        reports = [False]

        def epoch() -> Iterable[Item | Total]:
            rows, reports[0] = work(task)
            return rows

        return Opened(epoch, lambda: reports[0])

    return open_job


def copy(task: Task) -> Done:
    reader = tfr.Reader(task.paths, **task.options)  # copy(index=) is the new shards'
    made = tfr.copy(
        reader, slice(None), task.folder / "copy", num_shards=2, overwrite=True, progress=False
    )
    return written(made.paths), bool(made.skipped)


class TwiceExecutor(Executor):
    """Runs each task twice, in this thread."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            fn(*args, **kwargs)
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


def shuffle(task: Task) -> Done:
    options = {key: value for key, value in task.options.items() if key == "on_corruption"}
    options["max_memory"] = task.chosen.choice(["16MiB", "1GiB"])
    # There may be a single record.
    options |= task.chosen.choice(
        [{"max_bytes": 10_000}, {"num_shards": 1, "executor": TwiceExecutor()}]
    )
    made = tfr.shuffle(task.paths, task.folder / "mixed", overwrite=True, progress=False, **options)
    return written(made.paths), bool(made.skipped)


def export(task: Task) -> Done:
    reader = tfr.Reader(task.paths, **task.options)
    made = tfr.export(
        reader, task.folder / "table.parquet", features=FEATURES, overwrite=True, progress=False
    )
    return exported(made.paths), bool(reader.skipped)


def write_again(task: Task) -> Done:
    reader = tfr.Reader(task.paths, **task.options)
    with tfr.ShardedWriter(
        task.folder / "again", num_shards=2, overwrite=True, sync=False
    ) as writer:
        for record in reader:
            writer.write(record)
    return written(writer.paths), bool(reader.skipped)


def build_keys(task: Task) -> Done:
    reader = tfr.Reader(task.paths, **task.options)
    if not any(True for _ in reader):
        return [], bool(reader.skipped)  # the kind of a key is inferred from records
    tfr.build_keys(reader, "id", folder=task.folder, max_memory=1 << 16, progress=False)
    keyed = reader.by_key("id", folder=task.folder)
    numbers = list(range(len(reader)))
    task.chosen.shuffle(numbers)
    records = reader.read(numbers).tolist()
    ids = [tfr.parse_example([record], FEATURES)["id"][0] for record in records]
    rows = [(None, keyed[int(id)]) for id in ids]
    return rows, bool(reader.skipped)


def build_index(task: Task) -> Done:
    tfr.build_index(task.paths, force=True, progress=False)
    reader = tfr.Reader(task.paths, **task.options)
    rows = [(None, record) for record in reader]
    return rows, bool(reader.skipped)


def verify(task: Task) -> Done:
    found = tfr.verify(task.paths, progress=False)
    if found.damage and not task.skips:
        raise CommandFailedError(str(found.damage[0]))
    return [Total(found.num_records)], bool(found.damage)


def diff(task: Task) -> Done:
    reader = tfr.Reader(task.paths, **task.options)
    found = tfr.diff(reader, reader, progress=False)
    return [Total(found.same)], any(found.skipped)


def statistics(task: Task) -> Done:
    reader = tfr.Reader(task.paths, **task.options)
    found = tfr.statistics(reader, features={"id": FEATURES["id"]}, progress=False)
    return [Total(int(found["id"].num_values))], bool(reader.skipped)


class Command:
    """Runs a command in this process. A road's rows are made from what it printed."""

    def __init__(
        self, *arguments: str, rows: Callable[[Task, str], Iterable[Item | Total]]
    ) -> None:
        self._arguments = arguments
        self._rows = rows

    def __call__(self, task: Task) -> Done:
        from tfrfast.cli import main

        values = {"folder": task.folder}
        name, *arguments = [each.format(**values) for each in self._arguments]
        corruption = ["--on-corruption", "skip"] if task.skips and name != "verify" else []
        arguments += [*corruption, "--", *task.paths]
        raw, errors = io.BytesIO(), io.StringIO()
        out = io.TextIOWrapper(raw, encoding="utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = main([name, *arguments])
        out.flush()
        said = errors.getvalue()
        if code == 2 and re.search("There are no features|The records have ;", said):
            return [], True  # features are inferred from records, and there are none
        if code == 2 or (code == 1 and not task.skips):
            raise CommandFailedError(said or raw.getvalue().decode())
        assert code in (0, 1), f"exit code {code}: {said}"
        printed = raw.getvalue().decode()
        is_named = any(path in said + printed for path in task.paths)
        assert code == 0 or is_named, f"exit code 1, and no damage is named: {said}{printed}"
        return self._rows(task, printed), code == 1


def printed_ids(task: Task, out: str) -> Iterator[Item]:
    for line in out.splitlines():
        yield None, json.loads(line)["features"]["id"][0]


def printed_total(task: Task, out: str) -> list[Total]:
    found = json.loads(out)
    return [Total(found.get("records", found.get("good_records")))]


def counted(task: Task, out: str) -> list[Total]:
    return [Total(int(out))]


def written_to(pattern: str) -> Callable[[Task, str], Iterator[Item]]:
    return lambda task, out: written(map(str, task.folder.glob(pattern)))


_JOB = frozenset({READS, SKIPS})
_MAKES = _JOB | {PUBLISHES}
_COMMAND = _JOB | {COMMAND}
_COMMAND_MAKES = _MAKES | {COMMAND}
_OPTIONS = ("--overwrite", "--no-progress", "--no-sync", "--max-bytes", "10000")

ROADS = [
    Road("copy", job(copy), _MAKES | {ORDERED}),
    Road("shuffle", job(shuffle), _MAKES),
    Road("export", job(export), _MAKES | {ARROW, ORDERED}, ("pyarrow",)),
    Road("Reader to ShardedWriter", job(write_again), _MAKES),
    Road("build_keys", job(build_keys), _JOB),
    Road("build_index", job(build_index), _JOB | {ORDERED}),
    Road("verify", job(verify), _JOB),
    Road("diff", job(diff), _JOB),
    Road("statistics", job(statistics), _JOB),
    Road("tfrfast cat", job(Command("cat", "--json", "--records", ":", rows=printed_ids)), _COMMAND | {ORDERED}),
    Road("tfrfast count", job(Command("count", rows=counted)), _COMMAND | {HEADERS}),
    Road("tfrfast stats", job(Command("stats", "--json", "--no-progress", rows=printed_total)), _COMMAND),
    Road("tfrfast verify", job(Command("verify", "--json", "--no-progress", rows=printed_total)), _COMMAND),
    Road("tfrfast copy", job(Command("copy", "--where", "id > 0", "--out", "{folder}/copy", *_OPTIONS, rows=written_to("copy-*"))), _COMMAND_MAKES | {ARROW, ORDERED}, ("duckdb",)),
    Road("tfrfast shuffle", job(Command("shuffle", "--out", "{folder}/mixed", *_OPTIONS, rows=written_to("mixed-*"))), _COMMAND_MAKES),
    Road("tfrfast export", job(Command("export", "--overwrite", "--no-progress", "--out", "{folder}/table.parquet", rows=lambda task, out: exported([str(task.folder / "table.parquet")]))), _COMMAND_MAKES | {ARROW, ORDERED}, ("pyarrow",)),
]  # fmt: skip
