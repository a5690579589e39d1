// SipHash-2-4 of 64-bit words, which makes keys from seeds. The function and its test vectors are
// published, so any language can reimplement every order from docs/permutation.md.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>

namespace tfrfast {

struct SipKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const SipKey&, const SipKey&) = default;
};

// SipHash-2-4 a word at a time. Equals the hash of the words' little-endian bytes.
class SipHash {
 public:
  explicit constexpr SipHash(const SipKey& key) noexcept
      : v0_(key.low ^ 0x736f6d6570736575u),
        v1_(key.high ^ 0x646f72616e646f6du),
        v2_(key.low ^ 0x6c7967656e657261u),
        v3_(key.high ^ 0x7465646279746573u) {}

  constexpr void add(std::uint64_t word) noexcept {
    compress(word);
    bytes_ += 8;
  }

  // `tail` holds the bytes after the last whole word, fewer than eight.
  constexpr std::uint64_t finish(std::uint64_t tail = 0, std::uint64_t tail_bytes = 0) noexcept {
    compress((bytes_ + tail_bytes) << 56 | tail);
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  constexpr void compress(std::uint64_t word) noexcept {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
  }

  constexpr void round() noexcept {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v1_;
    v0_ += v3_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t bytes_ = 0;
};

constexpr std::uint64_t siphash(const SipKey& key,
                                std::initializer_list<std::uint64_t> words) noexcept {
  SipHash hash(key);
  for (const std::uint64_t word : words) hash.add(word);
  return hash.finish();
}

// The hash of all numbers under a key of zeros.
template <class Numbers>
constexpr std::uint64_t siphash_of(const Numbers& numbers) noexcept {
  SipHash hash(SipKey{});
  for (const auto number : numbers) hash.add(static_cast<std::uint64_t>(number));
  return hash.finish();
}

}  // namespace tfrfast
