// Hashes contents of records. Not for adversaries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/bytes.h"

namespace tfrfast {

// Hashes words, one after the other.
class WordHash {
 public:
  explicit WordHash(std::uint64_t begin = 0) noexcept : hash_(fold(begin ^ kFirst, kThird)) {}
  void add(std::uint64_t word, std::uint64_t next) noexcept {
    hash_ = fold(word ^ kSecond, next ^ hash_) + hash_;  // a zero factor must not erase the hash
  }
  void add(std::uint64_t word) noexcept { add(word, kThird); }
  std::uint64_t finish() const noexcept { return fold(hash_ ^ kFirst, hash_ ^ kThird); }

 private:
  static constexpr std::uint64_t kFirst = 0x9e3779b97f4a7c15u;   // the golden ratio's fraction
  static constexpr std::uint64_t kSecond = 0xb7e151628aed2a6bu;  // the fraction of e
  static constexpr std::uint64_t kThird = 0x243f6a8885a308d3u;   // the fraction of pi

  // Both halves of the product depend on all bits of both factors.
  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  std::uint64_t hash_;
};

// The hash of a record. The values are frozen, because users store them.
inline std::uint64_t record_hash(std::span<const std::uint8_t> record) noexcept {
  const std::uint8_t* bytes = record.data();
  std::size_t left = record.size();
  WordHash hash(left);
  for (; left >= 16; left -= 16, bytes += 16) {
    hash.add(load_little_endian<std::uint64_t>(bytes),
             load_little_endian<std::uint64_t>(bytes + 8));
  }
  std::uint8_t tail[16] = {};
  if (left > 0) std::memcpy(tail, bytes, left);
  hash.add(load_little_endian<std::uint64_t>(tail), load_little_endian<std::uint64_t>(tail + 8));
  return hash.finish();
}

}  // namespace tfrfast
