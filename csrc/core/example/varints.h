// Packed varints: counted and decoded a block of 64 bytes at a time.
//
// The bytes without a continuation bit end a varint, so one mask of 64 bits says where every value
// of a block starts and ends. Finding the next value is then one step on that mask instead of a
// chain through the bytes, and blocks of one-byte values are widened without looking at each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/example/wire.h"

namespace tfrfast {

// How many varints end in `varints`.
std::size_t count_varints(WireBytes varints) noexcept;

inline constexpr std::ptrdiff_t kBadVarints = -1;  // one has no end, or more than ten bytes
inline constexpr std::ptrdiff_t kTooManyVarints = -2;

// Writes the varints to `out`, which has room for `room` of them, and returns how many there were,
// or one of the above; then what was written is undefined. `around` holds `varints` and is what may
// be read, though not used: the record they are part of makes their ends as fast as their middle.
std::ptrdiff_t decode_varints(WireBytes varints, WireBytes around, std::int64_t* out,
                              std::size_t room) noexcept;

// The value of `varint`, which holds that one varint and no more; false if it does not.
bool decode_one_varint(WireBytes varint, WireBytes around, std::int64_t& value) noexcept;

// decode_varints() by name of the kernel, for tests: "portable", and "bmi2" where the CPU has it
// (else null).
using DecodeVarints = std::ptrdiff_t (*)(WireBytes, WireBytes, std::int64_t*, std::size_t) noexcept;
DecodeVarints varint_kernel(const char* name) noexcept;

}  // namespace tfrfast
