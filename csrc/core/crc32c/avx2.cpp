// x86 with VPCLMULQDQ on 256-bit registers only (Alder Lake, Zen 3).
#include "core/crc32c/kernels.h"

#ifdef TFRFAST_CRC32C_X86

#include <array>
#include <cstring>

#include "core/crc32c/cpu_x86.h"
#include "core/crc32c/instructions.h"
#include "core/crc32c/intrinsics_x86.h"
#include "core/crc32c/polynomial.h"

#define VPCLMUL_TARGET __attribute__((target("avx2,vpclmulqdq,pclmul,sse4.2")))

namespace tfrfast::crc32c_detail::avx2 {
namespace {

using Vector = __m256i;
constexpr std::size_t kVectorBytes = sizeof(Vector);
constexpr std::size_t kShortest = 96;  // shorter data is faster in one chain
// Long data is processed in blocks. Each row of a block has this many vectors, and this many words
// for each of three chains.
constexpr std::size_t kBlockVectors = 4;
constexpr std::size_t kBlockWords = 5;
constexpr std::size_t kSmallBlockRows = 4;
constexpr std::size_t kLargeBlockRows = 64;

struct alignas(kVectorBytes) Factors {
  std::array<std::uint64_t, kVectorBytes / 8> halves;
};

VPCLMUL_TARGET inline Vector load(const std::uint8_t* bytes) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
}
VPCLMUL_TARGET inline Vector load(const Factors& factors) noexcept {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(factors.halves.data()));
}
VPCLMUL_TARGET inline void store(std::uint8_t* out, Vector vector) noexcept {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), vector);
}
VPCLMUL_TARGET inline void stream(std::uint8_t* out, Vector vector) noexcept {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(out), vector);
}

VPCLMUL_TARGET inline Vector move(Vector vector, Vector factors) noexcept {
  return _mm256_xor_si256(_mm256_clmulepi64_epi128(vector, factors, 0x00),
                          _mm256_clmulepi64_epi128(vector, factors, 0x11));
}
VPCLMUL_TARGET inline Vector move_and_add(Vector vector, Vector factors, Vector other) noexcept {
  return _mm256_xor_si256(move(vector, factors), other);
}

VPCLMUL_TARGET inline Vector add_in_front(Vector vector, __m128i lane) noexcept {
  return _mm256_xor_si256(vector, _mm256_zextsi128_si256(lane));
}
VPCLMUL_TARGET inline __m128i add_lanes(Vector vector) noexcept {
  return _mm_xor_si128(_mm256_castsi256_si128(vector), _mm256_extracti128_si256(vector, 1));
}

}  // namespace

#include "core/crc32c/vpclmul.inc"

namespace {

// The bytes that do not fill a vector come first, and go through the CRC instruction.
template <bool kCopy>
VPCLMUL_TARGET inline Register extend_short(std::uint8_t* out, const std::uint8_t* bytes,
                                            std::size_t count, Register crc) noexcept {
  const std::size_t odd = count % kVectorBytes;
  if constexpr (kCopy) {
    std::memcpy(out, bytes, odd);
    crc = extend_serially(out, odd, crc);
    out += odd;
  } else {
    crc = extend_serially(bytes, odd, crc);
  }
  bytes += odd;
  const Vector first =
      add_in_front(take<kCopy>(out, bytes), _mm_cvtsi64_si128(static_cast<long long>(crc)));
  return extend_vectors<kCopy>(out, first, bytes, count / kVectorBytes - 1);
}

}  // namespace

bool supported() noexcept {
  return cpu_features().avx2_vpclmul;
}

}  // namespace tfrfast::crc32c_detail::avx2

#endif
