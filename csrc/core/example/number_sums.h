// Exact sums of numbers and of their squares: the order of addition does not matter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tfrfast {

// A sum of integers, in units of 1, of 2^-149 (floats) or of 2^-298 (squares of floats). Holds any
// sum of 2^63 numbers.
class ExactSum {
 public:
  static constexpr std::size_t kDigits = 20;
  static constexpr std::size_t kBytes = 4 * (kDigits + 1);

  // Adds or subtracts magnitude * 2^bit, which must be below 2^600. Call carry() at least once per
  // kMaxAdded additions.
  void add(unsigned __int128 magnitude, unsigned bit, bool is_negative) noexcept;
  static constexpr std::uint64_t kMaxAdded = std::uint64_t{1} << 28;
  void carry() noexcept;
  // Writes the sum in two's complement, little-endian. Call carry() before.
  void put(std::uint8_t* out) const noexcept;

 private:
  std::array<std::int64_t, kDigits> digits_{};  // digits of 32 bits, plus carries to come
};

// Sums of numbers of one kind, int64 or float32. One thread at a time.
struct NumberSums {
  std::uint64_t count = 0;                         // of all values
  std::uint64_t not_numbers = 0;                   // NaNs, left out below
  std::uint64_t infinite = 0, minus_infinite = 0;  // left out of the sums
  ExactSum sum, squares;
  // Over all numbers; 0 without numbers.
  std::int64_t min_int = 0, max_int = 0;
  float min_float = 0, max_float = 0;

  void add(std::int64_t value) noexcept;
  void add(float value) noexcept;

 private:
  void added() noexcept {
    if (++count % ExactSum::kMaxAdded != 0) return;
    sum.carry();
    squares.carry();
  }
};

}  // namespace tfrfast
