#include "core/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

namespace tfrfast {
namespace {

constexpr int kOne = 1 << kWeightBits;
// With more, rounded weights could make a result wrong by a grey level: on each axis by
// 255 * kMostTaps / 2 / kOne.
constexpr std::size_t kMostTaps = 48;

// The share of the source pixel `at` in a result pixel at `center` that covers `step` source
// pixels.
double share_of(ResizeKind kind, double at, double center, double step) noexcept {
  if (kind == ResizeKind::area) {
    return std::min(at + 1, center + step / 2) - std::max(at, center - step / 2);
  }
  return 1 - std::abs(at + 0.5 - center) / std::max(step, 1.0);
}

// Converts the shares of a part, at most kMostTaps, to weights, and returns their sum. The largest
// weight takes the rounding error.
double round_weights(std::span<const double> shares, std::int16_t* weights) noexcept {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  const double scale = kOne / sum;
  int left = kOne;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const int weight = static_cast<int>(shares[i] * scale + 0.5);
    weights[i] = static_cast<std::int16_t>(weight);
    left -= weight;
    if (shares[i] > shares[largest]) largest = i;
  }
  weights[largest] = static_cast<std::int16_t>(weights[largest] + left);
  return sum;
}

// `start` and `extent` are the window along an axis of `source` pixels.
void fill_axis(ResizeKind kind, double start, double extent, std::uint32_t source,
               std::uint32_t result, bool mirrored, ResizeAxis& axis) {
  const double step = extent / result;
  const double reach = kind == ResizeKind::area ? step / 2 : std::max(step, 1.0);
  const auto most = static_cast<std::size_t>(std::ceil(2 * reach)) + 1;
  axis.parts = (most + kMostTaps - 1) / kMostTaps;
  const std::size_t taps = (most + axis.parts - 1) / axis.parts;
  axis.taps = taps + taps % 2;
  axis.first.resize(result * axis.parts);
  axis.shares.resize(result * axis.parts);
  axis.weights.assign(result * axis.parts * axis.taps, 0);
  const auto lowest = static_cast<std::int64_t>(std::max(0.0, std::floor(start)));
  const auto highest = std::max(
      lowest,
      std::min<std::int64_t>(source - 1, static_cast<std::int64_t>(std::ceil(start + extent)) - 1));
  std::vector<double> shares;
  for (std::uint32_t i = 0; i < result; ++i) {
    const std::uint32_t place = mirrored ? result - 1 - i : i;
    const double center = start + (i + 0.5) * step;
    const auto first = std::clamp(static_cast<std::int64_t>(center - reach - 0.5), lowest, highest);
    shares.clear();
    std::int64_t begin = -1;
    for (std::int64_t at = first; at <= highest; ++at) {
      if (static_cast<double>(at) >= center + reach + 0.5) break;
      const double share = share_of(kind, static_cast<double>(at), center, step);
      if (share <= 0) {
        if (begin >= 0) break;
        continue;
      }
      if (begin < 0) begin = at;
      if (shares.size() < most) shares.push_back(share);
    }
    if (begin < 0) {
      begin = std::clamp(static_cast<std::int64_t>(center), lowest, highest);
      shares.assign(1, 1.0);
    }
    double all = 0;
    std::span<const double> rest = shares;
    const std::size_t end = (place + std::size_t{1}) * axis.parts;
    for (std::size_t part = end - axis.parts; part < end; ++part) {
      const auto some = rest.first(std::min(rest.size(), axis.taps));
      rest = rest.subspan(some.size());
      axis.first[part] = static_cast<std::uint32_t>(begin);
      axis.shares[part] =
          some.empty() ? 0 : round_weights(some, axis.weights.data() + part * axis.taps);
      all += axis.shares[part];
      if (!rest.empty()) begin += static_cast<std::int64_t>(some.size());
    }
    for (std::size_t part = end - axis.parts; part < end; ++part) axis.shares[part] /= all;
  }
}

void reserve(PooledBuffer& buffer, std::size_t bytes) {
  if (buffer.capacity() < bytes) buffer = PooledBuffer(bytes);
}

// Distances between values of the result, in values.
struct Strides {
  std::ptrdiff_t row = 0, column = 0, channel = 0;
};

template <class Value>
void store_row(const std::int32_t* sums, std::uint32_t count, std::uint32_t values,
               std::uint32_t channels, Value* out, const Strides& strides) noexcept {
  for (std::uint32_t i = 0; i < count; ++i, sums += values, out += strides.column) {
    for (std::uint32_t channel = 0; channel < channels; ++channel) {
      Value& value = out[channel * strides.channel];
      if constexpr (sizeof(Value) == 1) {
        value = static_cast<Value>((sums[channel] + (1 << (kSumBits - 1))) >> kSumBits);
      } else {
        value = static_cast<Value>(sums[channel]) * (Value{1} / (1 << kSumBits));
      }
    }
  }
}

// Joins the sums of parts, of `values` each, to sums of result pixels, in place.
void join_parts(const ResizeAxis& axis, std::size_t values, std::int32_t* sums) noexcept {
  const std::int32_t* part = sums;
  for (std::size_t i = 0; i < axis.shares.size(); i += axis.parts) {
    double joined[kColorChannels] = {};
    for (std::size_t j = i; j < i + axis.parts; ++j, part += values) {
      for (std::size_t k = 0; k < values; ++k) joined[k] += axis.shares[j] * part[k];
    }
    for (std::size_t k = 0; k < values; ++k) *sums++ = static_cast<std::int32_t>(joined[k] + 0.5);
  }
}

void mix_grey(const std::int16_t* row, const ResizeAxis& axis, std::int32_t* out) noexcept {
  const std::int16_t* weights = axis.weights.data();
  for (const std::uint32_t first : axis.first) {
    std::int32_t sum = 0;
    for (std::size_t tap = 0; tap < axis.taps; ++tap) sum += row[first + tap] * weights[tap];
    *out++ = sum;
    weights += axis.taps;
  }
}

}  // namespace

Turn turn_of(int exif_orientation) noexcept {
  const bool swaps_axes = exif_orientation > 4;
  // The last row comes first in 3, 4, 7 and 8, the last column in 2, 3, 6 and 7.
  return {swaps_axes, (exif_orientation - 1) % 4 >= 2, exif_orientation % 4 >= 2};
}

void Resizer::blend_row(const Pixels& pixels, std::size_t row) {
  const std::size_t row_bytes = std::size_t{pixels.width} * pixels.channels;
  const std::size_t values = std::size_t{column_count_} * pixels.channels;
  auto* const blended = blended_.as<std::int16_t>();
  const std::size_t parts = rows_.parts;
  if (parts > 1) joined_.assign(values, 0.5);
  for (std::size_t part = row * parts; part < (row + 1) * parts; ++part) {
    for (std::size_t tap = 0; tap < rows_.taps; ++tap) {
      // A tap past the end has no weight.
      const std::size_t source = std::min<std::size_t>(rows_.first[part] + tap, pixels.height - 1);
      taps_[tap] = pixels.data + source * row_bytes + std::size_t{first_column_} * pixels.channels;
    }
    kernel_->blend(taps_.data(), rows_.weights.data() + part * rows_.taps, rows_.taps, values,
                   blended);
    if (parts == 1) return;
    const double share = rows_.shares[part];
    for (std::size_t i = 0; i < values; ++i) joined_[i] += share * blended[i];
  }
  for (std::size_t i = 0; i < values; ++i) blended[i] = static_cast<std::int16_t>(joined_[i]);
}

void Resizer::resize(const Pixels& pixels, const ImageSpec& spec, const Turn& turn, bool flipped,
                     std::uint8_t* out) {
  // The result in the stored image's axes. Mirrors become axes that are read backwards.
  const std::uint32_t height = turn.swaps_axes ? spec.width : spec.height;
  const std::uint32_t width = turn.swaps_axes ? spec.height : spec.width;
  const bool mirrors_columns = turn.mirrors_columns != flipped;
  const bool reads_rows_back = turn.swaps_axes ? mirrors_columns : turn.mirrors_rows;
  const bool reads_columns_back = turn.swaps_axes ? turn.mirrors_rows : mirrors_columns;
  fill_axis(spec.resize, pixels.window_top, pixels.window_height, pixels.height, height,
            reads_rows_back, rows_);
  fill_axis(spec.resize, pixels.window_left, pixels.window_width, pixels.width, width,
            reads_columns_back, columns_);

  const auto [least, most] = std::minmax_element(columns_.first.begin(), columns_.first.end());
  first_column_ = *least;
  column_count_ = static_cast<std::uint32_t>(
      std::min<std::size_t>(pixels.width, *most + columns_.taps) - first_column_);
  for (std::uint32_t& first : columns_.first) first -= first_column_;
  taps_.resize(rows_.taps);
  const std::size_t blended_values =
      (std::size_t{column_count_} + columns_.taps) * pixels.channels + 32;
  reserve(blended_, blended_values * sizeof(std::int16_t));
  // Values past the end have no weight.
  std::memset(blended_.data(), 0, blended_values * sizeof(std::int16_t));
  reserve(sums_, columns_.first.size() * kColorChannels * sizeof(std::int32_t));

  const bool bytes_in_order = pixels.channels == kColorChannels && columns_.parts == 1 &&
                              !spec.is_float && !spec.channels_first && !turn.swaps_axes;
  const std::size_t row_bytes = std::size_t{width} * 3;
  if (bytes_in_order) reserve(bytes_, row_bytes + 1);

  // Strides of the upright result, in the stored image's axes.
  Strides strides;
  const std::ptrdiff_t channel_step =
      spec.channels_first ? std::ptrdiff_t{spec.height} * spec.width : 1;
  const std::ptrdiff_t column_step = spec.channels_first ? 1 : spec.channels;
  const std::ptrdiff_t row_step = column_step * spec.width;
  strides.channel = channel_step;
  strides.row = turn.swaps_axes ? column_step : row_step;
  strides.column = turn.swaps_axes ? row_step : column_step;

  for (std::uint32_t row = 0; row < height; ++row) {
    blend_row(pixels, row);
    const auto* const blended = blended_.as<std::int16_t>();
    if (bytes_in_order) {
      std::uint8_t* const place = out + row * row_bytes;
      // The kernel writes a byte too many, so the last row takes a detour.
      std::uint8_t* const target = row + 1 == height ? bytes_.data() : place;
      kernel_->mix_to_bytes(blended, columns_, target);
      if (target != place) std::memcpy(place, target, row_bytes);
      continue;
    }
    auto* const sums = sums_.as<std::int32_t>();
    if (pixels.channels == 1) {
      mix_grey(blended, columns_, sums);
    } else {
      kernel_->mix_to_sums(blended, columns_, sums);
    }
    if (columns_.parts > 1) join_parts(columns_, pixels.channels, sums);
    if (spec.is_float) {
      store_row(sums, width, pixels.channels, spec.channels,
                reinterpret_cast<float*>(out) + row * strides.row, strides);
    } else {
      store_row(sums, width, pixels.channels, spec.channels, out + row * strides.row, strides);
    }
  }
}

}  // namespace tfrfast
