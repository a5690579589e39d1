// Resizes slowly, by weights that are not rounded: what every kernel must give, to a grey level.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/image/resize.h"

namespace tfrfast {

// Some source pixels of one result pixel, and the share of each.
struct ExactTaps {
  std::size_t first = 0;
  std::vector<double> shares;
};

// `start` and `extent` are the window along an axis of `source` pixels. By the filters' definition.
inline ExactTaps exact_taps(ResizeKind kind, double start, double extent, std::size_t source,
                            std::size_t result, std::size_t place) {
  const double step = extent / static_cast<double>(result);
  const double center = start + (static_cast<double>(place) + 0.5) * step;
  const double reach = std::max(step, 1.0) + 1;
  const double least = std::max(std::floor(start), std::floor(center - reach));
  const double most =
      std::min({std::ceil(start + extent), static_cast<double>(source), std::ceil(center + reach)});
  ExactTaps taps{static_cast<std::size_t>(least), {}};
  double sum = 0;
  for (double at = least; at < most; ++at) {
    const double share = kind == ResizeKind::area
                             ? std::min(at + 1, center + step / 2) - std::max(at, center - step / 2)
                             : 1 - std::abs(at + 0.5 - center) / std::max(step, 1.0);
    taps.shares.push_back(std::max(share, 0.0));
    sum += taps.shares.back();
  }
  for (double& share : taps.shares) share /= sum;
  return taps;
}

// The result of Resizer::resize(), as rows of pixels of spec.channels values.
inline std::vector<double> resize_exactly(const Pixels& pixels, const ImageSpec& spec,
                                          const Turn& turn, bool flipped) {
  const std::size_t height = turn.swaps_axes ? spec.width : spec.height;
  const std::size_t width = turn.swaps_axes ? spec.height : spec.width;
  const std::size_t channels = spec.channels, values = std::size_t{pixels.width} * pixels.channels;
  std::vector<ExactTaps> across;
  for (std::size_t x = 0; x < width; ++x) {
    across.push_back(
        exact_taps(spec.resize, pixels.window_left, pixels.window_width, pixels.width, width, x));
  }
  std::vector<double> stored, row(values);
  for (std::size_t y = 0; y < height; ++y) {
    const ExactTaps down =
        exact_taps(spec.resize, pixels.window_top, pixels.window_height, pixels.height, height, y);
    std::fill(row.begin(), row.end(), 0.0);
    for (std::size_t tap = 0; tap < down.shares.size(); ++tap) {
      const std::uint8_t* const source = pixels.data + (down.first + tap) * values;
      for (std::size_t i = 0; i < values; ++i) row[i] += down.shares[tap] * source[i];
    }
    for (const ExactTaps& taps : across) {
      for (std::size_t channel = 0; channel < channels; ++channel) {
        double sum = 0;
        for (std::size_t tap = 0; tap < taps.shares.size(); ++tap) {
          sum += taps.shares[tap] * row[(taps.first + tap) * pixels.channels + channel];
        }
        stored.push_back(sum);
      }
    }
  }
  std::vector<double> upright;
  for (std::size_t y = 0; y < spec.height; ++y) {
    for (std::size_t x = 0; x < spec.width; ++x) {
      const std::size_t row_at = turn.mirrors_rows ? spec.height - 1 - y : y;
      const std::size_t column_at = turn.mirrors_columns != flipped ? spec.width - 1 - x : x;
      const std::size_t at =
          turn.swaps_axes ? column_at * width + row_at : row_at * width + column_at;
      for (std::size_t i = 0; i < channels; ++i) upright.push_back(stored[at * channels + i]);
    }
  }
  return upright;
}

// The largest difference of a result of Resizer::resize() from resize_exactly().
inline double largest_error(const Pixels& pixels, const ImageSpec& spec, const Turn& turn,
                            bool flipped, const std::vector<std::uint8_t>& result) {
  const std::vector<double> exact = resize_exactly(pixels, spec, turn, flipped);
  const auto* const floats = reinterpret_cast<const float*>(result.data());
  const std::size_t count = std::size_t{spec.height} * spec.width;
  double error = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const std::size_t pixel = i / spec.channels, channel = i % spec.channels;
    const std::size_t at = spec.channels_first ? channel * count + pixel : i;
    error = std::max(error, spec.is_float ? std::abs(double{floats[at]} - exact[i])
                                          : std::abs(result[at] - std::round(exact[i])));
  }
  return error;
}

}  // namespace tfrfast
