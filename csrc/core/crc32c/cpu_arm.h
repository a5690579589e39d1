// Which instructions this CPU has.
#pragma once

namespace tfrfast::crc32c_detail {

struct CpuFeatures {
  bool crc_pmull = false;
  bool sha3 = false;  // and the two above
};

// Asks the operating system on every call.
CpuFeatures cpu_features() noexcept;

}  // namespace tfrfast::crc32c_detail
