"""Sparse files whose headers truthfully claim more bytes than any memory has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tfrecord_model import frame, header

HUGE = 1 << 62  # four such records have 2**64 bytes together


@contextmanager
def huge_files(contents: Sequence[Sequence[bytes | int]]) -> Iterator[list[str]]:
    """Yields names of shards in memory. An item is a record, or the length of a payload of zeros.

    Few filesystems on disks take such large files.
    """
    descriptors = []
    try:
        for parts in contents:
            descriptor = os.memfd_create("huge")
            descriptors.append(descriptor)
            at = 0
            for part in parts:
                written = header(part) if isinstance(part, int) else frame(part)
                os.pwrite(descriptor, written, at)
                at += part + 16 if isinstance(part, int) else len(written)
                os.ftruncate(descriptor, at)
        yield [f"/proc/{os.getpid()}/fd/{descriptor}" for descriptor in descriptors]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
