// decode_varints() for CPUs with AVX-512 VBMI2: Ice Lake, Zen 4 and later.
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>

#include "core/example/wire.h"

namespace tfrfast {

bool cpu_has_avx512_vbmi2() noexcept;

// Like decode_varints(). Reads no byte outside `varints`.
std::ptrdiff_t decode_varints_avx512(WireBytes varints, WireBytes around, std::int64_t* out,
                                     std::size_t space) noexcept;

}  // namespace tfrfast

#endif
