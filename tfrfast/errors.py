"""The errors about records. I/O failures are plain `OSError`s with errno and filename."""

from __future__ import annotations

__all__ = [
    "CorruptRecordError",
    "FeatureError",
    "RecordError",
    "SlowPathWarning",
    "StaleIndexError",
    "TruncatedRecordError",
]


class RecordError(Exception):
    """A shard or a record is not as expected.

    `path` is the shard, `record` the record's number, and `offset` the byte where the problem
    begins. An attribute that does not apply is None.

        try:
            record = reader[7]
        except tfr.RecordError as error:
            print(error.path, error.record, error.offset)
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        record: int | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(message)
        self.path = path
        self.record = record
        self.offset = offset

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), str(self), self.path, self.record, self.offset)


class CorruptRecordError(RecordError):
    """Bytes contradict their checksum or the format."""


class TruncatedRecordError(RecordError):
    """The shard ends inside a record: its writer died, or a copy was cut short."""


class StaleIndexError(RecordError):
    """The shard is not the file that its index describes. Index the shard again."""


class FeatureError(RecordError, ValueError):
    """A record does not fit the feature description."""


class SlowPathWarning(UserWarning):
    """A call is much slower than necessary.

    A `TFRecordDataset` shuffles through a buffer, or parses single records, without need. Or an
    exact shuffle makes a request for each of many small records.

    Each warning is issued once in a process. `tfr.explain` says more about a dataset.
    """


def _rebuild(
    kind: type[RecordError],
    message: str,
    path: str | None,
    record: int | None,
    offset: int | None,
) -> RecordError:
    return kind(message, path=path, record=record, offset=offset)
