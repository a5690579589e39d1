"""Examples whose tensors hold the number of their record, and loops that count records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import tfrfast as tfr
from record_files import write_shard

NUM_RECORDS = 103

FEATURES = {
    "id": tfr.FixedLen((), "int64"),
    "dense": tfr.FixedLen((3,), "float32"),
    "numbers": tfr.VarLen("int64"),
    "name": tfr.FixedLen((), "bytes"),
    "words": tfr.VarLen("bytes"),
}
ID = {"id": FEATURES["id"]}


def example(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "dense": [number, 0.5, -number],
        "numbers": list(range(number % 4)),
        "name": b"record %d" % number,
        "words": [b"w"] * (number % 3),
    }


def write_examples(folder: Path, count: int = NUM_RECORDS) -> list[str]:
    """Writes two shards of examples, and an empty shard."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [tfr.encode_example(example(number)) for number in range(count)]
    parts = [records[: count // 3], [], records[count // 3 :]]
    return [write_shard(folder / f"data-{i}", part) for i, part in enumerate(parts)]


def ids(batches: Iterable[Any]) -> list[list[int]]:
    """Returns the record numbers of each batch, without rows of padding. Checks that `id` equals
    the numbers.
    """
    numbers = []
    for batch in batches:
        assert batch["id"].tolist() == batch.indices.tolist()
        numbers.append(batch.indices[batch.valid].tolist())
    return numbers


def flat(batches: Iterable[list[int]]) -> list[int]:
    return [number for batch in batches for number in batch]


def asks_for_too_much(_: Any) -> Any:
    """A transform that raises StopIteration."""
    return next(iter([]))


_kept: list[Any] = []


def until_an_error(loader: Any) -> Iterator[Any]:
    """Yields the batches of a DataLoader whose workers will raise.

    The DataLoader's iterator is kept until the tests end, because its end waits five seconds for
    each worker.
    """
    _kept.append(iter(loader))
    return _kept[-1]  # type: ignore[no-any-return]
