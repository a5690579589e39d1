// Runs three chains of the CRC instruction at the same time. On every relevant CPU, the instruction
// takes three cycles and may start in each cycle, so three chains keep the CPU busy.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/crc32c/instructions.h"
#include "core/crc32c/polynomial.h"

namespace tfrfast::crc32c_detail {

inline constexpr std::size_t kMaxLaneWords = 256;
inline constexpr std::size_t kThreeWayBytes = 96;  // shorter data are as fast in one chain

// step() of product(register, kShift[w]) moves a register w words ahead. Entry w is x^(64w - 33),
// because product() and step() multiply by x^33.
inline constexpr auto kShift = powers_of_x<2 * kMaxLaneWords + 1>(-33, 64);

// Splits `count` >= 24 bytes into three adjacent lanes, as long as possible, plus a rest.
CRC32C_TARGET inline Register extend_three_lanes(const std::uint8_t*& bytes, std::size_t& count,
                                                 Register crc) noexcept {
  const std::size_t lane_words = std::min(count / 24, kMaxLaneWords);
  const std::size_t lane_bytes = 8 * lane_words;
  const std::uint8_t* const end = bytes + lane_bytes;
  Register first = crc, second = 0, third = 0;
  for (; bytes != end; bytes += 8) {
    first = step(first, load_little_endian<std::uint64_t>(bytes));
    second = step(second, load_little_endian<std::uint64_t>(bytes + lane_bytes));
    third = step(third, load_little_endian<std::uint64_t>(bytes + 2 * lane_bytes));
  }
  bytes += 2 * lane_bytes;
  count -= 3 * lane_bytes;
  const std::uint64_t moved =
      product(first, kShift[2 * lane_words]) ^ product(second, kShift[lane_words]);
  return third ^ step(0, moved);
}

// Registers are raw.
CRC32C_TARGET inline Register extend_three_way(const std::uint8_t* bytes, std::size_t count,
                                               Register crc) noexcept {
  while (count >= kThreeWayBytes) crc = extend_three_lanes(bytes, count, crc);
  return extend_serially(bytes, count, crc);
}

}  // namespace tfrfast::crc32c_detail
