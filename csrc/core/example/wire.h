// Protobuf wire bytes. Reads them exactly as leniently as TensorFlow's fast Example parser. A
// length is the low 32 bits of its varint. A message that claims to reach past its enclosing
// message ends where the enclosing message ends. A stricter reader would refuse records that
// TensorFlow accepts.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/bytes.h"

namespace tfrfast {

// A serialized message, or a part of a message. The reader does not own the memory.
using WireBytes = std::span<const std::uint8_t>;

inline constexpr std::uint8_t varint_tag(unsigned field) noexcept {
  return static_cast<std::uint8_t>(field << 3);
}
inline constexpr std::uint8_t bytes_tag(unsigned field) noexcept {
  return static_cast<std::uint8_t>(field << 3 | 2);
}
inline constexpr std::uint8_t fixed32_tag(unsigned field) noexcept {
  return static_cast<std::uint8_t>(field << 3 | 5);
}

inline constexpr std::size_t kMaxVarintBytes = 10;
inline constexpr std::size_t kLongestMessage = std::size_t{1} << 31;  // protobuf requires less

// The bytes that a varint takes: its bits over 7, rounded up, without a division.
constexpr std::size_t varint_bytes(std::uint64_t value) noexcept {
  return (static_cast<unsigned>(std::bit_width(value | 1)) * 9 + 64) / 64;
}

inline std::uint8_t* put_varint(std::uint8_t* out, std::uint64_t value) noexcept {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<std::uint8_t>(value | 0x80);
  *out++ = static_cast<std::uint8_t>(value);
  return out;
}

// The size of a field of `bytes` bytes, with its tag and its length. Most fields are short.
constexpr std::uint64_t field_bytes(std::uint64_t bytes) noexcept {
  return 1 + (bytes < 0x80 ? 1 : varint_bytes(bytes)) + bytes;
}

// Writes the tag and the length of such a field.
inline std::uint8_t* put_field_head(std::uint8_t* out, unsigned field,
                                    std::uint64_t bytes) noexcept {
  *out++ = bytes_tag(field);
  return put_varint(out, bytes);
}

// Loads the eight bytes at `bytes`. Bytes at or after `readable_end` are undefined. The eight bytes
// before `readable_end` must be readable.
inline std::uint64_t load64_before(const std::uint8_t* bytes,
                                   const std::uint8_t* readable_end) noexcept {
  const std::ptrdiff_t missing = 8 - (readable_end - bytes);
  if (missing <= 0) return load_little_endian<std::uint64_t>(bytes);
  return load_little_endian<std::uint64_t>(bytes - missing) >> (8 * missing);
}

// A position in wire bytes. Every `read_` and `skip_` returns false if the bytes do not fit, and
// leaves the position undefined. No function reads outside the bytes.
class WireReader {
 public:
  explicit WireReader(WireBytes bytes) noexcept
      : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool at_end() const noexcept { return next_ == end_; }
  std::size_t bytes_left() const noexcept { return static_cast<std::size_t>(end_ - next_); }
  const std::uint8_t* position() const noexcept { return next_; }
  WireBytes rest() const noexcept { return {next_, bytes_left()}; }
  bool next_is(std::uint8_t tag) const noexcept { return next_ != end_ && *next_ == tag; }

  // Takes a one-byte tag if the tag comes next. Ignores longer encodings of the tag.
  bool take(std::uint8_t tag) noexcept {
    if (!next_is(tag)) return false;
    ++next_;
    return true;
  }

  // Drops bits past the 64th. Refuses a varint of more than ten bytes.
  bool read_varint(std::uint64_t& value) noexcept {
    std::uint64_t result = 0;
    for (unsigned shift = 0; shift < 7 * kMaxVarintBytes; shift += 7) {
      if (next_ == end_) return false;
      const std::uint8_t byte = *next_++;
      result |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        value = result;
        return true;
      }
    }
    return false;
  }

  bool read_length(std::uint32_t& length) noexcept {
    std::uint64_t value;
    if (!read_varint(value)) return false;
    length = static_cast<std::uint32_t>(value);
    return true;
  }

  bool read_fixed32(std::uint32_t& value) noexcept {
    if (bytes_left() < 4) return false;
    value = static_cast<std::uint32_t>(next_[0]) | static_cast<std::uint32_t>(next_[1]) << 8 |
            static_cast<std::uint32_t>(next_[2]) << 16 | static_cast<std::uint32_t>(next_[3]) << 24;
    next_ += 4;
    return true;
  }

  // Returns the next `length` bytes, or all bytes that are left, as a message, and moves past the
  // message.
  WireBytes enter(std::uint32_t length) noexcept {
    const std::size_t bytes = length < bytes_left() ? length : bytes_left();
    const WireBytes message{next_, bytes};
    next_ += bytes;
    return message;
  }

  // Reads a length and that many bytes. False unless all of the bytes are left.
  bool read_bytes(WireBytes& bytes) noexcept {
    std::uint32_t length;
    if (!read_length(length) || length > bytes_left()) return false;
    bytes = {next_, length};
    next_ += length;
    return true;
  }

  // Skips any field. Refuses groups. Like TensorFlow, skips to the end if a length reaches past the
  // end, and skips nothing after a length of 2 GiB or more.
  bool skip_field() noexcept {
    std::uint64_t tag, ignored;
    std::uint32_t length;
    if (!read_varint(tag)) return false;
    switch (tag & 7) {
      case 0:
        return read_varint(ignored);
      case 1:
        return skip_bytes(8);
      case 2:
        if (!read_length(length)) return false;
        if (length < 0x80000000u) enter(length);
        return true;
      case 5:
        return skip_bytes(4);
      default:
        return false;
    }
  }

 private:
  bool skip_bytes(std::size_t count) noexcept {
    if (bytes_left() < count) return false;
    next_ += count;
    return true;
  }

  const std::uint8_t* next_;
  const std::uint8_t* end_;
};

}  // namespace tfrfast
