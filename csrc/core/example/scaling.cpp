#include "core/example/scaling.h"

#include <cmath>

#include "core/base/error.h"

namespace tfrfast {

void Scaling::apply(float* values, std::size_t count) const noexcept {
  for (std::size_t first = 0; first < count; first += lines.size()) {
    for (const Line& line : lines) {
      double scaled = line.base;
      // NaN stays NaN.
      if (line.factor != 0) {
        scaled += (double{*values} - line.shift) * line.factor;
        if (scaled < line.low) scaled = line.low;
        if (scaled > line.high) scaled = line.high;
      }
      *values++ = static_cast<float>(scaled);
    }
  }
}

void check(const Scaling& scaling) {
  bool makes_sense = !scaling.lines.empty();
  for (const Scaling::Line& line : scaling.lines) {
    makes_sense = makes_sense && std::isfinite(line.shift) && std::isfinite(line.factor) &&
                  std::isfinite(line.base) && line.low <= line.high;
  }
  if (!makes_sense) {
    throw Error(ErrorKind::invalid, "Numbers are scaled by finite numbers, at least one of each.");
  }
}

}  // namespace tfrfast
