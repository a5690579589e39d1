// CRC-32C (Castagnoli), with a kernel for each instruction set, chosen at run time. Every function
// may be called from any thread at any time, including static initialisers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tfrfast {

// A kernel of this build, for tests, benchmarks and `info`. Other code calls the functions below.
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

// All kernels, the portable kernel first.
std::span<const Crc32cKernel> crc32c_kernels() noexcept;

// The kernel in use: the last supported kernel.
const Crc32cKernel& active_crc32c_kernel() noexcept;

namespace crc32c_detail {
// The first call through any of the pointers chooses a kernel and replaces all pointers.
extern constinit std::atomic<Crc32cKernel::Extend> active_extend;
extern constinit std::atomic<Crc32cKernel::Copy> active_copy;
extern constinit std::atomic<Crc32cKernel::Copy> active_stream;
extern constinit std::atomic<Crc32cKernel::OfU64> active_of_u64;
}  // namespace crc32c_detail

// Returns the CRC of `bytes` appended to data whose CRC is `crc`. Never fails. Any length and
// alignment.
inline std::uint32_t crc32c(const std::uint8_t* bytes, std::size_t count,
                            std::uint32_t crc = 0) noexcept {
  return crc32c_detail::active_extend.load(std::memory_order_relaxed)(bytes, count, crc);
}

// Copies `bytes` to `out`, which must not overlap, and returns crc32c() of exactly the written
// bytes, even if the source changes meanwhile. Faster than a copy followed by crc32c() if the
// source is in memory rather than in a cache. Needs no destructors and takes no locks, so a fault
// may jump out.
inline std::uint32_t copy_crc32c(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                                 std::uint32_t crc = 0) noexcept {
  return crc32c_detail::active_copy.load(std::memory_order_relaxed)(out, bytes, count, crc);
}

// Like copy_crc32c(), for long data that are not read again soon. If the CPU can, writes past its
// caches. Then memory is not read before it is overwritten, which saves a third of the traffic.
inline std::uint32_t stream_crc32c(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                                   std::uint32_t crc = 0) noexcept {
  return crc32c_detail::active_stream.load(std::memory_order_relaxed)(out, bytes, count, crc);
}

// Returns the CRC of the eight little-endian bytes of `value`: a frame's length.
inline std::uint32_t crc32c_u64(std::uint64_t value) noexcept {
  return crc32c_detail::active_of_u64.load(std::memory_order_relaxed)(value);
}

// A CRC as TFRecord stores it. A type of its own keeps raw and masked CRCs from being compared.
struct MaskedCrc {
  std::uint32_t value = 0;
  friend bool operator==(MaskedCrc, MaskedCrc) = default;
};

// Rotates right by 15 and adds a constant, so that the CRC of data with CRCs inside stays useful.
constexpr MaskedCrc mask_crc(std::uint32_t crc) noexcept {
  return {((crc >> 15) | (crc << 17)) + 0xa282ead8u};
}

inline MaskedCrc masked_crc32c(const std::uint8_t* bytes, std::size_t count) noexcept {
  return mask_crc(crc32c(bytes, count));
}

}  // namespace tfrfast
