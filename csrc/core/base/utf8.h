// Checks whether bytes are text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tfrfast {

// Returns whether the bytes are UTF-8 as Unicode defines it: no overlong forms, no surrogates,
// nothing past U+10FFFF.
bool is_utf8(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace tfrfast
