"""The binding of CRC-32C. tests/core/test_crc32c.cpp tests each kernel."""

from __future__ import annotations

import numpy as np
import pytest

from tfrfast import _native

PAYLOAD = b"123456789"


def test_a_crc_continues_from_the_data_before() -> None:
    assert _native.crc32c(PAYLOAD) == 0xE3069283
    assert _native.crc32c(b"6789", _native.crc32c(b"12345")) == 0xE3069283
    assert _native.crc32c(b"", 123) == 123


def test_any_contiguous_buffer_is_taken_and_released() -> None:
    data = bytearray(PAYLOAD)
    for buffer in (
        data,
        memoryview(b"0" + PAYLOAD)[1:],
        np.frombuffer(PAYLOAD, np.uint8).reshape(3, 3),
    ):
        assert _native.crc32c(buffer) == 0xE3069283
    data.append(0)  # BufferError while anything still holds it
    strided = memoryview(PAYLOAD)[::2]
    with pytest.raises(ValueError, match=r"not contiguous.*ascontiguousarray"):
        _native.crc32c(strided)
    with pytest.raises(TypeError, match=r"bytes-like.*str"):
        _native.crc32c("text")  # type: ignore[arg-type]
    released = memoryview(PAYLOAD)
    released.release()
    with pytest.raises(ValueError, match="released"):
        _native.crc32c(released)
    for value in (-1, 2**32, 1.0):
        with pytest.raises((TypeError, ValueError)):
            _native.crc32c(PAYLOAD, value)  # type: ignore[arg-type]
