// Arithmetic modulo the Castagnoli polynomial P, for the constants of the kernels.
//
// CRCs are bit-reflected: bit 31 - i of a 32-bit register holds the coefficient of x^i, and bit
// 63 - i that of a 64-bit word. Three facts carry every kernel that splits its input:
//
// 1. The CRC instruction computes step(crc, word) = (crc * x^32 + word) * x^32 mod P. So a register
//    may be XORed into the first bytes of the data after it, and registers XOR like data.
// 2. Appending n bytes to data multiplies the register by x^(8n). So pieces may be processed
//    separately, multiplied by the power of their distance from the end, and XORed together.
// 3. A carry-less product of reflected numbers comes out one bit low: the 64-bit word that holds
//    the product of two 32-bit numbers a and b means a * b * x. Constants are therefore powers
//    one smaller than the distance asks, and smaller by another 32 where step() still multiplies
//    the result by x^32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tfrfast::crc32c_detail {

inline constexpr std::uint32_t kPolynomial = 0x82f63b78;  // P without x^32, reflected
inline constexpr std::uint32_t kOne = 0x80000000;         // x^0

// The powers of x repeat after this many steps: P is x + 1 times a primitive polynomial of
// degree 31.
inline constexpr std::int64_t kOrderOfX = (std::int64_t{1} << 31) - 1;

constexpr std::uint32_t times_x(std::uint32_t a) noexcept {
  return (a >> 1) ^ ((a & 1) != 0 ? kPolynomial : 0);
}

constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (std::uint32_t coefficient = kOne; coefficient != 0; coefficient >>= 1) {
    if ((a & coefficient) != 0) product ^= b;
    b = times_x(b);
  }
  return product;
}

// Returns x^exponent mod P. The exponent may be negative, because P has a constant term.
constexpr std::uint32_t power_of_x(std::int64_t exponent) noexcept {
  exponent = (exponent % kOrderOfX + kOrderOfX) % kOrderOfX;
  std::uint32_t power = kOne;
  for (std::uint32_t square = kOne >> 1; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) power = multiply(power, square);
    square = multiply(square, square);
  }
  return power;
}
static_assert(power_of_x(kOrderOfX - 1) == power_of_x(-1) && times_x(power_of_x(-1)) == kOne);

// x^first, x^(first + step), x^(first + 2 step), ...
template <std::size_t kCount>
constexpr std::array<std::uint32_t, kCount> powers_of_x(std::int64_t first,
                                                        std::int64_t step) noexcept {
  std::array<std::uint32_t, kCount> powers{};
  const std::uint32_t factor = power_of_x(step);
  std::uint32_t power = power_of_x(first);
  for (std::uint32_t& entry : powers) {
    entry = power;
    power = multiply(power, factor);
  }
  return powers;
}

}  // namespace tfrfast::crc32c_detail
