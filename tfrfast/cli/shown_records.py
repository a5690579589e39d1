"""The records that a command shows. Damage hides as few records as possible."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

from tfrfast._native import RecordBatch, Survey
from tfrfast.cli.damage import left_out
from tfrfast.errors import CorruptRecordError, RecordError, TruncatedRecordError
from tfrfast.reader import Reader
from tfrfast.steps.steps import Steps

_PIECE_BYTES = 4 << 20
_PIECE_RECORDS = 4096


class ShownRecords:
    """The records of a command's PATHS.

    With --on-corruption skip, the good records, numbered without the damaged ones. Otherwise the
    records before the first damage; access to a later record raises the error about the damage.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._skips: bool = options.on_corruption == "skip"
        along: str | None = options.steps
        self._damage: RecordError | None = None
        try:
            self._reader = Reader(options.paths, on_corruption=options.on_corruption)
            if along is not None:
                self._reader = Steps(self._reader, along=along)
            self._known = len(self._reader)
        except (CorruptRecordError, TruncatedRecordError) as error:
            if along is not None:  # nothing says where steps are before the damage
                raise
            self._damage = error
            self._reader = Reader(options.paths, on_corruption="skip")
            self._known = self._records_before_damage()

    def __enter__(self) -> ShownRecords:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def count(self) -> int:
        """The number of records. Needs all shards to be whole."""
        if self._damage is not None:
            raise self._damage
        return self._known

    def number(self, index: int) -> int:
        """Returns the number of record `index`, which may count from the end."""
        if index >= 0:
            return index
        if index < -self.count():
            self._reader.locate(index)  # raises IndexError
        return index + self.count()

    def between(self, begin: int, end: int | None) -> range:
        """Returns the numbers from `begin` to `end`. Both may count from the end."""
        if begin < 0 or (end is not None and end < 0):
            first, last, _ = slice(begin, end).indices(self.count())
            if last < first:
                raise ValueError(f"--records {begin}:{end} ends before it begins.")
            return range(first, last)
        # After the last record that is known to be good, access to the next record is an error.
        known = max(begin, self._known) + 1 if self._damage else self._known
        if begin > known:
            self._reader.locate(begin)
        return range(begin, known if end is None else min(end, known))

    def batches(self, numbers: Sequence[int]) -> Iterator[RecordBatch]:
        """Yields these records in pieces of a few MiB. Raises IndexError for a record that does not
        exist.
        """
        at = 0
        while at < len(numbers):
            piece = self._piece(numbers[at : at + _PIECE_RECORDS])
            yield from self._read(piece)
            at += len(piece)

    def survey(self, numbers: Sequence[int]) -> Survey:
        """Returns the features of these records. Raises FeatureError if one is no Example."""
        survey = Survey(self._reader._core)
        for batch in self.batches(numbers):
            survey.add(batch, batch.indices.tolist())
        return survey

    def _read(self, piece: Sequence[int]) -> Iterator[RecordBatch]:
        """Yields one batch. If a record is damaged, yields several batches, and then raises its
        error.
        """
        try:
            batch = self._reader.read(piece)
            if len(batch) < len(piece) == 1 and not self._skips:
                self._reader[piece[0]]  # raises the error of a damaged record
        except CorruptRecordError:
            if len(piece) == 1:
                raise
        else:
            if len(batch) == len(piece) or len(piece) == 1 or self._skips:
                yield batch
                return
        half = (len(piece) + 1) // 2
        yield from self._read(piece[:half])
        yield from self._read(piece[half:])

    def status(self) -> int:
        """Returns the exit code. Says on stderr what was skipped."""
        return left_out(self._reader.skipped if self._skips else [])

    def _records_before_damage(self) -> int:
        begins: dict[str, int] = {}
        for damage in self._reader.skipped:
            begins[damage.path] = min(damage.begin, begins.get(damage.path, damage.begin))
        records = 0
        for shard in self._reader.shards:
            if shard.path in begins:
                return records + int(np.searchsorted(shard.offsets, begins[shard.path]))
            records += shard.num_records
        return records

    def _piece(self, numbers: Sequence[int]) -> Sequence[int]:
        """Returns the first records, as many as one read takes."""
        if self._damage is not None:
            good = next((i for i, number in enumerate(numbers) if number >= self._known), None)
            if good == 0:
                raise self._damage
            numbers = numbers[:good]
        if isinstance(self._reader, Steps):
            return numbers[: self._reader._records_within(_PIECE_BYTES)]
        while len(numbers) > 1 and self._bytes_of(numbers) > _PIECE_BYTES:
            numbers = numbers[: len(numbers) // 2]
        return numbers

    def _bytes_of(self, numbers: Sequence[int]) -> int:
        first, last = self._reader.locate(numbers[0]), self._reader.locate(numbers[-1])
        if first.shard == last.shard and numbers[-1] - numbers[0] < len(numbers):
            return last.offset + last.length - first.offset
        return sum(self._reader.locate(number).length for number in numbers)
