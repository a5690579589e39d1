#include "core/crc32c/cpu_arm.h"

#include "core/crc32c/kernels.h"

#ifdef TFRFAST_CRC32C_ARM

#include "core/base/platform.h"

#if defined(TFRFAST_LINUX)
#include <sys/auxv.h>
#endif

namespace tfrfast::crc32c_detail {

CpuFeatures cpu_features() noexcept {
#if defined(__APPLE__)
  return {.crc_pmull = true, .sha3 = true};  // every 64-bit Mac
#elif defined(TFRFAST_LINUX)
  // HWCAP_PMULL, HWCAP_CRC32 and HWCAP_SHA3, which older headers lack.
  constexpr unsigned long kPmull = 1ul << 4, kCrc32 = 1ul << 7, kSha3 = 1ul << 17;
  const unsigned long has = getauxval(AT_HWCAP);
  const bool crc_pmull = (has & kPmull) != 0 && (has & kCrc32) != 0;
  return {.crc_pmull = crc_pmull, .sha3 = crc_pmull && (has & kSha3) != 0};
#else
  return {};
#endif
}

}  // namespace tfrfast::crc32c_detail

#endif
