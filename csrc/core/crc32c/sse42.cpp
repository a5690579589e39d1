// x86 from 2010 on: SSE4.2's CRC instruction, and PCLMULQDQ.
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

#define FOLDING_TARGET CRC32C_TARGET

namespace tfrfast::crc32c_detail::sse42 {
namespace {

using Vector = __m128i;
constexpr std::size_t kVectorBytes = sizeof(Vector);
constexpr std::size_t kShortest = kThreeWayBytes;
constexpr std::size_t kChainsFrom = kShortest;
// Long data is processed in blocks. Each row of a block has this many vectors, and this many words
// for each of three chains.
constexpr std::size_t kBlockVectors = 4;
constexpr std::size_t kBlockWords = 4;
constexpr std::size_t kSmallBlockRows = 32;
constexpr std::size_t kLargeBlockRows = 32;
constexpr std::size_t kCopyVectors = 8;

struct alignas(kVectorBytes) Factors {
  std::array<std::uint64_t, kVectorBytes / 8> halves;
};

FOLDING_TARGET inline Vector load(const std::uint8_t* bytes) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}
FOLDING_TARGET inline Vector load(const Factors& factors) noexcept {
  return _mm_load_si128(reinterpret_cast<const __m128i*>(factors.halves.data()));
}
template <bool kStream>
FOLDING_TARGET inline void store(std::uint8_t* out, Vector vector) noexcept {
  static_assert(!kStream);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), vector);
}

FOLDING_TARGET inline Vector move(Vector vector, Vector factors) noexcept {
  return _mm_xor_si128(_mm_clmulepi64_si128(vector, factors, 0x00),
                       _mm_clmulepi64_si128(vector, factors, 0x11));
}
FOLDING_TARGET inline Vector move_and_add(Vector vector, Vector factors, Vector other) noexcept {
  return _mm_xor_si128(move(vector, factors), other);
}

FOLDING_TARGET inline Vector add_in_front(Vector vector, Register crc) noexcept {
  return _mm_xor_si128(vector, _mm_cvtsi64_si128(static_cast<long long>(crc)));
}
FOLDING_TARGET inline Lane add_lanes(Vector vector) noexcept {
  return lane(vector);
}

}  // namespace

#include "core/crc32c/folding.inc"
#include "core/crc32c/odd_bytes_first.inc"

bool supported() noexcept {
  return cpu_features().sse42_pclmul;
}

CRC32C_TARGET std::uint32_t of_u64(std::uint64_t value) noexcept {
  return finish(step(0xffffffff, value));
}

}  // namespace tfrfast::crc32c_detail::sse42

#endif
