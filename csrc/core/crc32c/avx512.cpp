// x86 with VPCLMULQDQ on 512-bit registers (Ice Lake, Zen 4 and later).
#include "core/crc32c/kernels.h"

#ifdef TFRFAST_CRC32C_X86

#include <algorithm>
#include <array>
#include <cstring>

#include "core/crc32c/cpu_x86.h"
#include "core/crc32c/instructions.h"
#include "core/crc32c/intrinsics_x86.h"
#include "core/crc32c/polynomial.h"

#define FOLDING_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx2,vpclmulqdq,pclmul,sse4.2")))

namespace tfrfast::crc32c_detail::avx512 {
namespace {

using Vector = __m512i;
constexpr std::size_t kVectorBytes = sizeof(Vector);
constexpr std::size_t kShortest = 32;  // shorter data is faster in one chain
// Long data is processed in blocks. Each row of a block has this many vectors, and this many words
// for each of three chains.
constexpr std::size_t kBlockVectors = 6;
constexpr std::size_t kBlockWords = 4;
constexpr std::size_t kSmallBlockRows = 6;
constexpr std::size_t kLargeBlockRows = 64;
constexpr std::size_t kCopyVectors = 4;

struct alignas(kVectorBytes) Factors {
  std::array<std::uint64_t, kVectorBytes / 8> halves;
};

FOLDING_TARGET inline Vector load(const std::uint8_t* bytes) noexcept {
  return _mm512_loadu_si512(bytes);
}
FOLDING_TARGET inline Vector load(const Factors& factors) noexcept {
  return _mm512_load_si512(factors.halves.data());
}
template <bool kStream>
FOLDING_TARGET inline void store(std::uint8_t* out, Vector vector) noexcept {
  auto* const to = reinterpret_cast<__m512i*>(out);
  kStream ? _mm512_stream_si512(to, vector) : _mm512_storeu_si512(to, vector);
}
FOLDING_TARGET inline void end_stream() noexcept {
  _mm_sfence();
}

FOLDING_TARGET inline Vector move(Vector vector, Vector factors) noexcept {
  return _mm512_xor_si512(_mm512_clmulepi64_epi128(vector, factors, 0x00),
                          _mm512_clmulepi64_epi128(vector, factors, 0x11));
}
FOLDING_TARGET inline Vector move_and_add(Vector vector, Vector factors, Vector other) noexcept {
  constexpr int kXor3 = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(vector, factors, 0x00),
                                   _mm512_clmulepi64_epi128(vector, factors, 0x11), other, kXor3);
}

FOLDING_TARGET inline Vector add_in_front(Vector vector, __m128i lane) noexcept {
  return _mm512_xor_si512(vector, _mm512_zextsi128_si512(lane));
}
FOLDING_TARGET inline Vector add_in_front(Vector vector, Register crc) noexcept {
  return add_in_front(vector, _mm_cvtsi64_si128(static_cast<long long>(crc)));
}
FOLDING_TARGET inline Lane add_lanes(Vector vector) noexcept {
  const __m256i half =
      _mm256_xor_si256(_mm512_castsi512_si256(vector), _mm512_extracti64x4_epi64(vector, 1));
  return lane(_mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}

}  // namespace

#include "core/crc32c/folding.inc"
#include "core/crc32c/streaming.inc"

namespace {

// Moves a register back over n zero bytes, as the first word of a vector. A register stands at x^32
// of the word, and the product adds one.
constexpr auto kUnpad = powers_of_x<kVectorBytes>(32 - 1, -8);

// Vectors are counted from the end of the data, so only the first vector is partial. The zero bytes
// before the partial vector add nothing if the register is first moved back over them. Moving back
// is possible because P has a constant term, so x^-8 exists.
template <bool kCopy>
FOLDING_TARGET inline Register extend_short(std::uint8_t* out, const std::uint8_t* bytes,
                                            std::size_t count, Register crc) noexcept {
  const std::size_t after = (count - 1) / kVectorBytes;
  const std::size_t partial = count - after * kVectorBytes;
  const std::size_t pad = kVectorBytes - partial;
  // Masked-out bytes are not touched and cannot fault.
  const __mmask64 mask = ~std::uint64_t{0} << pad;
  Vector first = _mm512_maskz_loadu_epi8(mask, bytes - pad);
  if constexpr (kCopy) _mm512_mask_storeu_epi8(out - pad, mask, first);
  first = add_in_front(first, wide_product(crc, kUnpad[pad]));
  return extend_vectors<kCopy>(kCopy ? out + partial : nullptr, first, bytes + partial, after);
}

}  // namespace

bool supported() noexcept {
  return cpu_features().avx512_vpclmul;
}

}  // namespace tfrfast::crc32c_detail::avx512

#endif
