// Recognises other kinds of files by their first and their last bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tfrfast {

// The number of bytes at either end that look_alike() can use.
inline constexpr std::size_t kLookAlikeBytes = 512;

// Returns "Parquet", "CSV", "text" and so on, or an empty string for an unknown kind.
std::string look_alike(std::span<const std::uint8_t> head, std::span<const std::uint8_t> tail);

}  // namespace tfrfast
