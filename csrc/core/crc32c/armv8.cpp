// 64-bit ARM with the CRC instructions and PMULL.
#include "core/crc32c/kernels.h"

#ifdef TFRFAST_CRC32C_ARM

#include <algorithm>
#include <array>
#include <cstring>

#include "core/crc32c/cpu_arm.h"
#include "core/crc32c/instructions.h"
#include "core/crc32c/polynomial.h"
#include "core/crc32c/three_way.h"

#define FOLDING_TARGET CRC32C_TARGET

namespace tfrfast::crc32c_detail::armv8 {

#include "core/crc32c/neon.inc"

namespace {

// Long data is processed in blocks. Each row of a block has this many vectors, and this many words
// for each of three chains.
constexpr std::size_t kBlockVectors = 4;
constexpr std::size_t kBlockWords = 3;
constexpr std::size_t kSmallBlockRows = 8;
constexpr std::size_t kLargeBlockRows = 64;
constexpr std::size_t kCopyVectors = 8;

FOLDING_TARGET inline Vector move_and_add(Vector vector, Vector factors, Vector other) noexcept {
  return veorq_u64(move(vector, factors), other);
}

}  // namespace

#include "core/crc32c/folding.inc"
#include "core/crc32c/odd_bytes_first.inc"

bool supported() noexcept {
  return cpu_features().crc_pmull;
}

CRC32C_TARGET std::uint32_t of_u64(std::uint64_t value) noexcept {
  return finish(step(0xffffffff, value));
}

}  // namespace tfrfast::crc32c_detail::armv8

#endif
