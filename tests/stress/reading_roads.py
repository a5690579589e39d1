"""Roads that read: Readers, Loaders, adapters, orders, scans, from files and from a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import tfrfast as tfr
from road import (
    ARROW,
    CACHED,
    FEATURES,
    FRAMEWORK,
    ORDERED,
    PICTURES,
    READS,
    SERVED,
    SKIPS,
    Opened,
    Road,
    Task,
)
from truth import Item, content_of

PICTURE = {"picture": tfr.Image(channels=1)}


def rows_of(batch: Any) -> Iterator[Item]:
    """Yields the rows of a batch of any framework: of records, or of decoded columns."""
    numbers = np.asarray(batch.indices).tolist()
    if isinstance(batch, tfr.RecordBatch):
        yield from zip(numbers, batch.tolist(), strict=True)
        return
    columns = np.asarray(batch["id"]).tolist(), [bytes(text) for text in batch["text"]]
    for number, id, text in zip(numbers, *columns, strict=True):
        yield number, content_of(id, text)


def pictures_of(batch: Any) -> Iterator[Item]:
    for number, row in zip(batch.indices.tolist(), batch["picture"], strict=True):
        yield number, np.ascontiguousarray(row).tobytes()


def all_rows(
    batches: Callable[[], Iterable[Any]], rows: Callable[[Any], Iterable[Item]] = rows_of
) -> Callable[[], Iterator[Item]]:
    return lambda: (row for batch in batches() for row in rows(batch))


def skipped_of(reader: tfr.Reader) -> Callable[[], bool]:
    return lambda: len(reader.skipped) > 0


def read_in_some_way(reader: tfr.Reader, task: Task) -> Iterator[Item]:
    """Iterates, reads one by one or in batches."""
    way = task.chosen.choice(["iterate", "one by one", "batches"])
    if way == "iterate":
        # Skipped records take numbers, which an iterator does not tell.
        yield from ((None if task.skips else i, record) for i, record in enumerate(reader))
    elif way == "one by one" and not task.skips:
        yield from ((i, reader[i]) for i in range(len(reader)))
    else:
        for begin in range(0, len(reader), 64):
            yield from rows_of(reader.read(range(begin, min(begin + 64, len(reader)))))


def reader_by(io: str, **options: Any) -> Callable[[Task], Opened]:
    def open_reader(task: Task) -> Opened:
        cache = {"cache": options["cache"](task)} if options else {}
        threads = task.chosen.choice([1, 2])
        reader = tfr.Reader(task.paths, io=io, threads=threads, **cache, **task.options)
        return Opened(lambda: read_in_some_way(reader, task), skipped_of(reader))

    return open_reader


def loader(
    orders: Callable[[Task], Any],
    rows: Callable[[Any], Iterable[Item]] = rows_of,
    cache: Callable[[Task], Any] | None = None,
    **options: Any,
) -> Callable[[Task], Opened]:
    def open_loader(task: Task) -> Opened:
        kept = {} if cache is None else {"cache": cache(task)}
        reader = tfr.Reader(task.paths, **kept, **task.options)
        made = tfr.Loader(
            reader,
            task.chosen.choice([1, 7, 64]),
            order=orders(task),
            threads=task.chosen.choice([1, 2, 4]),
            **options,
        )
        return Opened(all_rows(lambda: made, rows), skipped_of(reader))

    return open_loader


def in_order(task: Task) -> tfr.InOrder:
    return tfr.InOrder()


def shuffled(task: Task) -> tfr.Shuffle | tfr.BlockShuffle:
    if task.chosen.random() < 0.5:
        return tfr.Shuffle(task.chosen.randrange(9))
    return tfr.BlockShuffle(16, 2, seed=task.chosen.randrange(9))


def transformed(batch: Any) -> list[Item]:
    return list(rows_of(batch))


def parsed_images(task: Task) -> Opened:
    reader = tfr.Reader(task.paths, **task.options)

    def epoch() -> Iterator[Item]:
        for begin in range(0, len(reader), 32):
            batch = reader.read(range(begin, min(begin + 32, len(reader))))
            column = tfr.parse_example(batch, PICTURE)["picture"]
            for number, row in zip(batch.indices.tolist(), column, strict=True):
                yield number, np.ascontiguousarray(row).tobytes()

    return Opened(epoch, skipped_of(reader))


def steps(task: Task) -> Opened:
    """Each record is an episode of one step."""
    records = tfr.Reader(task.paths, **task.options)
    if not any(True for _ in records):
        return Opened(lambda: iter(()), skipped_of(records))  # no record has steps
    made = tfr.Steps(task.paths, along=["id", "text"], **task.options)

    def epoch() -> Iterator[Item]:
        batches = tfr.Loader(made, 16, features=FEATURES, shuffle=task.chosen.random() < 0.5)
        return ((None, text) for _, text in all_rows(lambda: batches)())  # steps have other numbers

    return Opened(epoch, skipped_of(made.records))


def packed(task: Task) -> Opened:
    """Each record is a segment of one token, its id."""
    reader = tfr.Reader(task.paths, **task.options)
    if not any(True for _ in reader):
        return Opened(lambda: iter(()), skipped_of(reader))  # no record has a length
    packs = tfr.Packed(task.chosen.choice([1, 9]), rows=task.chosen.choice([1, 8]), lengths="id")
    features = {"id": tfr.VarLen("int64"), "text": FEATURES["text"]}
    made = tfr.Loader(reader, packs, features=features, threads=task.chosen.choice([1, 2]))

    def rows(batch: Any) -> Iterator[Item]:
        columns = batch["id"][batch.segments > 0].tolist(), batch["text"]
        for number, id, text in zip(batch.indices.tolist(), *columns, strict=True):
            yield number, content_of(id, bytes(text))

    return Opened(all_rows(lambda: made, rows), skipped_of(reader))


def mixture(task: Task) -> Opened:
    """An epoch in which each record comes once."""
    readers = [tfr.Reader(path, **task.options) for path in task.paths]
    sources = {f"{i}": (each, len(each)) for i, each in enumerate(readers) if len(each)}
    mixed = tfr.Mixture(sources) if sources else None
    made = None if mixed is None else tfr.Loader(mixed, 16)
    if mixed is not None:
        readers.append(mixed.reader)

    def rows(batch: Any) -> Iterator[Item]:
        return ((None, record) for _, record in rows_of(batch))

    return Opened(
        lambda: iter(()) if made is None else all_rows(lambda: made, rows)(),
        lambda: any(len(each.skipped) for each in readers),
    )


def scan(task: Task) -> Opened:
    import pyarrow

    reader = tfr.Reader(task.paths, **task.options)
    table = tfr.scan(reader, features=FEATURES, record_column=True, batch_size=32)

    def epoch() -> Iterator[Item]:
        for batch in table:
            for row in pyarrow.record_batch(batch).to_pylist():
                yield row["record"], content_of(row["id"], row["text"])

    return Opened(epoch, skipped_of(reader))


def torch_loader(task: Task) -> Opened:
    import tfrfast.torch

    reader = tfr.Reader(task.paths, **task.options)
    features = task.chosen.choice([FEATURES, None])
    made = tfrfast.torch.Loader(reader, 16, features=features, shuffle=False, threads=2)
    return Opened(all_rows(lambda: made), skipped_of(reader))


def torch_workers(task: Task) -> Opened:
    import torch

    import tfrfast.torch

    dataset = tfrfast.torch.IterableDataset(task.paths, 16, features=FEATURES, **task.options)
    made = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2)
    return Opened(all_rows(lambda: made))


def jax_loader(task: Task) -> Opened:
    import tfrfast.jax

    reader = tfr.Reader(task.paths, **task.options)
    columns = tfr.Loader(reader, 16, features=FEATURES, shuffle=False)
    return Opened(all_rows(lambda: tfrfast.jax.Loader(columns)), skipped_of(reader))


def grain_source(task: Task) -> Opened:
    import grain

    import tfrfast.grain

    source = tfrfast.grain.Source(
        task.paths, features=task.chosen.choice([FEATURES, None]), **task.options
    )

    def epoch() -> Iterator[Item]:
        for row in grain.MapDataset.source(source).to_iter_dataset():
            yield None, row if isinstance(row, bytes) else content_of(int(row["id"]), row["text"])

    return Opened(epoch, skipped_of(source.reader))


def disk_cache(task: Task) -> tfr.DiskCache:
    return tfr.DiskCache(task.folder / "kept", task.chosen.choice(["1M", "100M"]))


_FILES = frozenset({READS, SKIPS})
_URLS = frozenset({READS, SKIPS, SERVED})
_TORCH, _JAX, _GRAIN = ("torch",), ("jax",), ("grain",)

ROADS = [
    Road("Reader, mmap", reader_by("mmap"), _FILES | {ORDERED}),
    Road("Reader, pread", reader_by("pread"), _FILES | {ORDERED}),
    Road("Loader, in order", loader(in_order), _FILES | {ORDERED}),
    Road("Loader, shuffled", loader(shuffled), _FILES),
    Road("Loader, decoded", loader(shuffled, features=FEATURES), _FILES),
    Road("Loader, transform", loader(in_order, iter, transform=transformed), _FILES | {ORDERED}),
    Road("Loader, images", loader(shuffled, pictures_of, features=PICTURE), _FILES | {PICTURES}),
    Road("parse_example, images", parsed_images, _FILES | {ORDERED, PICTURES}),
    Road("Steps", steps, _FILES),
    Road("Mixture", mixture, _FILES),
    Road("Loader, packed", packed, _FILES),
    Road("scan, Arrow", scan, _FILES | {ARROW, ORDERED}, ("pyarrow",)),
    Road("PyTorch, Loader", torch_loader, _FILES | {ORDERED, FRAMEWORK}, _TORCH),
    Road("PyTorch, workers", torch_workers, _FILES | {FRAMEWORK}, _TORCH),
    Road("JAX", jax_loader, _FILES | {ORDERED, FRAMEWORK}, _JAX),
    Road("Grain", grain_source, _FILES | {ORDERED, FRAMEWORK}, _GRAIN),
    Road("URL, Reader", reader_by("auto"), _URLS | {ORDERED}, ("obstore",)),
    Road("URL, Loader", loader(shuffled, features=FEATURES), _URLS, ("obstore",)),
    Road("URL, Reader, DiskCache", reader_by("auto", cache=disk_cache), _URLS | {CACHED, ORDERED}, ("obstore",)),
    Road("URL, Loader, DiskCache", loader(shuffled, cache=disk_cache), _URLS | {CACHED}, ("obstore",)),
]  # fmt: skip
