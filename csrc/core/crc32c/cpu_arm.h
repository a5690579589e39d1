// Detects the instructions of this CPU.
#pragma once

namespace tfrfast::crc32c_detail {

struct CpuFeatures {
  bool crc_pmull = false;
  bool sha3 = false;  // with crc_pmull
};

// Asks the operating system on every call.
CpuFeatures cpu_features() noexcept;

}  // namespace tfrfast::crc32c_detail
