// The walk of a shard, as simple as possible: no windows, no shortcuts, a CRC bit by bit.
#pragma once

#include <cstdint>
#include <vector>

namespace reference {

using Bytes = std::vector<std::uint8_t>;

inline std::uint64_t number_at(const Bytes& bytes, std::size_t at, std::size_t width) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < width; ++i) number |= std::uint64_t{bytes[at + i]} << (8 * i);
  return number;
}

inline std::uint32_t masked_crc(const Bytes& bytes, std::size_t at, std::uint64_t count) {
  std::uint32_t crc = ~0u;
  for (std::size_t i = at; i < at + count; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

inline bool header_holds(const Bytes& bytes, std::size_t at) {
  return bytes.size() - at >= 12 && masked_crc(bytes, at, 8) == number_at(bytes, at + 8, 4);
}

inline bool frame_fits(const Bytes& bytes, std::size_t at) {
  return bytes.size() - at >= 16 && number_at(bytes, at, 8) <= bytes.size() - at - 16;
}

inline bool payload_holds(const Bytes& bytes, std::size_t at) {
  const std::uint64_t count = number_at(bytes, at, 8);
  return masked_crc(bytes, at + 12, count) == number_at(bytes, at + 12 + count, 4);
}

struct Damage {
  int kind;  // 1 bad header, 2 torn header, 3 torn payload
  std::uint64_t begin, end, records_before, records_lost;
};

struct Walk {
  std::vector<std::uint64_t> offsets;  // of good frames, and the end of the last
  std::vector<Damage> damage;
};

inline Walk walk(const Bytes& bytes) {
  Walk found;
  std::uint64_t good_end = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::uint64_t before = found.offsets.size();
    if (bytes.size() - at < 12) {
      found.damage.push_back({2, at, bytes.size(), before, 1});
      break;
    }
    if (!header_holds(bytes, at)) {
      std::size_t next = at + 1;
      for (; next < bytes.size(); ++next) {
        if (!frame_fits(bytes, next) || !header_holds(bytes, next)) continue;
        const std::size_t behind = next + 16 + number_at(bytes, next, 8);
        if (header_holds(bytes, behind) || payload_holds(bytes, next)) break;
      }
      const bool one = next - at >= 16 && number_at(bytes, at, 8) == next - at - 16;
      found.damage.push_back({1, at, next, before, one ? 1u : 0u});
      at = next;
      continue;
    }
    if (!frame_fits(bytes, at)) {
      found.damage.push_back({3, at, bytes.size(), before, 1});
      break;
    }
    found.offsets.push_back(at);
    at += 16 + number_at(bytes, at, 8);
    good_end = at;
  }
  found.offsets.push_back(good_end);
  return found;
}

}  // namespace reference
