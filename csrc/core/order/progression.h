// An arithmetic progression of numbers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tfrfast {

// The `count` numbers first, first + stride, ... The stride is at least 1, unless `count` is 0.
struct Progression {
  std::int64_t first = 0;
  std::int64_t stride = 1;
  std::int64_t count = 0;

  bool operator==(const Progression&) const = default;
  std::int64_t at(std::int64_t position) const noexcept { return first + stride * position; }
  bool has(std::int64_t value) const noexcept {
    return value >= first && (value - first) % stride == 0 && (value - first) / stride < count;
  }
  // Returns the numbers below `end`.
  Progression below(std::int64_t end) const noexcept {
    const std::int64_t there = first < end ? (end - first - 1) / stride + 1 : 0;
    return {first, stride, std::min(count, there)};
  }
};

}  // namespace tfrfast
