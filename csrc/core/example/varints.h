// Counts and decodes packed varints, a block of 64 bytes at a time.
//
// A byte without a continuation bit ends a varint, so one mask of 64 bits says where every value of
// a block starts and ends. Finding the next value is one step on that mask instead of a chain
// through the bytes, and blocks of one-byte values are widened all at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/example/wire.h"

namespace tfrfast {

// The number of varints that end in `varints`.
std::size_t count_varints(WireBytes varints) noexcept;

inline constexpr std::ptrdiff_t kBadVarints = -1;  // one does not end, or has over ten bytes
inline constexpr std::ptrdiff_t kTooManyVarints = -2;

// Writes the values to `out`, which has room for `room` of them, and returns how many there were,
// or one of the constants above. Then what was written is undefined. `around` contains `varints`:
// its bytes may be read, but do not count. With the whole record there, the ends are decoded as
// fast as the middle.
std::ptrdiff_t decode_varints(WireBytes varints, WireBytes around, std::int64_t* out,
                              std::size_t room) noexcept;

// Decodes `varint`. False if it is not exactly one varint.
bool decode_one_varint(WireBytes varint, WireBytes around, std::int64_t& value) noexcept;

// decode_varints() by name of the kernel, for tests: "portable", and "bmi2" where the CPU has it
// (else null).
using DecodeVarints = std::ptrdiff_t (*)(WireBytes, WireBytes, std::int64_t*, std::size_t) noexcept;
DecodeVarints varint_kernel(const char* name) noexcept;
// The name of the one in use: the fastest that the CPU has.
const char* active_varint_kernel() noexcept;

}  // namespace tfrfast
