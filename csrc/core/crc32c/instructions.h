// The CRC instruction and the carry-less product, under the same names on x86 and ARM. Functions
// that use either carry CRC32C_TARGET, so that the rest of the library needs neither.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"
#include "core/crc32c/kernels.h"

#if defined(TFRFAST_CRC32C_X86)
#include <nmmintrin.h>
#include <wmmintrin.h>
#define CRC32C_TARGET __attribute__((target("sse4.2,pclmul")))
#elif defined(TFRFAST_CRC32C_ARM)
#include <arm_acle.h>
#include <arm_neon.h>
// Before version 16, Clang declares ACLE's names only if the whole file may use the instructions.
#if defined(__clang__)
#define CRC32C_TARGET __attribute__((target("crc,crypto")))
#define CRC32C_ARM_STEP(width) __builtin_arm_crc32c##width
#else
#define CRC32C_TARGET __attribute__((target("+crc+crypto")))
#define CRC32C_ARM_STEP(width) __crc32c##width
#endif
#endif

namespace tfrfast::crc32c_detail {

// Sixteen bytes as two words, in the order of the data.
struct Lane {
  std::uint64_t front, back;
};

#if defined(TFRFAST_CRC32C_X86)

// A 32-bit register, in the type of the instruction's argument and result: narrowing between two
// steps would add a move to the chain.
using Register = std::uint64_t;

CRC32C_TARGET inline Register step(Register crc, std::uint64_t word) noexcept {
  return _mm_crc32_u64(crc, word);
}
CRC32C_TARGET inline Register step(Register crc, std::uint32_t word) noexcept {
  return _mm_crc32_u32(static_cast<std::uint32_t>(crc), word);
}
CRC32C_TARGET inline Register step(Register crc, std::uint16_t word) noexcept {
  return _mm_crc32_u16(static_cast<std::uint32_t>(crc), word);
}
CRC32C_TARGET inline Register step(Register crc, std::uint8_t byte) noexcept {
  return _mm_crc32_u8(static_cast<std::uint32_t>(crc), byte);
}

CRC32C_TARGET inline __m128i wide_product(Register a, std::uint32_t b) noexcept {
  return _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(a)),
                              _mm_cvtsi32_si128(static_cast<int>(b)), 0);
}
CRC32C_TARGET inline std::uint64_t product(Register a, std::uint32_t b) noexcept {
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(wide_product(a, b)));
}

CRC32C_TARGET inline Lane lane(__m128i bytes) noexcept {
  return {static_cast<std::uint64_t>(_mm_cvtsi128_si64(bytes)),
          static_cast<std::uint64_t>(_mm_extract_epi64(bytes, 1))};
}

#elif defined(TFRFAST_CRC32C_ARM)

using Register = std::uint32_t;

CRC32C_TARGET inline Register step(Register crc, std::uint64_t word) noexcept {
  return CRC32C_ARM_STEP(d)(crc, word);
}
CRC32C_TARGET inline Register step(Register crc, std::uint32_t word) noexcept {
  return CRC32C_ARM_STEP(w)(crc, word);
}
CRC32C_TARGET inline Register step(Register crc, std::uint16_t word) noexcept {
  return CRC32C_ARM_STEP(h)(crc, word);
}
CRC32C_TARGET inline Register step(Register crc, std::uint8_t byte) noexcept {
  return CRC32C_ARM_STEP(b)(crc, byte);
}

CRC32C_TARGET inline std::uint64_t product(Register a, std::uint32_t b) noexcept {
  return vgetq_lane_u64(vreinterpretq_u64_p128(vmull_p64(a, b)), 0);
}

#endif

constexpr std::uint32_t finish(Register crc) noexcept {
  return ~static_cast<std::uint32_t>(crc);
}

template <class Word>
CRC32C_TARGET inline Register step(Register crc, const std::uint8_t*& bytes) noexcept {
  crc = step(crc, load_little_endian<Word>(bytes));
  bytes += sizeof(Word);
  return crc;
}

// Runs one chain, in which each step waits for the last step, for data too short to split.
// Registers are raw: not inverted before or after.
CRC32C_TARGET inline Register extend_serially(const std::uint8_t* bytes, std::size_t count,
                                              Register crc) noexcept {
  for (; count >= 8; count -= 8) crc = step<std::uint64_t>(crc, bytes);
  if ((count & 4) != 0) crc = step<std::uint32_t>(crc, bytes);
  if ((count & 2) != 0) crc = step<std::uint16_t>(crc, bytes);
  if ((count & 1) != 0) crc = step<std::uint8_t>(crc, bytes);
  return crc;
}

}  // namespace tfrfast::crc32c_detail
