// Reads protobuf wire bytes exactly as leniently as TensorFlow's fast Example parser: a length is
// the low 32 bits of its varint, and a message whose length reaches past the message around it ends
// where that ends. A stricter reader would refuse records that TensorFlow accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/bytes.h"

namespace tfrfast {

// One serialized message, or a part of one, in memory that its reader does not own.
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
inline constexpr std::size_t kLongestMessage = std::size_t{1} << 31;  // protobuf takes less

// The eight bytes at `bytes`. Those at or after `readable_end` are undefined. The eight bytes
// before `readable_end` must be readable.
inline std::uint64_t load64_before(const std::uint8_t* bytes,
                                   const std::uint8_t* readable_end) noexcept {
  const std::ptrdiff_t missing = 8 - (readable_end - bytes);
  if (missing <= 0) return load_little_endian<std::uint64_t>(bytes);
  return load_little_endian<std::uint64_t>(bytes - missing) >> (8 * missing);
}

// A position in wire bytes. If the bytes do not hold what is asked for, every `read_` and `skip_`
// returns false, and the position is undefined. None reads outside the bytes.
class WireReader {
 public:
  explicit WireReader(WireBytes bytes) noexcept
      : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool at_end() const noexcept { return next_ == end_; }
  std::size_t bytes_left() const noexcept { return static_cast<std::size_t>(end_ - next_); }
  const std::uint8_t* position() const noexcept { return next_; }
  WireBytes rest() const noexcept { return {next_, bytes_left()}; }
  bool next_is(std::uint8_t tag) const noexcept { return next_ != end_ && *next_ == tag; }

  // Takes a one-byte tag if it is next. A longer encoding of the same tag does not count.
  bool take(std::uint8_t tag) noexcept {
    if (!next_is(tag)) return false;
    ++next_;
    return true;
  }

  // Bits past the 64th are dropped; a varint of more than ten bytes is refused.
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

  // Passes over the next `length` bytes, or all that are left, and returns them as a message.
  WireBytes enter(std::uint32_t length) noexcept {
    const std::size_t bytes = length < bytes_left() ? length : bytes_left();
    const WireBytes message{next_, bytes};
    next_ += bytes;
    return message;
  }

  // Reads a length and that many bytes, all of which must be there.
  bool read_bytes(WireBytes& bytes) noexcept {
    std::uint32_t length;
    if (!read_length(length) || length > bytes_left()) return false;
    bytes = {next_, length};
    next_ += length;
    return true;
  }

  // Passes over any field. Refuses groups. Like TensorFlow, skips to the end if a length reaches
  // past it, and skips nothing if a length is 2 GiB or more.
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
