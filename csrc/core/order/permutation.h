// A keyed bijection of [0, size), evaluated position by position: an exact shuffle without memory.
// The results are frozen: a checkpoint resumes into the same order years later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>

#include "core/order/feistel.h"

namespace tfrfast {

inline constexpr std::int64_t kMaxPermutationSize = kMaxGridSize;

// The use of a key. No two uses of one (seed, epoch) share a key.
enum class KeyPurpose : std::uint32_t {
  permutation = 0,
  blocks = 1,
  windows = 2,
  periods = 3,  // of a mixture
  sources = 4,
  draws = 5,  // by weight
  batches = 6,
  buckets = 7,      // of lengths
  later_steps = 8,  // of episodes
  files = 9,        // of an interleave
  packs = 10,
  shapes = 11,   // of packs
  places = 12,   // of the pieces of one length
  rows = 13,     // the pieces of a pack
  choices = 14,  // between features of a step
};
SipKey derive_key(KeyPurpose purpose, std::uint64_t seed, std::uint64_t epoch) noexcept;

// Immutable. About 200 bytes, made in well under a microsecond. Any number of threads.
class Permutation {
 public:
  // Throws Error(invalid) unless 0 <= size <= kMaxPermutationSize.
  Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t epoch);
  // Requires a checked size and a derived key.
  Permutation(std::int64_t size, const SipKey& key) noexcept;

  std::int64_t size() const noexcept { return size_; }

  // Values must be in [0, size), and results are in [0, size). `in` and `out` may be the same
  // array.
  std::int64_t at(std::int64_t position) const noexcept;
  std::int64_t inverse(std::int64_t record) const noexcept;
  void evaluate(const std::int64_t* positions, std::size_t count, std::int64_t* out) const noexcept;
  // Evaluates the positions first, first + 1, ...
  void evaluate_range(std::int64_t first, std::size_t count, std::int64_t* out) const noexcept {
    std::iota(out, out + count, first);
    evaluate(out, count, out);
  }

 private:
  std::int64_t size_;
  Grid grid_;
  RoundKeys keys_;
};

}  // namespace tfrfast
