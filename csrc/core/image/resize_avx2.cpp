// Two taps at a time: the bytes or values of both are laid side by side, and one instruction
// multiplies them by their weights and adds.
#include "core/image/resize_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#define TFRFAST_TARGET __attribute__((target("avx2")))

namespace tfrfast::resize_avx2 {
namespace {

inline std::int32_t weight_pair(const std::int16_t* weights) noexcept {
  std::int32_t pair;
  std::memcpy(&pair, weights, sizeof pair);
  return pair;
}

// The sums of one result pixel, in four lanes.
TFRFAST_TARGET inline __m128i mix_pixel(const std::int16_t* pixel, const std::int16_t* weights,
                                        std::size_t taps, __m128i sums) noexcept {
  // Two pixels side by side become pairs of the same channel.
  const __m128i pairing = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
  for (std::size_t tap = 0; tap < taps; tap += 2, pixel += 8) {
    const __m128i both = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixel));
    const __m128i weight = _mm_set1_epi32(weight_pair(weights + tap));
    sums = _mm_add_epi32(sums, _mm_madd_epi16(_mm_shuffle_epi8(both, pairing), weight));
  }
  return sums;
}

}  // namespace

bool supported() noexcept {
  return __builtin_cpu_supports("avx2") != 0;
}

TFRFAST_TARGET void blend(const std::uint8_t* const* rows, const std::int16_t* weights,
                          std::size_t taps, std::size_t count, std::int16_t* out) noexcept {
  constexpr std::size_t kStep = 16;
  const __m256i half = _mm256_set1_epi32(1 << (kBlendedBits - 1));
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    __m256i low = half, high = half;
    for (std::size_t tap = 0; tap < taps; tap += 2) {
      const __m256i weight = _mm256_set1_epi32(weight_pair(weights + tap));
      const __m256i first =
          _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[tap] + i)));
      const __m256i second = _mm256_cvtepu8_epi16(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[tap + 1] + i)));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(first, second), weight));
      high =
          _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(first, second), weight));
    }
    const __m256i packed = _mm256_packs_epi32(_mm256_srai_epi32(low, kBlendedBits),
                                              _mm256_srai_epi32(high, kBlendedBits));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), packed);
  }
  for (; i < count; ++i) {
    std::int32_t sum = 1 << (kBlendedBits - 1);
    for (std::size_t tap = 0; tap < taps; ++tap) sum += rows[tap][i] * weights[tap];
    out[i] = static_cast<std::int16_t>(sum >> kBlendedBits);
  }
}

TFRFAST_TARGET void mix_to_bytes(const std::int16_t* row, const ResizeAxis& axis,
                                 std::uint8_t* out) noexcept {
  const __m128i half = _mm_set1_epi32(1 << (kSumBits - 1));
  const std::int16_t* weights = axis.weights.data();
  for (const std::uint32_t first : axis.first) {
    __m128i sums = mix_pixel(row + std::size_t{first} * 4, weights, axis.taps, half);
    sums = _mm_srai_epi32(sums, kSumBits);
    sums = _mm_packs_epi32(sums, sums);
    sums = _mm_packus_epi16(sums, sums);
    const std::int32_t pixel = _mm_cvtsi128_si32(sums);
    std::memcpy(out, &pixel, sizeof pixel);
    out += 3;
    weights += axis.taps;
  }
}

TFRFAST_TARGET void mix_to_sums(const std::int16_t* row, const ResizeAxis& axis,
                                std::int32_t* out) noexcept {
  const std::int16_t* weights = axis.weights.data();
  for (const std::uint32_t first : axis.first) {
    const __m128i sums =
        mix_pixel(row + std::size_t{first} * 4, weights, axis.taps, _mm_setzero_si128());
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), sums);
    out += 4;
    weights += axis.taps;
  }
}

}  // namespace tfrfast::resize_avx2

#endif
