"""A drop-in for `tf.io.TFRecordWriter` that needs no TensorFlow."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Any

from tfrfast import _native
from tfrfast.writing.compressed_stream import CompressedStream

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

__all__ = ["TFRecordWriter"]

_TYPE_OF_NUMBER = {0: "", 1: "ZLIB", 2: "GZIP"}  # TensorFlow's TFRecordCompressionType

_TENSORFLOW_ERRORS = {
    errno.ENOENT: "NotFoundError",
    errno.EACCES: "PermissionDeniedError",
    errno.EPERM: "PermissionDeniedError",
    errno.EROFS: "PermissionDeniedError",
    errno.EEXIST: "AlreadyExistsError",
    errno.EISDIR: "FailedPreconditionError",
    errno.ENOTDIR: "FailedPreconditionError",
    errno.ENOSPC: "ResourceExhaustedError",
    errno.EDQUOT: "ResourceExhaustedError",
    errno.EFBIG: "OutOfRangeError",
}


class TFRecordWriter:
    """Writes records to a file, as `tf.io.TFRecordWriter` does.

        with tfr.TFRecordWriter("data/train-0") as writer:
            writer.write(record)

    The file exists from the beginning, grows with each record, and has no index. `tfr.Writer` makes
    a shard that appears only when it is complete, with its index.

    Args:
      path: the file. An existing file is overwritten. A name with a scheme (`gs://`) is handed to
        TensorFlow.
      options: "", "GZIP", "ZLIB", or a `tf.io.TFRecordOptions`.

    If TensorFlow is loaded, errors are TensorFlow's (`tf.errors.NotFoundError`, ...). Otherwise
    errors are Python's (`FileNotFoundError`, ...), and `ValueError` after `close`.
    """

    def __init__(self, path: str | bytes | os.PathLike[str], options: Any = None) -> None:
        self._path = os.fsdecode(path)
        self._home = _native.HomeProcess()
        compression = _compression_type(options)
        if "://" in self._path:
            import tensorflow as tf

            self._out: Any = tf.io.TFRecordWriter(self._path, options)
            return
        with _tensorflow_errors(self._path):
            if compression:
                self._out = CompressedStream(self._path, compression, options)
            else:
                self._out = _native.FrameStream(os.fsencode(self._path))

    def write(self, record: Buffer | str) -> None:
        """Adds one record: bytes, or text as UTF-8."""
        if isinstance(record, str):
            record = record.encode()
        with _tensorflow_errors(self._path):
            self._out.write(record)

    def flush(self) -> None:
        """Writes out the buffer, so that other readers see all records."""
        with _tensorflow_errors(self._path):
            self._out.flush()

    def close(self) -> None:
        """Completes the file. Further calls do nothing."""
        with _tensorflow_errors(self._path):
            self._out.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # A forked child that ends with an exception must leave its parent's file alone.
        if kind is None or self._home.is_this_one():
            self.close()


def _compression_type(options: Any) -> str:
    kind = getattr(options, "compression_type", options)
    if hasattr(kind, "compression_type"):  # TensorFlow's options may hold options
        return _compression_type(kind)
    if not kind:
        return ""
    if isinstance(kind, int) and kind in _TYPE_OF_NUMBER:
        return _TYPE_OF_NUMBER[kind]
    if isinstance(kind, str) and kind in _TYPE_OF_NUMBER.values():
        return kind
    raise ValueError(f'Not a valid compression_type: "{kind}"')


class _tensorflow_errors:  # noqa: N801
    """Raises TensorFlow's error classes if TensorFlow is loaded."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        closed = isinstance(error, ValueError) and str(error) == _native.WRITER_IS_CLOSED
        if not closed and not isinstance(error, OSError):
            return
        tensorflow = sys.modules.get("tensorflow")
        if tensorflow is None:
            if closed:
                raise ValueError("Writer is closed.") from None
            return
        if closed:
            raise tensorflow.errors.FailedPreconditionError(None, None, "Writer is closed.")
        assert isinstance(error, OSError)
        name = _TENSORFLOW_ERRORS.get(error.errno or 0, "UnknownError")
        message = f"{self._path}; {os.strerror(error.errno or 0)}"
        raise getattr(tensorflow.errors, name)(None, None, message) from error
