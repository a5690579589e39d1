// Little-endian integers in unaligned bytes, the form of TFRecord frames and index files.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace tfrfast {

static_assert(std::endian::native == std::endian::little,
              "integers, floats and tables are read and written as they lie");

template <class Integer>
inline Integer load_little_endian(const std::uint8_t* bytes) noexcept {
  Integer value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class Integer>
inline void store_little_endian(std::uint8_t* bytes, Integer value) noexcept {
  std::memcpy(bytes, &value, sizeof value);
}

// Returns the first nonzero byte before `end`, or `end`.
inline const std::uint8_t* skip_zeros(const std::uint8_t* bytes, const std::uint8_t* end) noexcept {
  const auto word = [&](int number) {
    return load_little_endian<std::uint64_t>(bytes + number * sizeof(std::uint64_t));
  };
  while (end - bytes >= 32 && (word(0) | word(1) | word(2) | word(3)) == 0) bytes += 32;
  while (bytes != end && *bytes == 0) ++bytes;
  return bytes;
}

}  // namespace tfrfast
