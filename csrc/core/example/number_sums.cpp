#include "core/example/number_sums.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tfrfast {

void ExactSum::add(unsigned __int128 magnitude, unsigned bit, bool is_negative) noexcept {
  constexpr std::uint64_t kLow = ~std::uint32_t{0};
  std::size_t digit = bit / 32;
  const unsigned shift = bit % 32;
  // Add the lowest digit separately, so that no bit is shifted out at the top.
  const auto lowest =
      static_cast<std::int64_t>((static_cast<std::uint64_t>(magnitude) << shift) & kLow);
  digits_[digit] += is_negative ? -lowest : lowest;
  for (magnitude >>= 32 - shift; magnitude != 0; magnitude >>= 32) {
    const auto next = static_cast<std::int64_t>(static_cast<std::uint64_t>(magnitude) & kLow);
    digits_[++digit] += is_negative ? -next : next;
  }
}

void ExactSum::carry() noexcept {
  for (std::size_t i = 0; i + 1 < kDigits; ++i) {
    digits_[i + 1] += digits_[i] >> 32;
    digits_[i] &= ~std::uint32_t{0};
  }
}

void ExactSum::put(std::uint8_t* out) const noexcept {
  for (std::size_t i = 0; i + 1 < kDigits; ++i) std::memcpy(out + 4 * i, &digits_[i], 4);
  std::memcpy(out + 4 * (kDigits - 1), &digits_[kDigits - 1], 8);
}

void NumberSums::add(std::int64_t value) noexcept {
  if (count == 0) min_int = max_int = value;
  min_int = std::min(min_int, value);
  max_int = std::max(max_int, value);
  const std::uint64_t magnitude =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  sum.add(magnitude, 0, value < 0);
  squares.add(static_cast<unsigned __int128>(magnitude) * magnitude, 0, false);
  added();
}

void NumberSums::add(float value) noexcept {
  if (std::isnan(value)) {
    ++not_numbers;
    added();
    return;
  }
  if (count == not_numbers) min_float = max_float = value;
  min_float = std::min(min_float, value);
  max_float = std::max(max_float, value);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_negative = bits >> 31 != 0;
  const unsigned exponent = bits >> 23 & 0xff;
  if (exponent == 0xff) {
    ++(is_negative ? minus_infinite : infinite);
  } else {
    // A subnormal number, below 2^-126, has the exponent of 2^-126 and no implicit leading bit.
    const std::uint64_t fraction = (bits & 0x7fffff) | (exponent != 0 ? 0x800000 : 0);
    const unsigned bit = exponent != 0 ? exponent - 1 : 0;
    sum.add(fraction, bit, is_negative);
    squares.add(fraction * fraction, 2 * bit, false);
  }
  added();
}

}  // namespace tfrfast
