// The loops of resizing, a version for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tfrfast {

// Weights are in units of 2^-14, blended rows in units of 2^-7, sums in units of 2^-21.
inline constexpr int kWeightBits = 14;
inline constexpr int kBlendedBits = 7;
inline constexpr int kSumBits = kWeightBits + kBlendedBits;

// The source pixels of each result pixel, along one axis. Rounded weights of many pixels would add
// up to a wrong color, so a result pixel that covers many is the mean of several parts.
struct ResizeAxis {
  std::size_t taps = 2;               // of each part: an even number
  std::vector<std::uint32_t> first;   // the first source pixel of each part
  std::vector<std::int16_t> weights;  // `taps` of each part; none is negative, and they add up to 1
  std::size_t parts = 1;              // of each result pixel
  std::vector<double> shares;         // of each part in its result pixel
};

struct ResizeKernel {
  const char* name;
  bool (*supported)() noexcept;
  // out[i] = the sum of rows[tap][i] * weights[tap].
  void (*blend)(const std::uint8_t* const* rows, const std::int16_t* weights, std::size_t taps,
                std::size_t count, std::int16_t* out) noexcept;
  // Mixes each part's pixels of four values and writes the first three as bytes, end to end. May
  // read `taps` pixels past the last source pixel, and write one byte past the last result.
  void (*mix_to_bytes)(const std::int16_t* row, const ResizeAxis& axis, std::uint8_t* out) noexcept;
  // Mixes each part's pixels of four values and writes four sums.
  void (*mix_to_sums)(const std::int16_t* row, const ResizeAxis& axis, std::int32_t* out) noexcept;
};

// All kernels of the architecture, slowest first. The first is supported everywhere.
std::span<const ResizeKernel> resize_kernels() noexcept;
const ResizeKernel& best_resize_kernel() noexcept;

namespace resize_avx2 {
bool supported() noexcept;
void blend(const std::uint8_t* const* rows, const std::int16_t* weights, std::size_t taps,
           std::size_t count, std::int16_t* out) noexcept;
void mix_to_bytes(const std::int16_t* row, const ResizeAxis& axis, std::uint8_t* out) noexcept;
void mix_to_sums(const std::int16_t* row, const ResizeAxis& axis, std::int32_t* out) noexcept;
}  // namespace resize_avx2

}  // namespace tfrfast
