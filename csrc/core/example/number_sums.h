// Sums of numbers and of their squares, exact: the order in which they are added does not matter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tfrfast {

// A sum of integers times 2^-149 or 2^-298, which are the units of floats and of their squares, or
// of integers alone. Holds any sum of 2^63 of them.
class ExactSum {
 public:
  static constexpr std::size_t kDigits = 20;
  static constexpr std::size_t kBytes = 4 * (kDigits + 1);

  // Adds, or subtracts, magnitude * 2^bit, below 2^600. Call carry() at least every kMaxAdded.
  void add(unsigned __int128 magnitude, unsigned bit, bool is_negative) noexcept;
  static constexpr std::uint64_t kMaxAdded = std::uint64_t{1} << 28;
  void carry() noexcept;
  // A number in two's complement, little-endian. Call carry() before.
  void put(std::uint8_t* out) const noexcept;

 private:
  std::array<std::int64_t, kDigits> digits_{};  // of 32 bits, and what was not carried yet
};

// Of numbers of one kind: int64 or float32. One thread at a time.
struct NumberSums {
  std::uint64_t count = 0;                         // of all values
  std::uint64_t not_numbers = 0;                   // NaN, which is in nothing below
  std::uint64_t infinite = 0, minus_infinite = 0;  // which are not in the sums
  ExactSum sum, squares;
  // Of all numbers; zero if there are none.
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
