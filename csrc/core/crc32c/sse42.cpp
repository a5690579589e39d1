// x86 from 2010 on: SSE4.2's CRC instruction, three chains of it, joined by PCLMULQDQ.
#include "core/crc32c/kernels.h"

#ifdef TFRFAST_CRC32C_X86

#include "core/crc32c/cpu_x86.h"
#include "core/crc32c/three_way.h"

namespace tfrfast::crc32c_detail::sse42 {

bool supported() noexcept {
  return cpu_features().sse42_pclmul;
}

CRC32C_TARGET std::uint32_t extend(const std::uint8_t* bytes, std::size_t count,
                                   std::uint32_t crc) noexcept {
  crc = ~crc;
  return finish(extend_three_way(bytes, count, crc));
}

CRC32C_TARGET std::uint32_t of_u64(std::uint64_t value) noexcept {
  return finish(step(0xffffffff, value));
}

}  // namespace tfrfast::crc32c_detail::sse42

#endif
