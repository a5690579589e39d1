from __future__ import annotations

import array
import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrfast import _native

VECTORS = [
    (b"", 0x00000000),
    (b"a", 0xC1D04330),
    (b"123456789", 0xE3069283),
    # RFC 3720, B.4
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
]


def reference(data: bytes, crc: int = 0) -> int:
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize(("data", "expected"), VECTORS)
def test_known_vectors(data: bytes, expected: int) -> None:
    assert _native.crc32c(data) == expected


@given(st.binary(max_size=600), st.integers(0, 2**32 - 1))
def test_equals_the_definition(data: bytes, value: int) -> None:
    assert _native.crc32c(data, value) == reference(data, value)


@given(st.binary(max_size=200), st.binary(max_size=5000))
def test_continues_from_the_data_before(front: bytes, back: bytes) -> None:
    assert _native.crc32c(back, _native.crc32c(front)) == _native.crc32c(front + back)
    assert _native.crc32c(data=back, value=_native.crc32c(data=front)) == _native.crc32c(
        front + back
    )


@given(st.binary(max_size=64), st.integers(0, 300_000), st.integers(0, 2**32 - 1))
def test_equals_google_crc32c(data: bytes, length: int, value: int) -> None:
    google_crc32c = pytest.importorskip("google_crc32c")
    data = (data * (length // len(data) + 1))[:length] if data else data
    assert _native.crc32c(data) == google_crc32c.value(data)
    assert _native.crc32c(data, value) == google_crc32c.extend(value, data)


def test_masked_as_a_tfrecord_stores_it() -> None:
    data = b"123456789"
    rotated = (0xE3069283 >> 15) | (0xE3069283 << 17) & 0xFFFFFFFF
    assert _native.masked_crc32c(data) == (rotated + 0xA282EAD8) & 0xFFFFFFFF
    assert _native.masked_crc32c(b"") == 0xA282EAD8
    # The length's CRC in a header that TensorFlow wrote, before 257 payload bytes.
    assert _native.masked_crc32c(struct.pack("<Q", 257)) == 0x694E4507


PAYLOAD = bytes(range(256)) * 5


@pytest.mark.parametrize(
    "wrap",
    [
        bytes,
        bytearray,
        memoryview,
        lambda data: memoryview(data).cast("I"),
        lambda data: memoryview(b"front" + data + b"back")[5:-4],
        lambda data: array.array("H", data),
        lambda data: np.frombuffer(data, np.uint8),
        lambda data: np.frombuffer(data, np.float32).reshape(4, 2, -1),
        lambda data: np.frombuffer(data, "datetime64[s]"),
    ],
)
def test_takes_any_contiguous_buffer(wrap: Callable[[bytes], bytes]) -> None:
    assert _native.crc32c(wrap(PAYLOAD)) == reference(PAYLOAD)
    assert _native.masked_crc32c(wrap(PAYLOAD)) == _native.masked_crc32c(PAYLOAD)


@pytest.mark.parametrize(
    "empty", [b"", bytearray(), np.empty(0), np.empty((3, 0)), memoryview(b"")]
)
def test_takes_empty_buffers(empty: bytes) -> None:
    assert _native.crc32c(empty) == 0
    assert _native.crc32c(empty, 123) == 123


@pytest.mark.parametrize(
    "strided",
    [
        memoryview(PAYLOAD)[::2],
        memoryview(PAYLOAD)[::-1],
        np.zeros((4, 4))[:, 1:],
        np.zeros((4, 4), order="F")[:, :2],
    ],
)
def test_strided_memory_is_an_error(strided: memoryview) -> None:
    with pytest.raises(ValueError, match=r"not contiguous.*ascontiguousarray"):
        _native.crc32c(strided)
    with pytest.raises(ValueError, match="not contiguous"):
        _native.masked_crc32c(strided)


@pytest.mark.parametrize("data", ["text", 7, None, [1, 2], object()])
def test_what_has_no_bytes_is_a_type_error(data: bytes) -> None:
    with pytest.raises(TypeError, match=f"bytes-like.*{type(data).__name__}"):
        _native.crc32c(data)
    with pytest.raises(TypeError, match="bytes-like"):
        _native.masked_crc32c(data)


def test_a_released_memoryview_says_so() -> None:
    view = memoryview(b"gone")
    view.release()
    with pytest.raises(ValueError, match="released"):
        _native.crc32c(view)


@pytest.mark.parametrize("value", [-1, 2**32, 2**64, -(2**70)])
def test_a_value_that_is_no_crc_is_an_error(value: int) -> None:
    with pytest.raises(ValueError, match=rf"below 2\*\*32, not {value}"):
        _native.crc32c(b"data", value)


@pytest.mark.parametrize("value", [1.0, "1", None])
def test_a_value_that_is_no_integer_is_a_type_error(value: int) -> None:
    with pytest.raises(TypeError, match="integer"):
        _native.crc32c(b"data", value)


def test_a_value_may_be_any_integer_type() -> None:
    assert _native.crc32c(b"data", np.uint32(77)) == _native.crc32c(b"data", 77)
    assert _native.crc32c(b"data", np.int64(2**32 - 1)) == _native.crc32c(b"data", 2**32 - 1)


def test_releases_every_buffer() -> None:
    data = bytearray(100_000)
    _native.crc32c(data)
    _native.masked_crc32c(data)
    with pytest.raises(ValueError, match="below"):
        _native.crc32c(data, -1)
    data.append(0)  # BufferError while anything still holds it
    strided: Any = np.zeros((10, 10))
    with pytest.raises(ValueError, match="not contiguous"):
        _native.crc32c(strided[:, 1:])
    strided.resize((20, 10))  # ValueError while anything still refers to it


def test_large_data_leaves_other_threads_running() -> None:
    data = bytes(64 << 20)
    expected = _native.crc32c(data)
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda: results.append(_native.crc32c(data))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4
