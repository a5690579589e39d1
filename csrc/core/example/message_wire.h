// Reads protobuf wire bytes as strictly as protobuf's own parser does. core/example/wire.h is as
// lenient as TensorFlow's parser of Examples.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"
#include "core/example/wire.h"

namespace tfrfast {

inline constexpr unsigned kMaxMessageDepth = 100;  // messages and groups inside the record's

// Each function returns the position after what it read, or null if the bytes do not fit.

// Reads a varint of at most `Bytes` bytes and `Limit`. Drops bits past the 64th.
template <unsigned Bytes, std::uint64_t Limit>
inline const std::uint8_t* read_strict(const std::uint8_t* next, const std::uint8_t* end,
                                       std::uint64_t& value) noexcept {
  if (next == end) return nullptr;
  std::uint64_t result = *next++;
  if (result >= 0x80) [[unlikely]] {
    result &= 0x7f;
    for (unsigned shift = 7;; shift += 7) {
      if (shift == 7 * Bytes || next == end) return nullptr;
      const std::uint64_t byte = *next++;
      result |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    if (result > Limit) return nullptr;
  }
  value = result;
  return next;
}

inline const std::uint8_t* read_value(const std::uint8_t* next, const std::uint8_t* end,
                                      std::uint64_t& value) noexcept {
  return read_strict<10, ~std::uint64_t{0}>(next, end, value);
}

inline const std::uint8_t* read_tag(const std::uint8_t* next, const std::uint8_t* end,
                                    std::uint32_t& tag) noexcept {
  std::uint64_t value;
  next = read_strict<5, 0xffffffff>(next, end, value);
  if (next != nullptr) tag = static_cast<std::uint32_t>(value);
  return next;
}

// Reads a length, and returns the position of the bytes that have it.
inline const std::uint8_t* read_size(const std::uint8_t* next, const std::uint8_t* end,
                                     std::size_t& size) noexcept {
  std::uint64_t value;
  next = read_strict<5, 0x7fffffff>(next, end, value);
  if (next == nullptr || value > static_cast<std::size_t>(end - next)) return nullptr;
  size = static_cast<std::size_t>(value);
  return next;
}

inline const std::uint8_t* read_bits(unsigned bytes, const std::uint8_t* next,
                                     const std::uint8_t* end, std::uint64_t& value) noexcept {
  if (static_cast<std::size_t>(end - next) < bytes) return nullptr;
  value = bytes == 8 ? load_little_endian<std::uint64_t>(next)
                     : load_little_endian<std::uint32_t>(next);
  return next + bytes;
}

// Skips a field whose tag was read. `depth` is that of the message with the field. Groups are
// walked, and nothing else is looked into.
const std::uint8_t* skip_value(std::uint32_t tag, const std::uint8_t* next, const std::uint8_t* end,
                               unsigned depth) noexcept;

}  // namespace tfrfast
