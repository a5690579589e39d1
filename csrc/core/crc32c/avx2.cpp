// x86 with VPCLMULQDQ on 256-bit registers only (Alder Lake, Zen 3).
#include "core/crc32c/kernels.h"

#ifdef TFRFAST_CRC32C_X86

#include <algorithm>
#include <array>
#include <cstring>

#include "core/crc32c/cpu_x86.h"
#include "core/crc32c/instructions.h"
#include "core/crc32c/intrinsics_x86.h"
#include "core/crc32c/polynomial.h"
#include "core/crc32c/three_way.h"

#define FOLDING_TARGET __attribute__((target("avx2,vpclmulqdq,pclmul,sse4.2")))

namespace tfrfast::crc32c_detail::avx2 {
namespace {

using Vector = __m256i;
constexpr std::size_t kVectorBytes = sizeof(Vector);
constexpr std::size_t kShortest = 96;  // shorter data is faster in one chain
constexpr std::size_t kChainsFrom = 192;
// Long data is processed in blocks. Each row of a block has this many vectors, and this many words
// for each of three chains.
constexpr std::size_t kBlockVectors = 4;
constexpr std::size_t kBlockWords = 5;
constexpr std::size_t kSmallBlockRows = 4;
constexpr std::size_t kLargeBlockRows = 64;
constexpr std::size_t kCopyVectors = 8;

struct alignas(kVectorBytes) Factors {
  std::array<std::uint64_t, kVectorBytes / 8> halves;
};

FOLDING_TARGET inline Vector load(const std::uint8_t* bytes) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
}
FOLDING_TARGET inline Vector load(const Factors& factors) noexcept {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(factors.halves.data()));
}
template <bool kStream>
FOLDING_TARGET inline void store(std::uint8_t* out, Vector vector) noexcept {
  auto* const to = reinterpret_cast<__m256i*>(out);
  kStream ? _mm256_stream_si256(to, vector) : _mm256_storeu_si256(to, vector);
}
FOLDING_TARGET inline void end_stream() noexcept {
  _mm_sfence();
}

FOLDING_TARGET inline Vector move(Vector vector, Vector factors) noexcept {
  return _mm256_xor_si256(_mm256_clmulepi64_epi128(vector, factors, 0x00),
                          _mm256_clmulepi64_epi128(vector, factors, 0x11));
}
FOLDING_TARGET inline Vector move_and_add(Vector vector, Vector factors, Vector other) noexcept {
  return _mm256_xor_si256(move(vector, factors), other);
}

FOLDING_TARGET inline Vector add_in_front(Vector vector, Register crc) noexcept {
  return _mm256_xor_si256(vector,
                          _mm256_zextsi128_si256(_mm_cvtsi64_si128(static_cast<long long>(crc))));
}
FOLDING_TARGET inline Lane add_lanes(Vector vector) noexcept {
  return lane(_mm_xor_si128(_mm256_castsi256_si128(vector), _mm256_extracti128_si256(vector, 1)));
}

}  // namespace

#include "core/crc32c/folding.inc"
#include "core/crc32c/odd_bytes_first.inc"
#include "core/crc32c/streaming.inc"

bool supported() noexcept {
  return cpu_features().avx2_vpclmul;
}

}  // namespace tfrfast::crc32c_detail::avx2

#endif
