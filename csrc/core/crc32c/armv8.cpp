// 64-bit ARM: the CRC instructions, three chains of them, joined by PMULL.
#include "core/crc32c/kernels.h"

#ifdef TFRFAST_CRC32C_ARM

#include "core/base/platform.h"
#include "core/crc32c/three_way.h"

#if defined(TFRFAST_LINUX)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tfrfast::crc32c_detail::armv8 {

bool supported() noexcept {
#if defined(__APPLE__)
  return true;  // every 64-bit Mac
#elif defined(TFRFAST_LINUX)
  constexpr unsigned long kNeeded = HWCAP_CRC32 | HWCAP_PMULL;
  return (getauxval(AT_HWCAP) & kNeeded) == kNeeded;
#else
  return false;
#endif
}

CRC32C_TARGET std::uint32_t extend(const std::uint8_t* bytes, std::size_t count,
                                   std::uint32_t crc) noexcept {
  crc = ~crc;
  return finish(extend_three_way(bytes, count, crc));
}

CRC32C_TARGET std::uint32_t of_u64(std::uint64_t value) noexcept {
  return finish(step(0xffffffff, value));
}

}  // namespace tfrfast::crc32c_detail::armv8

#endif
