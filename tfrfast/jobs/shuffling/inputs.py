"""The shards that a shuffle reads, and their versions at its beginning."""

from __future__ import annotations

import hashlib
import os

from tfrfast import _native
from tfrfast.errors import StaleIndexError
from tfrfast.storage.remote.options import Storage
from tfrfast.storage.schemes import is_url

# The number of objects to open ahead of the current object.
_MAX_OPEN_AHEAD = 64
_REQUEST_BYTES = 8 << 20


class Inputs:
    """Files and objects, in order. Raises OSError if a file or object cannot be examined."""

    def __init__(self, shards: list[str], storage: Storage) -> None:
        self.shards = shards
        self.storage = storage
        self._objects = {}
        if urls := [each for each in shards if is_url(each)]:
            from tfrfast.storage.remote.listing import look_at_objects

            self._objects = look_at_objects(urls, storage.access)
        self.sizes: list[int] = []
        #: The size and the version of each shard, as text.
        self.states: list[str] = []
        fingerprint = hashlib.sha256()
        for shard in shards:
            if (found := self._objects.get(shard)) is not None:
                state = found.encode()
                self.sizes.append(found.size)
            else:
                status = os.stat(shard)
                state = f"{status.st_size}\0{status.st_mtime_ns}"
                self.sizes.append(status.st_size)
            self.states.append(state)
            fingerprint.update(f"{shard}\0{state}\0".encode(errors="surrogateescape"))
        #: A hash of the names, sizes and versions of all inputs.
        self.fingerprint = fingerprint.hexdigest()

    def any_object(self) -> bool:
        return bool(self._objects)

    def is_object(self, number: int) -> bool:
        return self.shards[number] in self._objects

    def open(
        self, number: int, offset: int, record: int, max_ahead_bytes: int
    ) -> _native.RecordStream:
        """Returns a shard's records from `offset` on. The first bytes of an object are requested at
        once.

        Raises StaleIndexError if the shard has changed.
        """
        path = self.shards[number]
        stream = _native.RecordStream(
            os.fsencode(path), offset, record, self.storage.core, max_ahead_bytes
        )
        facts = self._objects.get(path)
        if facts is not None:
            num_bytes, mtime_ns, version = stream.facts
            same_time = bool(facts.etag) or mtime_ns == facts.modified_s * 10**9
            if num_bytes != facts.size or tuple(version) != facts.words() or not same_time:
                raise StaleIndexError(
                    f"{path!r} was replaced by another object during the shuffle. Begin it again.",
                    path=path,
                )
        stream.announce()
        return stream


class IntactRecords:
    """Deals all records of shards to buckets. The first damage is an error.

    While an object is read, later objects are requested, up to `max_ahead_bytes` in all.
    """

    def __init__(
        self, buckets: _native.ShuffleBuckets, inputs: Inputs, max_ahead_bytes: int
    ) -> None:
        self._buckets = buckets
        self._inputs = inputs
        self._max_ahead_bytes = max(max_ahead_bytes, 2 * _REQUEST_BYTES)
        self._streams: dict[int, _native.RecordStream] = {}

    def add_shard(
        self, number: int, offset: int, record: int, max_bytes: int
    ) -> tuple[int, int, bool]:
        """Deals about `max_bytes` of a shard's records, from the record at `offset` on.

        Returns the offset and the record for the next call, and True if the shard has ended.
        """
        stream = self._stream(number, offset, record)
        if self._inputs.is_object(number):
            self._read_ahead(number, self._inputs.sizes[number] - offset)
        has_ended = self._buckets.add_records(stream, max_bytes)
        if has_ended:
            del self._streams[number]
        return stream.offset, stream.record, has_ended

    def _stream(self, number: int, offset: int, record: int) -> _native.RecordStream:
        if number not in self._streams:
            self._streams[number] = self._inputs.open(number, offset, record, self._max_ahead_bytes)
        return self._streams[number]

    def _read_ahead(self, number: int, left_bytes: int) -> None:
        asked_bytes = max(left_bytes, 0)
        for later in range(number + 1, min(number + _MAX_OPEN_AHEAD, len(self._inputs.shards))):
            if asked_bytes >= self._max_ahead_bytes or not self._inputs.is_object(later):
                return
            if later not in self._streams:
                self._stream(later, 0, 0)
            asked_bytes += min(self._inputs.sizes[later], _REQUEST_BYTES)
