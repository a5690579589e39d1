// Counts numbers by their leading bits, so that a few passes find exact quantiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tfrfast {

// A number's key is an unsigned integer of 32 bits (float32) or 64 bits (int64) with the same
// order. The first pass counts keys by their leading bits; each further pass counts the next bits
// of the keys that begin with chosen prefixes. NaN is left out. One thread at a time.
class NumberCounts {
 public:
  // Counts `bits` bits, 8 or 16, after the first `pass * bits`. `prefixes` has the chosen prefixes
  // of each position of a row; in the first pass that is 0 alone. Throws Error(invalid).
  NumberCounts(unsigned bits, unsigned pass, std::vector<std::vector<std::uint64_t>> prefixes);

  // Whole rows, end to end. Throws Error(invalid) after the last pass of this type.
  void add(std::span<const float> values);
  void add(std::span<const std::int64_t> values);

  // For each position and each prefix of it, 2^bits counts.
  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  std::size_t tables() const noexcept { return tables_; }
  unsigned bits() const noexcept { return bits_; }

  static std::uint64_t key_of(float value) noexcept;
  static std::uint64_t key_of(std::int64_t value) noexcept;

 private:
  template <class Number>
  void add_all(std::span<const Number> values);

  unsigned bits_;
  unsigned pass_;
  std::vector<std::vector<std::uint64_t>> prefixes_;
  std::vector<std::size_t> first_tables_;  // by position
  std::size_t tables_ = 0;
  std::vector<std::uint64_t> counts_;
};

}  // namespace tfrfast
