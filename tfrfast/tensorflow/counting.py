"""Opens shards when a dataset is made, to count their records for a shuffle or for a length."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfrfast.base.codecs import CODECS
from tfrfast.base.progress import ProgressBar
from tfrfast.storage.remote.options import Storage
from tfrfast.tensorflow.library import PROGRESS, calls, end_waits_at_interrupts

_BUILD_INDEXES, _SKIP_DAMAGE, _BESIDE, _COMPRESSION = 1, 2, 4, 8
# The ops' numbers.
COMPRESSION_CODES = {"": 0, **{codec.name: codec.code for codec in CODECS.values()}}
_ERROR_BYTES = 4096


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
        sizes = (ctypes.c_int64 * 3)()
        calls.tfrfast_plan_sizes(handle, sizes)
        self.record_count, self.file_bytes, self.stream_bytes = sizes
        self.damage: str = calls.tfrfast_plan_damage(handle).decode(errors="replace")

    def file_records(self, file_count: int) -> list[int]:
        """Returns the number of records of each of `file_count` files."""
        counts = (ctypes.c_int64 * file_count)()
        if calls.tfrfast_plan_file_records(self._handle, counts, file_count) != file_count:
            raise RuntimeError(f"The plan is not of {file_count} files.")
        return list(counts)

    def step_count(self, sequence: bytes) -> int:
        """Returns the number of steps of a sequence."""
        return int(calls.tfrfast_plan_step_count(self._handle, sequence, len(sequence)))

    def counts(self, plan: bytes) -> dict[str, int]:
        """Returns what the steps of a Loader's plan add up to so far, as in LoaderStats."""
        made = (ctypes.c_int64 * 3)()
        calls.tfrfast_plan_counts(self._handle, plan, len(plan), made)
        return dict(zip(("records", "bytes", "batches"), made, strict=True))


def open_plan(
    names: Sequence[bytes],
    *,
    build_indexes: bool,
    skip_damage: bool,
    compression: str = "",
    storage: Storage,
    beside: bool = False,
) -> OpenPlan | None:
    """Opens shards by their indexes. Returns None if an index is missing, unless missing indexes
    are built.

    `storage` holds the options of URLs. With `beside`, only indexes beside the shards count, which
    every user and machine sees.

    Building raises the errors of opening, as TensorFlow's exceptions.
    """
    flags = _BUILD_INDEXES * build_indexes + _SKIP_DAMAGE * skip_damage
    flags += _BESIDE * beside + _COMPRESSION * COMPRESSION_CODES[compression]
    described, packed = storage.encoded, b"".join(name + b"\0" for name in names)
    _expect_waits(packed)

    def begin(report: Any, error: Any) -> int | None:
        return calls.tfrfast_open_plan(
            packed, len(packed), flags, described, len(described), report, error, len(error)
        )

    if build_indexes:
        return _opened(begin)
    handle = begin(PROGRESS(), ctypes.create_string_buffer(_ERROR_BYTES))
    return OpenPlan(handle) if handle else None


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
