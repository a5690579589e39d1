#include "core/image/resize_kernels.h"

namespace tfrfast {
namespace {

bool always() noexcept {
  return true;
}

void blend(const std::uint8_t* const* rows, const std::int16_t* weights, std::size_t taps,
           std::size_t count, std::int16_t* out) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    std::int32_t sum = 1 << (kBlendedBits - 1);
    for (std::size_t tap = 0; tap < taps; ++tap) sum += rows[tap][i] * weights[tap];
    out[i] = static_cast<std::int16_t>(sum >> kBlendedBits);
  }
}

void mix_to_sums(const std::int16_t* row, const ResizeAxis& axis, std::int32_t* out) noexcept {
  const std::int16_t* weights = axis.weights.data();
  for (const std::uint32_t first : axis.first) {
    const std::int16_t* pixel = row + std::size_t{first} * 4;
    std::int32_t sums[4] = {};
    for (std::size_t tap = 0; tap < axis.taps; ++tap, pixel += 4) {
      for (int channel = 0; channel < 4; ++channel) sums[channel] += pixel[channel] * weights[tap];
    }
    for (int channel = 0; channel < 4; ++channel) *out++ = sums[channel];
    weights += axis.taps;
  }
}

void mix_to_bytes(const std::int16_t* row, const ResizeAxis& axis, std::uint8_t* out) noexcept {
  const std::int16_t* weights = axis.weights.data();
  for (const std::uint32_t first : axis.first) {
    const std::int16_t* pixel = row + std::size_t{first} * 4;
    std::int32_t sums[3];
    for (std::int32_t& sum : sums) sum = 1 << (kSumBits - 1);
    for (std::size_t tap = 0; tap < axis.taps; ++tap, pixel += 4) {
      for (int channel = 0; channel < 3; ++channel) sums[channel] += pixel[channel] * weights[tap];
    }
    for (const std::int32_t sum : sums) *out++ = static_cast<std::uint8_t>(sum >> kSumBits);
    weights += axis.taps;
  }
}

constexpr ResizeKernel kKernels[] = {
    {"portable", &always, &blend, &mix_to_bytes, &mix_to_sums},
#if defined(__x86_64__)
    {"avx2", &resize_avx2::supported, &resize_avx2::blend, &resize_avx2::mix_to_bytes,
     &resize_avx2::mix_to_sums},
#endif
};

}  // namespace

std::span<const ResizeKernel> resize_kernels() noexcept {
  return kKernels;
}

const ResizeKernel& best_resize_kernel() noexcept {
  const ResizeKernel* best = kKernels;
  for (const ResizeKernel& kernel : kKernels) {
    if (kernel.supported()) best = &kernel;
  }
  return *best;
}

}  // namespace tfrfast
