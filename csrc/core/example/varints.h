// Counts and decodes packed varints, a block of 64 bytes at a time.
//
// A byte without a continuation bit ends a varint, so one mask of 64 bits holds the ends of all
// values of a block. One step on the mask finds the next value, without a chain of dependent loads.
// A block of one-byte values is widened all at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/example/wire.h"

namespace tfrfast {

// The number of varints that end in `varints`.
std::size_t count_varints(WireBytes varints) noexcept;

inline constexpr std::ptrdiff_t kBadVarints = -1;  // a varint does not end, or is too long
inline constexpr std::ptrdiff_t kTooManyVarints = -2;

// Decodes all of `varints` to `out`, which has space for `space` values. Returns the number of
// values, or one of the constants above, after which the contents of `out` are undefined. `around`
// contains `varints`; bytes outside `varints` may be read but never matter. With the whole record
// as `around`, the last values decode as fast as the others.
std::ptrdiff_t decode_varints(WireBytes varints, WireBytes around, std::int64_t* out,
                              std::size_t space) noexcept;

// Decodes `varint`. False unless the bytes are exactly one varint.
bool decode_one_varint(WireBytes varint, WireBytes around, std::int64_t& value) noexcept;

// A kernel of decode_varints() by name, for tests: "portable", and "bmi2" or "avx512" where the CPU
// has the instructions (otherwise null).
using DecodeVarints = std::ptrdiff_t (*)(WireBytes, WireBytes, std::int64_t*, std::size_t) noexcept;
DecodeVarints varint_kernel(const char* name) noexcept;
// The name of the kernel in use: the fastest that the CPU has.
const char* active_varint_kernel() noexcept;

}  // namespace tfrfast
