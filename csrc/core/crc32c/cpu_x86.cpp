#include "core/crc32c/cpu_x86.h"

#include "core/crc32c/kernels.h"

#ifdef TFRFAST_CRC32C_X86

#include <cpuid.h>

#include <cstdint>

namespace tfrfast::crc32c_detail {
namespace {

constexpr bool has_all(std::uint64_t set, std::uint64_t bits) noexcept {
  return (set & bits) == bits;
}

// The register state that the operating system saves and restores. Whatever CPUID says, other
// registers do not survive a context switch. Call only if CPUID reports OSXSAVE.
std::uint64_t saved_state() noexcept {
  std::uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}
constexpr std::uint64_t kYmmState = 0x6;   // SSE and AVX
constexpr std::uint64_t kZmmState = 0xe6;  // and masks, upper halves, registers 16 to 31

constexpr unsigned kLeaf1Pclmul = 1u << 1, kLeaf1Sse42 = 1u << 20, kLeaf1Osxsave = 1u << 27;
constexpr unsigned kLeaf7Avx2 = 1u << 5, kLeaf7Avx512f = 1u << 16, kLeaf7Avx512bw = 1u << 30,
                   kLeaf7Avx512vl = 1u << 31;
constexpr unsigned kLeaf7Vpclmul = 1u << 10;

}  // namespace

CpuFeatures cpu_features() noexcept {
  CpuFeatures features;
  unsigned eax, ebx, ecx, edx;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return features;
  features.sse42_pclmul = has_all(ecx, kLeaf1Sse42 | kLeaf1Pclmul);
  if (!features.sse42_pclmul || !has_all(ecx, kLeaf1Osxsave)) return features;
  const std::uint64_t state = saved_state();
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return features;
  const bool vpclmul = has_all(ecx, kLeaf7Vpclmul);
  features.avx2_vpclmul = vpclmul && has_all(ebx, kLeaf7Avx2) && has_all(state, kYmmState);
  features.avx512_vpclmul = features.avx2_vpclmul &&
                            has_all(ebx, kLeaf7Avx512f | kLeaf7Avx512bw | kLeaf7Avx512vl) &&
                            has_all(state, kZmmState);
  return features;
}

}  // namespace tfrfast::crc32c_detail

#endif
