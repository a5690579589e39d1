// CRC-32C (Castagnoli), with a kernel for each instruction set. Which one is used is chosen at run
// time. Everything here may be called from any thread at any time, static initialisers included.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tfrfast {

// A kernel of this build. For tests, benchmarks and `info`. Other code calls the functions below.
struct Crc32cKernel {
  using Extend = std::uint32_t (*)(const std::uint8_t* bytes, std::size_t count,
                                   std::uint32_t crc) noexcept;
  using Copy = std::uint32_t (*)(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                                 std::uint32_t crc) noexcept;
  using OfU64 = std::uint32_t (*)(std::uint64_t value) noexcept;

  const char* name;
  bool (*supported)() noexcept;  // by this CPU and operating system
  Extend extend;
  Copy copy;
  Copy stream;
  OfU64 of_u64;
};

// All of them, the portable one first.
std::span<const Crc32cKernel> crc32c_kernels() noexcept;

// The one in use: the last supported one.
const Crc32cKernel& active_crc32c_kernel() noexcept;

namespace crc32c_detail {
// The first call through any of them chooses the kernel and replaces all.
extern constinit std::atomic<Crc32cKernel::Extend> active_extend;
extern constinit std::atomic<Crc32cKernel::Copy> active_copy;
extern constinit std::atomic<Crc32cKernel::Copy> active_stream;
extern constinit std::atomic<Crc32cKernel::OfU64> active_of_u64;
}  // namespace crc32c_detail

// The CRC of `bytes` appended to data whose CRC is `crc`. Never fails; any length, any alignment.
inline std::uint32_t crc32c(const std::uint8_t* bytes, std::size_t count,
                            std::uint32_t crc = 0) noexcept {
  return crc32c_detail::active_extend.load(std::memory_order_relaxed)(bytes, count, crc);
}

// Copies `bytes` to `out`, which must not overlap them, and returns crc32c() of exactly what was
// written, even if the source changes meanwhile. Faster than copying first when the source is in
// memory rather than in a cache. Needs no destructors and takes no locks: safe to jump out of on a
// fault.
inline std::uint32_t copy_crc32c(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                                 std::uint32_t crc = 0) noexcept {
  return crc32c_detail::active_copy.load(std::memory_order_relaxed)(out, bytes, count, crc);
}

// The same for long data that are not read again soon: where the CPU can, they do not go through
// its caches. Memory need not be read before it is overwritten then, which saves a third of the
// traffic.
inline std::uint32_t stream_crc32c(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                                   std::uint32_t crc = 0) noexcept {
  return crc32c_detail::active_stream.load(std::memory_order_relaxed)(out, bytes, count, crc);
}

// The CRC of the eight bytes that hold `value` in little-endian order: a frame's length.
inline std::uint32_t crc32c_u64(std::uint64_t value) noexcept {
  return crc32c_detail::active_of_u64.load(std::memory_order_relaxed)(value);
}

// A CRC as TFRecord stores it. It has its own type, so that raw and masked CRCs cannot be compared.
struct MaskedCrc {
  std::uint32_t value = 0;
  friend bool operator==(MaskedCrc, MaskedCrc) = default;
};

// Rotated right by 15 and offset, so that the CRC of data that holds CRCs stays useful.
constexpr MaskedCrc mask_crc(std::uint32_t crc) noexcept {
  return {((crc >> 15) | (crc << 17)) + 0xa282ead8u};
}

inline MaskedCrc masked_crc32c(const std::uint8_t* bytes, std::size_t count) noexcept {
  return mask_crc(crc32c(bytes, count));
}

}  // namespace tfrfast
