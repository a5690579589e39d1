#include "core/example/fast_bmi2.h"

#if defined(__x86_64__)
#include <cpuid.h>

#include <cstring>
#endif

namespace tfrfast {

bool has_fast_bmi2(std::string_view vendor, std::uint32_t signature) noexcept {
  constexpr std::uint32_t kExtended = 0xf;
  constexpr std::uint32_t kZen3 = 0x19;
  std::uint32_t family = signature >> 8 & 0xf;
  if (family == kExtended) family += signature >> 20 & 0xff;
  const bool is_amd = vendor == "AuthenticAMD" || vendor == "HygonGenuine";
  return !is_amd || family >= kZen3;
}

bool cpu_has_fast_bmi2() noexcept {
#if defined(__x86_64__)
  unsigned eax, ebx, ecx, edx;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return false;
  char vendor[12];
  std::memcpy(vendor, &ebx, 4);
  std::memcpy(vendor + 4, &edx, 4);
  std::memcpy(vendor + 8, &ecx, 4);
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
  return has_fast_bmi2({vendor, sizeof vendor}, eax);
#else
  return false;
#endif
}

}  // namespace tfrfast
