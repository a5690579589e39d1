// Normalises floats as they are decoded, position by position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tfrfast {

struct Scaling {
  // (value - shift) * factor + base, between `low` and `high`; with a factor of 0, `base` whatever
  // the value is. Computed in double precision and rounded once.
  struct Line {
    double shift = 0, factor = 1, base = 0, low = 0, high = 0;
  };
  std::vector<Line> lines;  // value i of a row takes line i % lines.size()
  // Steps of a window that stand beyond an end of the episode become zeros. The record's feature
  // "<name>/valid" has a 0 for each.
  bool keeps_padding = false;

  // `count` must be a multiple of the number of lines.
  void apply(float* values, std::size_t count) const noexcept;
};

// Throws Error(invalid) for numbers that make no sense.
void check(const Scaling& scaling);

}  // namespace tfrfast
