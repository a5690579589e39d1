// Detects the instructions that this CPU has and the operating system enables.
#pragma once

namespace tfrfast::crc32c_detail {

struct CpuFeatures {
  bool sse42_pclmul = false;
  bool avx2_vpclmul = false;    // VPCLMULQDQ on 256-bit registers
  bool avx512_vpclmul = false;  // and on 512-bit registers, with byte masks (AVX512BW)
};

// Asks CPUID and XGETBV on every call.
CpuFeatures cpu_features() noexcept;

}  // namespace tfrfast::crc32c_detail
