"""Writes frames to a compressed file that is visible while it grows."""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from typing import TYPE_CHECKING, Any

from tfrfast import _native
from tfrfast.base.codecs import CODECS

if TYPE_CHECKING:
    from typing_extensions import Buffer

_PIECE_BYTES = 64 << 10
_INPUT_BUFFER_BYTES = 256 << 10  # TensorFlow's default
_FLUSH_MODES = ("Z_NO_FLUSH", "Z_PARTIAL_FLUSH", "Z_SYNC_FLUSH", "Z_FULL_FLUSH", "Z_BLOCK")
_MEMBER_BYTES = 1 << 20  # of GZIP. Each member can be inflated alone.


class CompressedStream:
    """Writes a compressed file, with the methods and errors of `_native.FrameStream`.

    Bytes that could not be written stay pending, and the next call tries again. The file has no
    buffer in Python, because a forked child that drops the file would write out its parent's
    buffer.
    """

    def __init__(self, path: str, compression: str, options: Any) -> None:
        self._home = _native.HomeProcess()
        self._path = path
        self._compression = compression
        self._options = options
        self._flush_mode = _flush_mode(options)
        self._buffer_bytes = _option(options, "input_buffer_size", _INPUT_BUFFER_BYTES)
        self._member_bytes = (
            _MEMBER_BYTES if CODECS[compression].written_in_members else sys.maxsize
        )
        self._pending = bytearray()
        self._begin_member()
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115

    def write(self, record: Buffer) -> None:
        self._check_open()
        frame = _native.frame(record)
        if len(frame) > self._space:
            self._pending += self._compressor.flush()
            self._begin_member()
        self._space -= len(frame)
        if self._unflushed_bytes + len(frame) > self._buffer_bytes:
            self._flush_as_asked()
        self._pending += self._compressor.compress(frame)
        self._unflushed_bytes += len(frame)
        if len(frame) > self._buffer_bytes:
            self._flush_as_asked()
        if len(self._pending) >= _PIECE_BYTES:
            self._write_out()

    def flush(self) -> None:
        self._check_open()
        self._pending += self._compressor.flush(zlib.Z_PARTIAL_FLUSH)
        self._write_out()

    def close(self) -> None:
        if self._file.closed:
            return
        self._home.refuse_in_child(os.fsencode(self._path))
        with self._file:
            self._pending += self._compressor.flush()
            self._write_out()

    def __del__(self) -> None:
        if not hasattr(self, "_file"):
            return
        if self._home.is_this_one():
            with contextlib.suppress(OSError):  # close() reports errors; a destructor cannot
                self.close()
        self._file.close()

    def _begin_member(self) -> None:
        self._compressor = _compressor(self._compression, self._options)
        self._space = self._member_bytes
        self._unflushed_bytes = 0

    def _flush_as_asked(self) -> None:
        """Compresses a full input buffer with the `flush_mode`, as TensorFlow does."""
        if self._flush_mode != zlib.Z_NO_FLUSH:
            self._pending += self._compressor.flush(self._flush_mode)
        self._unflushed_bytes = 0

    def _write_out(self) -> None:
        while self._pending:
            del self._pending[: self._file.write(self._pending)]

    def _check_open(self) -> None:
        if self._file.closed:
            raise ValueError(_native.WRITER_IS_CLOSED)
        self._home.refuse_in_child(os.fsencode(self._path))


def _option(options: Any, name: str, default: int) -> int:
    value = getattr(options, name, None)
    return default if value is None else int(value)


def _flush_mode(options: Any) -> int:
    mode = _option(options, "flush_mode", zlib.Z_NO_FLUSH)
    if mode not in [getattr(zlib, name) for name in _FLUSH_MODES]:
        raise ValueError(
            f"flush_mode is {mode}, but must be zlib's {', '.join(_FLUSH_MODES[:-1])} or "
            f"{_FLUSH_MODES[-1]}. With another mode, records could not be written or not be read."
        )
    return mode


def _compressor(compression: str, options: Any) -> Any:
    # TensorFlow takes the wrapper from the compression type. The option gives only the window size.
    wrapper = CODECS[compression].window_bits - zlib.MAX_WBITS
    return zlib.compressobj(
        _option(options, "compression_level", zlib.Z_DEFAULT_COMPRESSION),
        _option(options, "compression_method", zlib.DEFLATED),
        _option(options, "window_bits", zlib.MAX_WBITS) + wrapper,
        _option(options, "mem_level", 9),
        _option(options, "compression_strategy", zlib.Z_DEFAULT_STRATEGY),
    )
