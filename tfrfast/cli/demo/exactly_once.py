"""Counts how often each record comes, by the records' contents and not by the plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrfast.bench.pipelines import WINDOW, import_tensorflow
from tfrfast.loading.loader import Loader
from tfrfast.reader import Reader
from tfrfast.writing.writer import Writer

# The batch size does not divide the number of records. And 65,537 is just past a power of two,
# where shuffles that size their blocks by a logarithm lose one record and repeat another.
SIZES = (761, 65_537)
BATCH_SIZE = 50
WORLDS = (1, 3, 8)
_SHARDS = 4

Numbers = NDArray[np.int64]


class Tally(NamedTuple):
    """The numbers of records of an epoch that came once, never, or more often."""

    records: int
    reader: str
    ranks: int
    once: int
    missing: int
    repeated: int


def write_numbered(folder: Path, count: int) -> list[str]:
    """Writes shards in which record i of the data set holds only the number i."""
    (folder / "numbered").mkdir(exist_ok=True)
    for shard, numbers in enumerate(np.array_split(np.arange(count, dtype="<i8"), _SHARDS)):
        path = folder / "numbered" / f"{count}-{shard}"
        with Writer(path, index=False, sync=False, overwrite=True) as writer:
            writer.write_batch([number.tobytes() for number in numbers])
    return sorted(str(path) for path in (folder / "numbered").glob(f"{count}-*"))


def count_records(folder: Path, count: int) -> list[Tally]:
    """Counts shuffled epochs: of the Loader on 1, 3 and 8 ranks, of TFRecordDataset on one."""
    shards = write_numbered(folder, count)
    counts = []
    with Reader(shards) as reader:
        for world in WORLDS:
            seen = np.concatenate([_of_rank(reader, rank, world) for rank in range(world)])
            counts.append(_counted(count, "tfr.Loader", world, seen))
    seen = np.concatenate(list(shuffled_by_tfrfast(shards, count)))
    counts.append(_counted(count, "tfr.TFRecordDataset", 1, seen))
    return counts


def shuffled_by_tfrfast(shards: list[str], seed: int) -> Any:
    """Yields batches of the numbers, in the order of `tfr.TFRecordDataset(...).shuffle(8192)`."""
    from tfrfast.tensorflow import TFRecordDataset

    return _numbers(TFRecordDataset(shards).shuffle(WINDOW, seed=seed))


def _numbers(records: Any) -> Any:
    tf = import_tensorflow()
    numbers = records.batch(BATCH_SIZE).map(lambda batch: tf.io.decode_raw(batch, tf.int64)[:, 0])
    return numbers.as_numpy_iterator()


def _of_rank(reader: Reader, rank: int, world: int) -> Numbers:
    loader = Loader(reader, BATCH_SIZE, rank=rank, world=world, remainder="pad")
    batches = [batch.data.view("<i8")[batch.valid] for batch in loader]
    loader.close()
    return np.concatenate(batches)


def _counted(records: int, reader: str, ranks: int, seen: Numbers) -> Tally:
    times = np.bincount(seen, minlength=records)
    return Tally(
        records,
        reader,
        ranks,
        int((times == 1).sum()),
        int((times == 0).sum()),
        int((times > 1).sum()),
    )
