"""The shards of a dataset: the counting of their records, and a look at the first ones."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import weakref
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import tensorflow as tf

from tfrfast.base.codecs import CODECS
from tfrfast.base.progress import ProgressBar
from tfrfast.loading.shuffle_costs import RemoteRecords, inflating_cost, seek_cost
from tfrfast.storage.remote.options import Storage
from tfrfast.storage.schemes import is_url
from tfrfast.tensorflow.library import PROGRESS, calls, end_waits_at_interrupts
from tfrfast.tensorflow.read.file_names import FileNames

_BUILD_INDEXES, _SKIP_DAMAGE, _BESIDE, _COMPRESSION = 1, 2, 4, 8
# The ops' numbers.
COMPRESSION_CODES = {"": 0, **{codec.name: codec.code for codec in CODECS.values()}}
_ERROR_BYTES = 4096
_FILES = 16
_SAMPLE_BYTES = 64 << 10
_LARGE_SAMPLE_BYTES = 8 << 20
_HEADER = struct.Struct("<QI")  # the payload's length and its checksum
_FRAME_BYTES = _HEADER.size + 4


class OpenFiles:
    """Keeps the files of a dataset open and mapped from their first use on, for the dataset's life.

    Otherwise each epoch would open and map the files, and find their records again: mapping 100 MB
    takes a third of such an epoch's processor time. A changed file is still opened again when an
    epoch begins.
    """

    def __init__(self) -> None:
        self._is_kept = False

    def keep(self, source: Any) -> None:
        """Takes a source's text, unless only a graph will know the text."""
        if self._is_kept or not hasattr(source, "numpy"):
            return
        text = source.numpy()
        keeper = calls.tfrfast_keep_open(text, len(text))
        if keeper is not None:
            closing = weakref.finalize(self, calls.tfrfast_close_plan, keeper)
            closing.atexit = False  # daemon threads may use the files until the very end
        self._is_kept = True


class OpenPlan:
    """Shards with counted records. Keeps the shards open in this process during its life."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._closing = weakref.finalize(self, calls.tfrfast_close_plan, handle)
        self._closing.atexit = False  # daemon threads may use the shards until the very end
        size = ctypes.c_size_t()
        text = calls.tfrfast_plan_source(handle, ctypes.byref(size))
        self.source: bytes = ctypes.string_at(text, size.value)
        count = calls.tfrfast_plan_sizes(handle, None, 0)
        sizes = (ctypes.c_int64 * count)()
        calls.tfrfast_plan_sizes(handle, sizes, count)
        #: The number of records of each file comes last.
        self.record_count, self.file_bytes, self.stream_bytes, *self.file_records = sizes
        self.damage: str = calls.tfrfast_plan_damage(handle).decode(errors="replace")

    def step_count(self, sequence: bytes) -> int:
        """Returns the number of steps of a sequence."""
        return int(calls.tfrfast_plan_step_count(self._handle, sequence, len(sequence)))

    def counts(self, plan: bytes) -> dict[str, int]:
        """Returns what the steps of a Loader's plan add up to so far, as in LoaderStats."""
        made = (ctypes.c_int64 * 3)()
        calls.tfrfast_plan_counts(self._handle, plan, len(plan), made)
        return dict(zip(("records", "bytes", "batches"), made, strict=True))


def open_described(description: bytes) -> OpenPlan:
    """Opens the data of a Reader with the Reader's options. Raises TensorFlow's exceptions."""
    _expect_waits(description)
    return _opened(
        lambda report, error: calls.tfrfast_open_described(
            description, len(description), report, error, len(error)
        )
    )


def _expect_waits(names: bytes) -> None:
    if b"://" in names:
        end_waits_at_interrupts()


def _opened(begin: Callable[[Any, Any], int | None]) -> OpenPlan:
    """Opens shards with a progress bar. Ctrl-C ends the opening."""
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    interruption: list[BaseException] = []
    with ProgressBar("Indexing", None) as bar:

        def advance(done: int, total: int) -> int:
            try:
                bar.update(done, total)
            except BaseException as exception:  # an exception cannot pass through the library
                interruption.append(exception)
                return 1
            return 0

        handle = begin(PROGRESS(advance), error)
    if interruption:
        raise interruption[0]
    if not handle:
        raise exception_from(error.value.decode(errors="replace"))
    return OpenPlan(handle)


def exception_from(text: str) -> Exception:
    """Returns TensorFlow's exception for "<code> <message>"."""
    code, _, message = text.partition(" ")
    kind = tf.compat.v1.errors.exception_type_from_error_code(int(code))
    error: Exception = kind(None, None, message)
    return error


@dataclass(frozen=True)
class Source:
    """Shards, and the known facts about them."""

    names: FileNames
    skip_damage: bool
    compression: str
    storage: Storage  # options of URLs
    num_parallel_reads: Any = None
    turns: int | None = 1  # the number of interleaved files; None: unknown here
    block_records: int = 1  # records of a file in each turn; more than 1 only in batches
    plan: OpenPlan | None = None
    open_files: OpenFiles = field(default_factory=OpenFiles, compare=False, repr=False)

    def planned(self, build_indexes: bool, beside: bool = False) -> Source | None:
        """Returns the shards with counted records; None if counting is impossible.

        Counts by indexes: with `beside`, only by those beside the files, which every user and
        machine sees. If an index is missing, it is built or nothing is counted. Building raises the
        errors of opening, as TensorFlow's exceptions.
        """
        if self.plan is not None:
            return self
        if self.names.known is None:
            return None
        flags = _BUILD_INDEXES * build_indexes + _SKIP_DAMAGE * self.skip_damage
        flags += _BESIDE * beside + _COMPRESSION * COMPRESSION_CODES[self.compression]
        described = self.storage.encoded
        packed = b"".join(name + b"\0" for name in self.names.known)
        _expect_waits(packed)

        def begin(report: Any, error: Any) -> int | None:
            return calls.tfrfast_open_plan(
                packed, len(packed), flags, described, len(described), report, error, len(error)
            )

        if build_indexes:
            return replace(self, plan=_opened(begin))
        handle = begin(PROGRESS(), ctypes.create_string_buffer(_ERROR_BYTES))
        return replace(self, plan=OpenPlan(handle)) if handle else None

    @property
    def remote_records(self) -> RemoteRecords | None:
        """Returns the records if they are planned and come from a network."""
        plan, names = self.plan, self.names.known or []
        if plan is None or not any(is_url(os.fsdecode(name)) for name in names):
            return None
        return RemoteRecords(
            plan.record_count, plan.file_bytes, plan.stream_bytes, self.storage.cache
        )

    @property
    def inflating_cost(self) -> str | None:
        """The cost, in words, of an exact shuffle of compressed files on this machine; None if it
        does not matter.
        """
        plan = self.plan
        if plan is None or not self.compression or self.remote_records is not None:
            return None
        by_blocks = "shuffle(order=tfr.BlockShuffle(...))"
        return inflating_cost(
            plan.record_count, plan.stream_bytes, self.storage.inflated, by_blocks, "dataset"
        )

    def seek_cost(self) -> str | None:
        """Measures reads. Returns the cost of an exact shuffle in words; None if it does not
        matter.
        """
        plan, names = self.plan, self.names.known or []
        if plan is None or self.compression or not names or not plan.record_count:
            return None
        return seek_cost(
            os.fsdecode(names[len(names) // 2]),
            plan.record_count,
            plan.file_bytes // plan.record_count,
            "shuffle(order=tfr.BlockShuffle({}))",
        )

    @property
    def has_known_order(self) -> bool:
        return self.names.known is not None and self.turns is not None

    @property
    def takes_turns(self) -> bool:
        """True if records come in a known order other than file after file."""
        return self.has_known_order and (self.turns != 1 or self.shuffles_files)

    @property
    def shuffles_files(self) -> bool:
        return self.names.shuffle is not None

    @property
    def description(self) -> str:
        names = self.names.known
        if names is None:
            return f"TFRecordDataset: {self.names.why_unknown}"
        files = f"{len(names):,} file" + "s" * (len(names) != 1)
        if self.plan is None:
            return f"TFRecordDataset of {files}"
        records = self.plan.record_count
        return f"TFRecordDataset of {files}, {records:,} record" + "s" * (records != 1)

    @cached_property
    def record_bytes(self) -> int | None:
        """The approximate size of records, from the first file that has some among the
        first; None if unknown.

        The estimate does not depend on indexes, so that graphs are the same.
        """
        return mean_record_bytes(self.names.known or (), self.compression)

    @property
    def first_records(self) -> list[bytes]:
        """Returns up to two records of the first file that has some. Does not depend on indexes.

        Very large records are left out, and checksums are not verified.
        """
        paths = (self.names.known or ())[:_FILES]
        samples = (_begun(path, self.compression, _LARGE_SAMPLE_BYTES) for path in paths)
        sample = next(filter(None, samples), b"")
        found = _frames(sample)[:2]
        return [sample[at : at + size] for at, size in found if at + size <= len(sample)]


def mean_record_bytes(paths: Sequence[bytes], compression: str = "") -> int | None:
    """Returns the mean size of the first records of the first file that has some; None if none of
    the first files has records that can be read.
    """
    samples = (_begun(path, compression, _SAMPLE_BYTES) for path in paths[:_FILES])
    frames = next((found for found in map(_frames, samples) if found), ())
    return sum(length for _, length in frames) // len(frames) if frames else None


def _begun(path: bytes, compression: str, size: int) -> bytes:
    """Returns the first bytes of a file; none if it cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for a writer
            return b""
        with open(path, "rb") as file:
            sample = file.read(size)
        if compression:
            inflating = zlib.decompressobj(CODECS[compression].window_bits)
            sample = inflating.decompress(sample, size)
    except (OSError, ValueError, zlib.error):
        return b""
    return sample


def _frames(sample: bytes) -> list[tuple[int, int]]:
    """Returns the place and the length of each record that begins in a sample."""
    at, found = 0, list[tuple[int, int]]()
    while at + _HEADER.size <= len(sample):
        (length, _) = _HEADER.unpack_from(sample, at)
        found.append((at + _HEADER.size, length))
        at += _FRAME_BYTES + length
    return found
