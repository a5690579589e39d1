// Decodes eight values at a time, from blocks of 64 bytes. Each block begins with a value.
//
// vpcompressb packs the positions of the bytes that end a value. Each lane of eight bytes then
// counts up from its value's start, masks off the bytes past the value's end, and one byte
// permutation brings the values into their lanes. Multiplying and adding neighbours joins the
// groups of seven bits: bytes into 14 bits, pairs into 28, and quadruples into 56.
#include "core/example/varints_avx512.h"

#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
// GCC's own AVX-512 headers cause this warning (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include <bit>

#include "core/example/varints.h"

#define TFRFAST_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt")))

namespace tfrfast {
namespace {

constexpr std::ptrdiff_t kBlockBytes = 64;
constexpr int kLanes = 8;

alignas(64) constexpr std::uint8_t kCounting[64] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

// Returns whether a value that ends in the block has more than eight bytes.
inline bool has_long_value(std::uint64_t ends) noexcept {
  std::uint64_t continued = ~ends & ~std::uint64_t{0} >> std::countl_zero(ends);
  continued &= continued >> 1;
  continued &= continued >> 2;
  continued &= continued >> 4;  // runs of eight bytes, each with a continuation bit
  return continued != 0;
}

// Decodes the values that end in the block. Each must have at most eight bytes.
TFRFAST_TARGET inline void take_values(__m512i block, std::uint64_t ends, int values,
                                       std::int64_t* out) noexcept {
  const __m512i counting = _mm512_load_si512(kCounting);
  const __m512i one = _mm512_set1_epi8(1);
  const __m512i last = _mm512_maskz_compress_epi8(ends, counting);
  // Each value starts after the previous value's end, the first at 0.
  const __m512i first = _mm512_maskz_add_epi8(
      ~std::uint64_t{1}, _mm512_permutexvar_epi8(_mm512_sub_epi8(counting, one), last), one);
  const __m512i bits = _mm512_and_si512(block, _mm512_set1_epi8(0x7f));
  const __m512i within_lane = _mm512_and_si512(counting, _mm512_set1_epi8(7));
  __m512i lane = _mm512_srli_epi16(_mm512_andnot_si512(_mm512_set1_epi8(7), counting), 3);
  for (int done = 0; done < values; done += kLanes) {
    const __m512i position = _mm512_add_epi8(_mm512_permutexvar_epi8(lane, first), within_lane);
    const __mmask64 own = _mm512_cmple_epu8_mask(position, _mm512_permutexvar_epi8(lane, last));
    const __m512i sevens = _mm512_maskz_permutexvar_epi8(own, position, bits);
    const __m512i fourteens =
        _mm512_maddubs_epi16(_mm512_set1_epi16(static_cast<short>(0x8001)), sevens);
    const __m512i halves = _mm512_madd_epi16(fourteens, _mm512_set1_epi32(0x40000001));
    const __m512i joined = _mm512_or_si512(_mm512_slli_epi64(_mm512_srli_epi64(halves, 32), 28),
                                           _mm512_and_si512(halves, _mm512_set1_epi64(0xffffffff)));
    const int left = values - done;
    if (left >= kLanes) {
      _mm512_storeu_si512(out + done, joined);
    } else {
      _mm512_mask_storeu_epi64(out + done, static_cast<__mmask8>((1u << left) - 1), joined);
    }
    lane = _mm512_add_epi8(lane, _mm512_set1_epi8(kLanes));
  }
}

}  // namespace

bool cpu_has_avx512_vbmi2() noexcept {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt");
}

TFRFAST_TARGET std::ptrdiff_t decode_varints_avx512(WireBytes varints, WireBytes,
                                                    std::int64_t* const out,
                                                    const std::size_t space) noexcept {
  const std::uint8_t* start = varints.data();
  const std::uint8_t* const end = start + varints.size();
  std::int64_t* to = out;
  std::int64_t* const out_end = out + space;
  while (start != end) {
    const std::ptrdiff_t left = end - start;
    const std::uint64_t readable = left < kBlockBytes
                                       ? _bzhi_u64(~std::uint64_t{0}, static_cast<unsigned>(left))
                                       : ~std::uint64_t{0};
    const __m512i block = _mm512_maskz_loadu_epi8(readable, start);
    const std::uint64_t ends = readable & ~_mm512_movepi8_mask(block);
    if (ends == 0) return kBadVarints;
    const int values = static_cast<int>(_mm_popcnt_u64(ends));
    if (values > out_end - to) return kTooManyVarints;
    if (ends == ~std::uint64_t{0}) {
      for (int i = 0; i < kBlockBytes; ++i) to[i] = start[i];
    } else if (!has_long_value(ends)) [[likely]] {
      take_values(block, ends, values, to);
    } else {
      WireReader reader({start, kBlockBytes - static_cast<std::size_t>(std::countl_zero(ends))});
      std::uint64_t value;
      for (int i = 0; i < values; ++i) {
        if (!reader.read_varint(value)) return kBadVarints;
        to[i] = static_cast<std::int64_t>(value);
      }
    }
    to += values;
    start += kBlockBytes - std::countl_zero(ends);
  }
  return to - out;
}

}  // namespace tfrfast

#endif
