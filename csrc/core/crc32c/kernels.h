// Declares each kernel's functions for the dispatcher. Call a kernel only if it is supported().
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/crc32c/crc32c.h"

#if defined(__x86_64__)
#define TFRFAST_CRC32C_X86 1
#elif defined(__aarch64__) && !defined(__AARCH64EB__)
#define TFRFAST_CRC32C_ARM 1
// Before version 16, Clang declares EOR3 only if the whole file may use EOR3.
#if !defined(__clang__) || __clang_major__ >= 16 || defined(__ARM_FEATURE_SHA3)
#define TFRFAST_CRC32C_ARM_SHA3 1
#endif
#endif

namespace tfrfast::crc32c_detail {

namespace portable {
bool supported() noexcept;
std::uint32_t extend(const std::uint8_t* bytes, std::size_t count, std::uint32_t crc) noexcept;
std::uint32_t of_u64(std::uint64_t value) noexcept;
}  // namespace portable

#ifdef TFRFAST_CRC32C_X86

namespace sse42 {
bool supported() noexcept;
std::uint32_t extend(const std::uint8_t* bytes, std::size_t count, std::uint32_t crc) noexcept;
std::uint32_t copy(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                   std::uint32_t crc) noexcept;
std::uint32_t of_u64(std::uint64_t value) noexcept;
}  // namespace sse42

namespace avx2 {
bool supported() noexcept;
std::uint32_t extend(const std::uint8_t* bytes, std::size_t count, std::uint32_t crc) noexcept;
std::uint32_t copy(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                   std::uint32_t crc) noexcept;
std::uint32_t stream(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                     std::uint32_t crc) noexcept;
}  // namespace avx2

namespace avx512 {
bool supported() noexcept;
std::uint32_t extend(const std::uint8_t* bytes, std::size_t count, std::uint32_t crc) noexcept;
std::uint32_t copy(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                   std::uint32_t crc) noexcept;
std::uint32_t stream(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                     std::uint32_t crc) noexcept;
}  // namespace avx512

#endif

#ifdef TFRFAST_CRC32C_ARM

namespace armv8 {
bool supported() noexcept;
std::uint32_t extend(const std::uint8_t* bytes, std::size_t count, std::uint32_t crc) noexcept;
std::uint32_t copy(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                   std::uint32_t crc) noexcept;
std::uint32_t of_u64(std::uint64_t value) noexcept;
}  // namespace armv8

#endif

#ifdef TFRFAST_CRC32C_ARM_SHA3

namespace armv8_sha3 {
bool supported() noexcept;
std::uint32_t extend(const std::uint8_t* bytes, std::size_t count, std::uint32_t crc) noexcept;
std::uint32_t copy(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                   std::uint32_t crc) noexcept;
}  // namespace armv8_sha3

#endif

}  // namespace tfrfast::crc32c_detail
