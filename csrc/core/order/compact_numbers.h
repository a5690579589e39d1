// Record numbers, in 4 bytes each if all are below 2^32.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tfrfast {

class CompactNumbers {
 public:
  CompactNumbers() = default;
  // Zeros, for numbers below `limit`.
  CompactNumbers(std::size_t count, std::int64_t limit) {
    if (limit <= std::int64_t{1} << 32) {
      narrow_.resize(count);
    } else {
      wide_.resize(count);
    }
  }

  std::size_t size() const noexcept { return std::max(narrow_.size(), wide_.size()); }
  std::int64_t operator[](std::size_t i) const noexcept {
    return wide_.empty() ? std::int64_t{narrow_[i]} : wide_[i];
  }
  void set(std::size_t i, std::int64_t number) noexcept {
    if (wide_.empty()) {
      narrow_[i] = static_cast<std::uint32_t>(number);
    } else {
      wide_[i] = number;
    }
  }

  // The places [first, last) of `number` among the ascending numbers at [begin, end).
  std::pair<std::size_t, std::size_t> equal_range(std::size_t begin, std::size_t end,
                                                  std::int64_t number) const noexcept {
    const auto first_from = [&](std::int64_t least) {
      std::size_t low = begin, high = end;
      while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if ((*this)[middle] < least) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return low;
    };
    return {first_from(number), first_from(number + 1)};
  }

 private:
  std::vector<std::uint32_t> narrow_;
  std::vector<std::int64_t> wide_;
};

}  // namespace tfrfast
