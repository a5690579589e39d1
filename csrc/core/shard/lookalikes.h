// What a file is that is not a TFRecord file, as far as its first bytes tell.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tfrfast {

// How many bytes look_alike() wants to see, if there are so many.
inline constexpr std::size_t kLookAlikeBytes = 512;

// "Parquet", "CSV", "text" and so on; empty if it looks like nothing that is known.
std::string look_alike(std::span<const std::uint8_t> head);

}  // namespace tfrfast
