#include "core/example/number_counts.h"

#include <bit>
#include <cmath>
#include <type_traits>
#include <utility>

#include "core/base/error.h"

namespace tfrfast {

NumberCounts::NumberCounts(unsigned bits, unsigned pass,
                           std::vector<std::vector<std::uint64_t>> prefixes)
    : bits_(bits), pass_(pass), prefixes_(std::move(prefixes)) {
  if ((bits != 8 && bits != 16) || prefixes_.empty() || pass >= 8) {
    throw Error(ErrorKind::invalid,
                "Numbers are counted by 8 or 16 bits, at one position or more.");
  }
  for (const std::vector<std::uint64_t>& each : prefixes_) {
    first_tables_.push_back(tables_);
    tables_ += each.size();
  }
  counts_.resize(tables_ << bits_);
}

std::uint64_t NumberCounts::key_of(float value) noexcept {
  const auto number = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kSign = std::uint32_t{1} << 31;
  return (number & kSign) != 0 ? ~number : number | kSign;
}

std::uint64_t NumberCounts::key_of(std::int64_t value) noexcept {
  return static_cast<std::uint64_t>(value) ^ std::uint64_t{1} << 63;
}

template <class Number>
void NumberCounts::add_all(std::span<const Number> values) {
  constexpr unsigned kKeyBits = 8 * sizeof(Number);
  if (bits_ * (pass_ + 1) > kKeyBits) {
    throw Error(ErrorKind::invalid, "There is no further pass over numbers of this type.");
  }
  const unsigned shift = kKeyBits - bits_ * (pass_ + 1);
  const std::uint64_t mask = (std::uint64_t{1} << bits_) - 1;
  std::size_t position = 0;
  for (const Number value : values) {
    const std::size_t here = position;
    if (++position == prefixes_.size()) position = 0;
    if constexpr (std::is_same_v<Number, float>) {
      if (std::isnan(value)) continue;
    }
    const std::uint64_t key = key_of(value) >> shift;
    const std::uint64_t prefix = pass_ == 0 ? 0 : key >> bits_;
    std::uint64_t* table = counts_.data() + (first_tables_[here] << bits_);
    for (const std::uint64_t each : prefixes_[here]) {
      if (each == prefix) {
        ++table[key & mask];
        break;
      }
      table += mask + 1;
    }
  }
}

void NumberCounts::add(std::span<const float> values) {
  add_all(values);
}

void NumberCounts::add(std::span<const std::int64_t> values) {
  add_all(values);
}

}  // namespace tfrfast
