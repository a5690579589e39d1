// 64-bit ARM that also has SHA3, whose EOR3 adds three vectors at once (Apple M1, Neoverse V1 and
// later).
#include "core/crc32c/kernels.h"

#ifdef TFRFAST_CRC32C_ARM_SHA3

#include <algorithm>
#include <array>
#include <cstring>

#include "core/crc32c/cpu_arm.h"
#include "core/crc32c/instructions.h"
#include "core/crc32c/polynomial.h"
#include "core/crc32c/three_way.h"

#if defined(__clang__)
#define FOLDING_TARGET __attribute__((target("crc,crypto,sha3")))
#else
#define FOLDING_TARGET __attribute__((target("arch=armv8.2-a+crc+crypto+sha3")))
#endif

namespace tfrfast::crc32c_detail::armv8_sha3 {

#include "core/crc32c/neon.inc"

namespace {

// Long data is processed in blocks. Each row of a block has this many vectors, and this many words
// for each of three chains.
constexpr std::size_t kBlockVectors = 8;
constexpr std::size_t kBlockWords = 3;
constexpr std::size_t kSmallBlockRows = 4;
constexpr std::size_t kLargeBlockRows = 64;
constexpr std::size_t kCopyVectors = 8;

FOLDING_TARGET inline Vector move_and_add(Vector vector, Vector factors, Vector other) noexcept {
  return veor3q_u64(front_product(vector, factors), back_product(vector, factors), other);
}

}  // namespace

#include "core/crc32c/folding.inc"
#include "core/crc32c/odd_bytes_first.inc"

bool supported() noexcept {
  return cpu_features().sha3;
}

}  // namespace tfrfast::crc32c_detail::armv8_sha3

#endif
