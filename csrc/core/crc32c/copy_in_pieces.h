// copy() for a kernel without a copy(), or with a copy() that is fast for short data only. Pieces
// are so small that they are still in the L1 cache when their CRC is computed. The CRC is the
// copy's, so the verified bytes are the written bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/crc32c/kernels.h"

namespace tfrfast::crc32c_detail {

// kCopyShort is the kernel's own copy() or nullptr, distinguished by type: under GCC's sanitizers,
// a pointer to a function cannot be compared in a constant expression.
template <Crc32cKernel::Extend kExtend, auto kCopyShort = nullptr>
std::uint32_t copy_in_pieces(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                             std::uint32_t crc) noexcept {
  constexpr std::size_t kMaxShortBytes = 4 << 10, kPieceBytes = 16 << 10;
  if constexpr (!std::is_null_pointer_v<decltype(kCopyShort)>) {
    if (count <= kMaxShortBytes) return kCopyShort(out, bytes, count, crc);
  }
  while (count != 0) {
    const std::size_t piece = std::min(count, kPieceBytes);
    std::memcpy(out, bytes, piece);
    crc = kExtend(out, piece, crc);
    bytes += piece;
    out += piece;
    count -= piece;
  }
  return crc;
}

}  // namespace tfrfast::crc32c_detail
