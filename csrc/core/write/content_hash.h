// Hashes a multiset of records, independent of their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/bytes.h"

namespace tfrfast {

// The hash of a record. Not for adversaries. The values are frozen, because users store them.
inline std::uint64_t record_hash(std::span<const std::uint8_t> record) noexcept {
  constexpr std::uint64_t kFirst = 0x9e3779b97f4a7c15u;   // the golden ratio's fraction
  constexpr std::uint64_t kSecond = 0xb7e151628aed2a6bu;  // the fraction of e
  constexpr std::uint64_t kThird = 0x243f6a8885a308d3u;   // the fraction of pi
  // Both halves of the product depend on all bits of both factors.
  const auto fold = [](std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  const std::uint8_t* bytes = record.data();
  std::size_t left = record.size();
  std::uint64_t hash = fold(left ^ kFirst, kThird);
  for (; left >= 16; left -= 16, bytes += 16) {
    hash = fold(load_little_endian<std::uint64_t>(bytes) ^ kSecond,
                load_little_endian<std::uint64_t>(bytes + 8) ^ hash) +
           hash;  // a zero factor must not erase the hash so far
  }
  std::uint8_t tail[16] = {};
  if (left > 0) std::memcpy(tail, bytes, left);
  hash = fold(load_little_endian<std::uint64_t>(tail) ^ kSecond,
              load_little_endian<std::uint64_t>(tail + 8) ^ hash) +
         hash;
  return fold(hash ^ kFirst, hash ^ kThird);
}

struct RecordTotals {
  std::uint64_t record_count = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t content_hash = 0;  // the sum of all record hashes, modulo 2^64

  void add(std::span<const std::uint8_t> record) noexcept {
    ++record_count;
    payload_bytes += record.size();
    content_hash += record_hash(record);
  }
  friend bool operator==(const RecordTotals&, const RecordTotals&) = default;
};

}  // namespace tfrfast
