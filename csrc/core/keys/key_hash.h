// The hashes of keys. The values are frozen: key files hold them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/order/siphash.h"

namespace tfrfast {

// SipHash-2-4 of the bytes, under a key of zeros.
inline std::uint64_t hash_of_key(std::span<const std::uint8_t> key) noexcept {
  SipHash hash(SipKey{});
  std::size_t next = 0;
  std::uint64_t word;
  for (; key.size() - next >= sizeof word; next += sizeof word) {
    std::memcpy(&word, key.data() + next, sizeof word);
    hash.add(word);
  }
  word = 0;
  const std::size_t left = key.size() - next;
  if (left != 0) std::memcpy(&word, key.data() + next, left);
  return hash.finish(word, left);
}

// The hash of the number's eight little-endian bytes.
inline std::uint64_t hash_of_key(std::int64_t key) noexcept {
  return siphash(SipKey{}, {static_cast<std::uint64_t>(key)});
}

}  // namespace tfrfast
