"""What a byte string holds, told by its first bytes: a picture, sound, text, a tensor."""

from __future__ import annotations

import math
import struct
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from tfrfast.base.sizes import format_bytes
from tfrfast.base.wire import fields_of

__all__ = ["Contents", "StoredTensor", "contents_of", "tensor_of"]


class Contents(NamedTuple):
    """The contents of a byte string."""

    #: "picture", "sound", "video", "text", "tensor", "array", "compressed" or "bytes".
    kind: str
    #: Its form and size, such as "JPEG 640x480"; empty for text and for unknown bytes.
    form: str = ""
    #: The type under which every browser shows it; empty if browsers show no such thing.
    mime: str = ""

    def described(self, num_bytes: int) -> str:
        """Returns a text such as "JPEG 640x480, 82 KB"; empty for text and for unknown bytes."""
        return f"{self.form}, {format_bytes(num_bytes)}" if self.form else ""


def contents_of(value: bytes) -> Contents:
    """Returns what the bytes hold. The beginning decides, so the rest may be damaged."""
    for begins, tell in _BEGINNINGS:
        if value.startswith(begins) and (found := tell(value)) is not None:
            return found
    if (tensor := tensor_of(value)) is not None:
        return Contents("tensor", f"tensor {tensor}")
    return Contents("text") if _is_text(value) else Contents("bytes")


class StoredTensor(NamedTuple):
    """A tensor as `tf.io.serialize_tensor` stores it."""

    dtype: str
    shape: tuple[int, ...]
    #: The values of numbers, in the order of the machine that wrote them; else empty.
    content: bytes

    def __str__(self) -> str:
        return f"{self.dtype} [{', '.join(map(str, self.shape))}]"


def tensor_of(value: bytes) -> StoredTensor | None:
    """Returns the tensor that the bytes hold; None if they hold none."""
    dtype = 0
    shape: tuple[int, ...] = ()
    content = b""
    try:
        for count, (number, field) in enumerate(fields_of(value)):
            if count == _MOST_FIELDS:
                return None
            if number == 1 and isinstance(field, int):
                dtype = field
            elif number == 2 and isinstance(field, bytes):
                shape = _shape_of(field)
            elif number == 4 and isinstance(field, bytes):
                content = field
            elif not 3 <= number <= _LAST_TENSOR_FIELD:
                return None
    except ValueError:
        return None
    if dtype not in _TENSOR_TYPES:
        return None
    name, width = _TENSOR_TYPES[dtype]
    is_whole = not content or (width > 0 and len(content) == math.prod(shape) * width)
    return StoredTensor(name, shape, content) if is_whole else None


_LAST_TENSOR_FIELD = 17
_MAX_DIMENSIONS = 32
#: A tensor has few fields. A longer walk over other bytes would only take time.
_MOST_FIELDS = 64
_LONGEST_DIMENSION = 256
#: The names of TensorFlow's types and the bytes of a value; 0 where values have no fixed width.
_TENSOR_TYPES = {
    1: ("float32", 4),
    2: ("float64", 8),
    3: ("int32", 4),
    4: ("uint8", 1),
    5: ("int16", 2),
    6: ("int8", 1),
    7: ("string", 0),
    8: ("complex64", 8),
    9: ("int64", 8),
    10: ("bool", 1),
    14: ("bfloat16", 2),
    17: ("uint16", 2),
    18: ("complex128", 16),
    19: ("float16", 2),
    22: ("uint32", 4),
    23: ("uint64", 8),
}


def _shape_of(message: bytes) -> tuple[int, ...]:
    shape: list[int] = []
    for number, dimension in fields_of(message):
        if number != 2 or not isinstance(dimension, bytes) or len(shape) == _MAX_DIMENSIONS:
            raise ValueError("no shape of a tensor")
        if len(dimension) > _LONGEST_DIMENSION:
            raise ValueError("no dimension of a tensor")
        sizes = [size for field, size in fields_of(dimension) if field == 1]
        size = sizes[-1] if sizes else 0
        if not isinstance(size, int) or size >= 1 << 40:
            raise ValueError("no size of a tensor")
        shape.append(size)
    return tuple(shape)


_TEXT_LOOKED_AT = 4096


def _is_text(value: bytes) -> bool:
    beginning = value[:_TEXT_LOOKED_AT]
    try:
        text = beginning.decode()
    except UnicodeDecodeError as error:
        # The cut may divide a character.
        if len(beginning) == len(value) or error.start < len(beginning) - 3:
            return False
        text = beginning[: error.start].decode()
    return all(map(_is_of_text, text))


def _is_of_text(char: str) -> bool:
    """True for printable characters, for all kinds of spaces, and for the marks inside emoji."""
    return char.isprintable() or char.isspace() or unicodedata.category(char) == "Cf"


def _jpeg(value: bytes) -> Contents | None:
    at = 2
    while at + 9 <= len(value) and value[at] == 0xFF:
        marker = value[at + 1]
        if marker == 0xFF or 0xD0 <= marker <= 0xD8 or marker == 1:
            at += 1 if marker == 0xFF else 2
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", value, at + 5)
            return _picture("JPEG", (width, height), "image/jpeg")
        at += 2 + int.from_bytes(value[at + 2 : at + 4], "big")
    return Contents("picture", "JPEG", "image/jpeg")


def _png(value: bytes) -> Contents | None:
    if len(value) < 24:
        return Contents("picture", "PNG", "image/png")
    return _picture("PNG", struct.unpack_from(">II", value, 16), "image/png")


def _gif(value: bytes) -> Contents | None:
    if len(value) < 10 or value[4:6] not in (b"7a", b"9a"):
        return None
    return _picture("GIF", struct.unpack_from("<HH", value, 6), "image/gif")


def _bmp(value: bytes) -> Contents | None:
    if len(value) < 26 or value[6:10] != bytes(4) or value[14:18] != b"\x28\0\0\0":
        return None
    width, height = struct.unpack_from("<ii", value, 18)
    return _picture("BMP", (width, abs(height)), "image/bmp")


def _riff(value: bytes) -> Contents | None:
    form = value[8:12]
    if form == b"WAVE":
        return Contents("sound", _wave(value), "audio/wav")
    if form != b"WEBP":
        return None
    kind = value[12:16]
    if kind == b"VP8 " and len(value) >= 30:
        width, height = (each & 0x3FFF for each in struct.unpack_from("<HH", value, 26))
    elif kind == b"VP8L" and len(value) >= 25:
        (bits,) = struct.unpack_from("<I", value, 21)
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    elif kind == b"VP8X" and len(value) >= 30:
        width, height = (1 + int.from_bytes(value[at : at + 3], "little") for at in (24, 27))
    else:
        return Contents("picture", "WebP", "image/webp")
    return _picture("WebP", (width, height), "image/webp")


def _wave(value: bytes) -> str:
    if value[12:16] != b"fmt " or len(value) < 36:
        return "WAV"
    channels, rate, per_second = struct.unpack_from("<HII", value, 22)
    seconds = len(value) / per_second if per_second else 0
    return f"WAV {rate:,} Hz, {_channels(channels)}, {seconds:.1f} s"


def _channels(count: int) -> str:
    return {1: "mono", 2: "stereo"}.get(count, f"{count} channels")


def _picture(form: str, size: tuple[int, ...], mime: str) -> Contents:
    width, height = size
    return Contents("picture", f"{form} {width}x{height}", mime)


def _mp3(value: bytes) -> Contents | None:
    return Contents("sound", "MP3", "audio/mpeg") if value[3:4] < b"\x10" else None


#: What an ISO container holds, by its brand.
_BRANDS = {
    b"avif": Contents("picture", "AVIF", "image/avif"),
    b"avis": Contents("picture", "AVIF", "image/avif"),
    b"heic": Contents("picture", "HEIC"),
    b"mif1": Contents("picture", "HEIF"),
    b"M4A ": Contents("sound", "M4A", "audio/mp4"),
}


def _container(value: bytes) -> Contents | None:
    if value[4:8] != b"ftyp":
        return None
    return _BRANDS.get(value[8:12], Contents("video", "MP4", "video/mp4"))


def _as(kind: str, form: str, mime: str = "") -> Callable[[bytes], Contents]:
    return lambda value: Contents(kind, form, mime)


_BEGINNINGS: tuple[tuple[bytes, Callable[[bytes], Contents | None]], ...] = (
    (b"\xff\xd8\xff", _jpeg),
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"GIF8", _gif),
    (b"BM", _bmp),
    (b"RIFF", _riff),
    (b"II*\0", _as("picture", "TIFF")),
    (b"MM\0*", _as("picture", "TIFF")),
    (b"fLaC", _as("sound", "FLAC", "audio/flac")),
    (b"OggS", _as("sound", "Ogg", "audio/ogg")),
    (b"ID3", _mp3),
    (b"\0\0\0", _container),
    (b"\x93NUMPY", _as("array", "NumPy array")),
    (b"\x1f\x8b\x08", _as("compressed", "GZIP")),
    (b"\x28\xb5\x2f\xfd", _as("compressed", "Zstandard")),
    (b"PK\x03\x04", _as("compressed", "ZIP")),
    (b"%PDF-", _as("bytes", "PDF")),
)
